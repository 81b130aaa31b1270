"""Retire: the end of an app. It is stopped, kept for its undo window, and then deleted with everything that was recorded of it
(removal.py). Cancelled within the window, it is what it was before.
"""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.model.phase import Phase
from streamfleet_platform.model.quantities import duration_text
from streamfleet_platform.operations.gates import started_gate
from streamfleet_platform.operations.removal import REMOVAL_ACTS, removal_steps, stopping_steps
from streamfleet_platform.operations.slots import known_slots, start_slot
from streamfleet_platform.operations.steps import Acts, Done, OperationType, Outcome, PlannedStep, Waiting, per_slot
from streamfleet_platform.operations.work import Work
from streamfleet_platform.registry import journal

WINDOW = "wait-for-undo"


def want_retired(work: Work) -> Outcome:
    if "desired_before" not in work.step.memory:
        return Waiting("it begins", {"desired_before": work.app.desired})
    seconds = work.params.get("undo_window_seconds")
    window = work.revision().spec.protect.retire.undo_window if seconds is None else int(seconds) * 1000
    until = work.now + timedelta(milliseconds=window)
    work.change_app(desired="retired", retired_until=work.app.retired_until or until)
    return Done(f"can be undone for {duration_text(window)}" if window else "cannot be undone")


def wait_for_undo(work: Work) -> Outcome:
    until = work.app.retired_until
    if until is not None and work.now < until:
        return Waiting(f"deleted after {until:%Y-%m-%d %H:%M} UTC; cancel to keep it")
    return Done("the window is over")


def _desired_before(work: Work) -> str:
    with work.world.database.read() as session:
        steps = journal.steps_of(session, work.operation.id)
    return str(next((s.memory["desired_before"] for s in steps if "desired_before" in s.memory), work.app.desired))


def want_back(work: Work) -> Done:
    work.change_app(desired=_desired_before(work), retired_until=None)  # who held it holds it still
    return Done(f"{work.app.desired} again")


class Retire(OperationType):
    kind = OperationKind.RETIRE
    phase = Phase.STOPPING
    acts: ClassVar[Acts] = {
        **REMOVAL_ACTS,
        "want-retired": want_retired,
        WINDOW: wait_for_undo,
        "want-back": want_back,
        "start-slot": start_slot,
        "wait-until-well": started_gate,
    }

    def plan(self, work: Work) -> list[PlannedStep]:
        there = known_slots(work)
        return [PlannedStep("want-retired"), *stopping_steps(there), PlannedStep(WINDOW), *removal_steps(there)]

    def back(self, work: Work, why: str) -> list[PlannedStep] | None:
        """Only before anything was deleted. Who holds the app holds it still: it is kept, and not started."""
        if work.step.name not in ("want-retired", "drain-slot", "stop-slot", WINDOW):
            return None
        if _desired_before(work) == "stopped" or work.app.fenced_by is not None:
            return [PlannedStep("want-back")]
        slots = range(work.app.slots)
        return [PlannedStep("want-back"), *per_slot("start-slot", slots), PlannedStep("wait-until-well")]
