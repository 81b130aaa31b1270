"""Changelogs that had to be made although the app has run: what they had is lost, unless their stores are new in this version.

Called by wiring.py when an app starts in a group that its members plan. A host with state knows the ids of its changelogs, and
refuses one that was made anew; a host without any knows nothing. See docs/decisions/0028.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import structlog

from streamfleet.ids import TopicPartition
from streamfleet.kafka.connection import Connector
from streamfleet.kafka.coordinator import CoordinatorLine
from streamfleet.kafka.offset_client import OffsetClient
from streamfleet.kafka.offset_messages import CommittedOffset
from streamfleet.kafka.patience import PatientClock
from streamfleet.topology.plan import TopologyPlan

log = structlog.get_logger(__name__)

Committed = Callable[[Collection[TopicPartition]], Mapping[TopicPartition, CommittedOffset]]


def tell_empty_changelogs(
    created: Collection[str], plan: TopologyPlan, committed: Committed, count: Callable[[str], None]
) -> None:
    """`created` are the topics that were made just now. Says and counts each changelog among them whose tasks have committed.

    Tasks write the time of their partition beside an offset; a reset writes an offset alone, and has deleted the changelogs itself.
    """
    for part in plan.sub_topologies.values():
        made = sorted(set(created).intersection(part.changelog_topics))
        inputs = [TopicPartition(topic, number) for topic in part.sources for number in range(part.tasks)]
        if not made or not any(offset.metadata for offset in committed(inputs).values()):
            continue
        for topic in made:
            count(topic)
            log.error(
                "changelog was missing although the app has run, it is made anew and empty",
                topic=topic,
                hint="right if its store is new in this version of the app; else what it had is lost: stop, and reset the app",
            )


def committed_offsets(group_id: str, connector: Connector, clock: PatientClock, timeout_ms: int) -> Committed:
    """Asks the group's coordinator, over a line of its own."""

    def ask(partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, CommittedOffset]:
        line = CoordinatorLine(connector, clock, group_id)
        try:
            return OffsetClient(group_id, line, clock).committed(partitions, timeout_ms)
        finally:
            line.close()

    return ask
