"""One word for what an app is doing: which rule comes first."""

import pytest
from tests.unit.streamfleet_platform.reconcile.sights import START, app, seen, task, worker

from streamfleet_platform.model.phase import Phase
from streamfleet_platform.reconcile.phases import Situation, phase_of
from streamfleet_platform.registry.tables import Operation
from streamfleet_platform.runtime.api import WorkerPhase

RESTORING = task("1_0", doing="restoring", restore_remaining=7)


def operation(kind="scale", **more):
    return Operation(
        id="op", app="one", kind=kind, state="running", intent_id="i", actor="ann", created_at=START, **more
    )


def found(sight, row=None, *, slots=(0,), op=None, op_phase=None, failed=None, ailments=()):
    return phase_of(Situation(row or app(), sight, slots, op, op_phase, "warm-up: looking", failed, ailments))


def down(slot=0, phase=WorkerPhase.STARTING):
    return worker(slot, phase, client_state=None, is_ready=False, topology_hash=None)


CASES = {
    "all is well": ({"sight": seen(worker())}, Phase.RUNNING, ""),
    "held": ({"sight": seen(), "row": app(fenced_by="reset-1")}, Phase.FENCED, "held by reset-1"),
    "held by the operation that runs": (
        {"sight": seen(), "row": app(fenced_by="op"), "op": operation("reset", started_at=START), "op_phase": Phase.RESETTING},
        Phase.RESETTING, "reset: warm-up: looking",
    ),
    "not begun": ({"sight": seen(), "row": app(phase="pending"), "op": operation()}, Phase.PENDING, "has not begun"),
    "an operation says it": (
        {"sight": seen(worker()), "op": operation(started_at=START), "op_phase": Phase.SCALING},
        Phase.SCALING, "scale: warm-up: looking",
    ),
    "stopping": ({"sight": seen(worker()), "row": app(desired="stopped")}, Phase.STOPPING, "1 workers have not ended"),
    "stopped": ({"sight": seen(), "row": app(desired="stopped")}, Phase.STOPPED, "as wanted"),
    "retired": ({"sight": seen(), "row": app(desired="retired")}, Phase.STOPPED, "retired"),
    "failed at once": ({"sight": seen(), "slots": (), "failed": "deploy failed: no"}, Phase.FAILED, "deploy failed: no"),
    "crashes": (
        {"sight": seen(worker(0), worker(1, WorkerPhase.CRASH_LOOP, reason="boom")), "slots": (0, 1)},
        Phase.CRASH_LOOP, "slot 1: boom",
    ),
    "cluster away": ({"sight": seen(worker(), cluster_problem="no answer")}, Phase.WAITING, "no answer"),
    "input missing": ({"sight": seen(worker(), missing=("t",))}, Phase.WAITING, "input topics are missing: t"),
    "nobody yet": ({"sight": seen(), "slots": ()}, Phase.STARTING, "no worker was started yet"),
    "all start": ({"sight": seen(down())}, Phase.STARTING, "1 workers start"),
    "one of two is away": ({"sight": seen(worker(0), down(1)), "slots": (0, 1)}, Phase.DEGRADED, "slot 1 is starting"),
    "one of two is not there yet": (
        {"sight": seen(worker(0)), "slots": (0, 1), "row": app(phase="starting")}, Phase.STARTING, "slot 1 is away",
    ),
    "quarantined": ({"sight": seen(worker()), "row": app(quarantine="12 bad")}, Phase.QUARANTINED, "12 bad"),
    "paused by a person": ({"sight": seen(worker()), "row": app(desired="paused")}, Phase.PAUSED, "as wanted"),
    "paused at its door": ({"sight": seen(worker(is_paused=True))}, Phase.PAUSED, "paused at its door"),
    "restoring": ({"sight": seen(worker(), placement=(RESTORING,))}, Phase.RESTORING, "1 tasks restore, 7 records to go"),
    "restoring for too long": (
        {"sight": seen(worker(), placement=(RESTORING,)), "ailments": ("task 1_0 restores for 31m",)},
        Phase.DEGRADED, "task 1_0 restores for 31m",
    ),
    "a task without owner": (
        {"sight": seen(worker(is_ready=False, client_state="rebalancing"))}, Phase.REBALANCING, "slot 0 is rebalancing",
    ),
    "warming": ({"sight": seen(worker(), placement=(task(role="warmup"),))}, Phase.WARMING, "1 warm-ups catch up"),
    "unwell": ({"sight": seen(worker()), "ailments": ("a", "b")}, Phase.DEGRADED, "a; and 1 more"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_first_rule_that_applies_wins(case):
    given, phase, reason = case
    told = found(**given)
    assert told[0] is phase and reason in told[1]
