"""A short seeded run in a group that the broker plans. Longer ones, and with standbys: tests/e2e."""

import pytest
from tests.ledger.run import run_schedule, summary
from tests.ledger.variants import Variant
from tests.ledger.workload import LedgerSpec


@pytest.mark.timeout(240)
def test_nothing_is_lost_or_doubled_when_the_broker_plans(tmp_path, capsys):
    spec = LedgerSpec(seed=17, keys=12, records_per_key=60)
    kinds = ("kill", "pause")
    variant = Variant(protocol="streams")
    outcome = run_schedule(spec, 14, "exactly_once_v2", print, directory=tmp_path, kinds=kinds, variant=variant)
    assert {fault.kind for fault in outcome.faults} == set(kinds)
    assert summary(outcome.anomalies) == []
