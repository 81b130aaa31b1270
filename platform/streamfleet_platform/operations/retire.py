"""Retire: the end of an app. It is stopped, kept for its undo window, and then deleted with everything that was recorded of it:
group, internal topics, local state, code that nobody else uses. Output topics stay: others read them.

Cancelled within the window, it is started again (back()).
"""

from __future__ import annotations

import shutil
from datetime import timedelta
from typing import ClassVar

from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.model.phase import Phase
from streamfleet_platform.model.quantities import duration_text
from streamfleet_platform.operations.gates import started_gate
from streamfleet_platform.operations.reset import delete_offsets, fence, wait_for_empty_group
from streamfleet_platform.operations.slots import drain_slot, known_slots, remove_slot, start_slot, stop_slot
from streamfleet_platform.operations.steps import Acts, Done, OperationType, Outcome, PlannedStep, Waiting, per_slot
from streamfleet_platform.operations.topics import delete_topics
from streamfleet_platform.operations.work import Work
from streamfleet_platform.registry import apps

WINDOW = "wait-for-undo"


def want_retired(work: Work) -> Done:
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


def want_back(work: Work) -> Done:
    work.change_app(desired="running", retired_until=None, fenced_by=None)
    return Done()


def forget_app(work: Work) -> Done:
    """Its rows, then code that no revision names. Its events and operations stay."""
    work.write(lambda session: apps.drop_app(session, work.app.name))
    with work.world.database.read() as session:
        used = apps.code_ids(session)
    for directory in work.world.code.glob("sha256-*"):
        if directory.name not in used:
            shutil.rmtree(directory, ignore_errors=True)
    return Done("forgotten")


class Retire(OperationType):
    kind = OperationKind.RETIRE
    phase = Phase.STOPPING
    acts: ClassVar[Acts] = {
        "want-retired": want_retired,
        "drain-slot": drain_slot,
        "stop-slot": stop_slot,
        WINDOW: wait_for_undo,
        "fence": fence,
        "wait-for-empty-group": wait_for_empty_group,
        "delete-offsets": delete_offsets,
        "delete-topics": delete_topics,
        "remove-slot": remove_slot,
        "forget-app": forget_app,
        "want-running": want_back,
        "start-slot": start_slot,
        "wait-until-well": started_gate,
    }

    def plan(self, work: Work) -> list[PlannedStep]:
        there = known_slots(work)
        return [
            PlannedStep("want-retired"),
            *per_slot("drain-slot", there),
            *per_slot("stop-slot", there),
            PlannedStep(WINDOW),
            PlannedStep("fence"),
            PlannedStep("wait-for-empty-group"),
            PlannedStep("delete-offsets"),
            PlannedStep("delete-topics"),
            *per_slot("remove-slot", there),
            PlannedStep("forget-app"),
        ]

    def back(self, work: Work, why: str) -> list[PlannedStep] | None:
        """Only before anything was deleted."""
        if work.step.name not in ("want-retired", "drain-slot", "stop-slot", WINDOW):
            return None
        slots = range(work.app.slots)
        return [PlannedStep("want-running"), *per_slot("start-slot", slots), PlannedStep("wait-until-well")]
