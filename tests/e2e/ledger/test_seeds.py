"""Ten seeded schedules with the full load, and the other guarantee."""

import pytest
from tests.ledger.run import run_schedule, summary
from tests.ledger.workload import LedgerSpec

SECONDS = 90


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, 11))
def test_exactly_once_under_a_seeded_schedule(seed, tmp_path):
    outcome = run_schedule(LedgerSpec(seed), SECONDS, "exactly_once_v2", print, directory=tmp_path)
    assert summary(outcome.anomalies) == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [21, 22])
def test_at_least_once_loses_nothing_and_repeats_no_more_than_the_faults_explain(seed, tmp_path):
    outcome = run_schedule(LedgerSpec(seed), SECONDS, "at_least_once", print, directory=tmp_path)
    assert summary(outcome.anomalies) == []
