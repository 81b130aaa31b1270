"""Which anomalies a proven defect of the broker excuses."""

import pytest
from tests.e2e.ledger.broker_defects import is_explained
from tests.ledger.app import output_topic
from tests.ledger.bench import REPARTITION
from tests.ledger.oracle import Anomaly

REPARTITION_TAIL, OUTPUT_TAIL, CHANGELOG_TAIL = f"{REPARTITION}-1", f"{output_topic('min')}-2", "ledger-sum-changelog-3"


@pytest.mark.parametrize(
    ("kind", "where", "hidden", "explained"),
    [
        ("hanging transaction", OUTPUT_TAIL, OUTPUT_TAIL, True),
        ("hanging transaction", f"{output_topic('min')}-1", OUTPUT_TAIL, False),
        ("lost", "min[k1]", OUTPUT_TAIL, True),
        ("closed form", "min of k1", OUTPUT_TAIL, True),
        ("lost", "max[k1]", OUTPUT_TAIL, False),
        ("stuck", "the app", OUTPUT_TAIL, False),
        ("stuck", "the app", REPARTITION_TAIL, True),
        ("lost", "tagg[3]", REPARTITION_TAIL, True),
        ("duplicate", "tagg[3]", REPARTITION_TAIL, False),
        ("duplicate", "min[k1]", OUTPUT_TAIL, False),
        ("two owners", CHANGELOG_TAIL, CHANGELOG_TAIL, False),
        ("worker died", "the app", REPARTITION_TAIL, False),
        ("store differs from changelog", "worker-1/0_3/sum", CHANGELOG_TAIL, True),
        ("store differs from changelog", "worker-1/0_2/sum", CHANGELOG_TAIL, False),
        ("store differs from changelog", "worker-1/0_3/max", CHANGELOG_TAIL, False),
    ],
)
def test_a_defect_of_the_broker_excuses_what_it_hides_and_nothing_else(kind, where, hidden, explained):
    assert is_explained(Anomaly(kind, where, ""), [hidden]) is explained
