"""A short seeded run of the ledger app under faults. Longer ones, other seeds and the other guarantee: tests/e2e."""

import pytest
from tests.ledger.run import run_schedule, summary
from tests.ledger.workload import LedgerSpec


@pytest.mark.timeout(240)
def test_nothing_is_lost_or_doubled_when_workers_and_broker_die(tmp_path, capsys):
    spec = LedgerSpec(seed=24, keys=12, records_per_key=100)
    outcome = run_schedule(spec, 26, "exactly_once_v2", print, directory=tmp_path)
    assert {fault.kind for fault in outcome.faults} == {"kill", "pause", "broker"}
    assert summary(outcome.anomalies) == []
