"""Start and stop: workers of an app that is there. Stopping drains, so that the group is empty at once; nothing is forgotten."""

from __future__ import annotations

from typing import ClassVar

from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.model.phase import Phase
from streamfleet_platform.operations.bootstrap_adoption import note_adopted, waits_for_adoption
from streamfleet_platform.operations.bootstrap_runs import delete_dead_files, has_dead_files
from streamfleet_platform.operations.gates import remember_revision, started_gate
from streamfleet_platform.operations.slots import drain_slot, known_slots, refuse_held, start_slot, stop_slot
from streamfleet_platform.operations.steps import Acts, Done, OperationType, PlannedStep, per_slot
from streamfleet_platform.operations.topics import check_cluster, create_topics
from streamfleet_platform.operations.upgrade import switch
from streamfleet_platform.operations.work import Work


def want_running(work: Work) -> Done:
    work.change_app(desired="running")
    return Done()


def want_stopped(work: Work) -> Done:
    """First: a worker that ends meanwhile is not started again."""
    work.change_app(desired="stopped")
    return Done()


def _switch(work: Work) -> list[PlannedStep]:
    """Where the definition itself says so, its revision comes with it."""
    return [PlannedStep("switch")] if "revision" in work.params else []


def _after_bootstraps(work: Work) -> list[PlannedStep]:
    adopts = bool(waits_for_adoption(work))
    cleans = adopts or has_dead_files(work)
    return [PlannedStep("note-adopted")] * adopts + [PlannedStep("delete-dead-files")] * cleans


class Start(OperationType):
    kind = OperationKind.START
    acts: ClassVar[Acts] = {
        "check-cluster": check_cluster,
        "create-topics": create_topics,
        "want-running": want_running,
        "switch": switch,
        "start-slot": start_slot,
        "wait-until-well": started_gate,
        "remember-revision": remember_revision,
        "note-adopted": note_adopted,
        "delete-dead-files": delete_dead_files,
    }

    def plan(self, work: Work) -> list[PlannedStep]:
        refuse_held(work)
        return [
            PlannedStep("check-cluster"),
            PlannedStep("create-topics"),
            PlannedStep("want-running"),
            *_switch(work),
            *per_slot("start-slot", range(work.app.slots)),
            PlannedStep("wait-until-well"),
            PlannedStep("remember-revision"),
            *_after_bootstraps(work),
        ]

    def undo(self, work: Work) -> list[PlannedStep] | None:
        """While it still waits for its cluster. What runs is ended by a stop."""
        return [] if work.step.name in ("check-cluster", "create-topics") else None


class Stop(OperationType):
    kind = OperationKind.STOP
    phase = Phase.STOPPING
    acts: ClassVar[Acts] = {
        "want-stopped": want_stopped,
        "drain-slot": drain_slot,
        "stop-slot": stop_slot,
        "switch": switch,
    }

    def plan(self, work: Work) -> list[PlannedStep]:
        there = known_slots(work)
        stopping = [*per_slot("drain-slot", there), *per_slot("stop-slot", there)]
        return [PlannedStep("want-stopped"), *stopping, *_switch(work)]
