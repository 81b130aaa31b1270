"""What a proven defect of the broker explains: a transaction without markers hides all that follows (KAFKA-20734)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.ledger.app import OUTPUTS, output_topic
from tests.ledger.bench import APPLICATION
from tests.ledger.oracle import Anomaly
from tests.ledger.run import Outcome
from tests.ledger.state_check import changelog_topic

MISSING = frozenset({"lost", "closed form", "old state", "stuck", "no clean end"})
"""Where the rest of a partition is hidden, something is not there, or is waited for. Nothing comes twice or wrong."""


def unexplained(outcome: Outcome) -> list[Anomaly]:
    hidden = [defect.partition(":")[0] for defect in outcome.broker_defects]
    return [anomaly for anomaly in outcome.anomalies if not is_explained(anomaly, hidden)]


def is_explained(anomaly: Anomaly, hidden: Sequence[str]) -> bool:
    """Whether it follows from the ends of these partitions being hidden. Of an output nothing follows but gaps in that output; what
    the app itself reads, it waits for, and everything behind it is missing.
    """
    if anomaly.kind == "hanging transaction":
        return anomaly.where in hidden
    topics = {partition.rpartition("-")[0] for partition in hidden}
    if anomaly.kind == "store differs from changelog":
        _, task, store = anomaly.where.split("/")
        return f"{changelog_topic(APPLICATION, store)}-{task.rpartition('_')[2]}" in hidden
    outputs = {output_topic(name): name for name in OUTPUTS}
    if anomaly.kind not in MISSING:
        return False
    return not topics <= outputs.keys() or any(_is_about(anomaly, outputs[topic]) for topic in topics)


def _is_about(anomaly: Anomaly, output: str) -> bool:
    return re.match(rf"{output}(\[|-\d| of |$)", anomaly.where) is not None
