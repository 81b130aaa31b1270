"""Ten seeded schedules with the full load; the other guarantee, standbys, groups that the broker plans, and broker deaths."""

import pytest
from tests.ledger.run import run_schedule, summary
from tests.ledger.variants import Variant
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


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [31, 32])
def test_exactly_once_with_standbys_warm_ups_and_probing(seed, tmp_path):
    outcome = run_schedule(
        LedgerSpec(seed), SECONDS, "exactly_once_v2", print, directory=tmp_path, variant=Variant(standbys=1)
    )
    assert summary(outcome.anomalies) == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [31, 32])
def test_exactly_once_in_a_group_that_the_broker_plans(seed, tmp_path):
    variant = Variant(protocol="streams")
    outcome = run_schedule(LedgerSpec(seed), SECONDS, "exactly_once_v2", print, directory=tmp_path, variant=variant)
    assert summary(outcome.anomalies) == []


@pytest.mark.timeout(600)
def test_exactly_once_when_the_broker_dies_again_and_again_while_tasks_move(tmp_path):
    outcome = run_schedule(
        LedgerSpec(102), SECONDS, "exactly_once_v2", print, directory=tmp_path, kinds=("kill", "broker")
    )
    assert summary(outcome.anomalies) == []
