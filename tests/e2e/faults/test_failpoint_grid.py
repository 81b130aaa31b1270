"""Every named point of the engine, with a kill and with an error there: the results are always those of a quiet run."""

import time

import pytest
from tests.e2e.faults.reduced_ledger import FAILED, KILLED, TASKS, ends_with, reduced_ledger, runs_an_input, wait_for

from streamfleet.failpoints import FAILPOINTS

ENDS = {"kill": KILLED, "raise": FAILED}
NTH = dict.fromkeys(FAILPOINTS, 3) | {
    "in_restore_batch": 2,
    "before_store_close": 1,
    "after_init_txn": 1,
    "after_assign": 1,
}
"""Behind the first few commits, where there is something to lose; what happens seldom is met the first time."""


@pytest.mark.parametrize("action", ENDS)
@pytest.mark.parametrize("point", FAILPOINTS)
def test_nothing_is_lost_or_repeated_when_a_worker_ends_at(point, action, tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        failpoint = f"{point}:{action}:{NTH[point]}"
        began = time.time()
        if point == "in_restore_batch":
            victim = _joins_late_and_restores(ledger, failpoint, began)
        elif point == "before_store_close":
            victim = _gives_tasks_up(ledger, failpoint, began)
        else:
            victim = _works_with_another(ledger, failpoint, began)
        ends_with(victim, ENDS[action])
        victim.start()
        ledger.write_rest()
        ledger.finish()


def _works_with_another(ledger, failpoint, began):
    ledger.started()
    ledger.wait_until_running(began)
    victim = ledger.doomed("--failpoint", failpoint)
    wait_for(lambda: runs_an_input(victim) or not victim.is_running, "the victim has an input")
    ledger.write_until_it_ends(victim)
    return victim


def _joins_late_and_restores(ledger, failpoint, began):
    ledger.started()
    ledger.wait_until_running(began)
    ledger.write_some(0.5)
    ledger.bench.wait_until_caught_up()
    return ledger.doomed("--failpoint", failpoint)


def _gives_tasks_up(ledger, failpoint, began):
    victim = ledger.doomed("--failpoint", failpoint)
    ledger.wait_until_running(began, TASKS)
    ledger.write_some(0.5)
    ledger.started()
    return victim
