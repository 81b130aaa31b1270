"""Parts for an app's own TaskAssignor, each a function of what it has decided so far: KIP-924's TaskAssignmentUtils.

    class MyAssignor:
        def assign(self, state):
            active = previous_places(state) | {...}                   # a process for every task
            active = optimized_for_racks(state, active, traffic_cost=10, non_overlap_cost=1)
            standbys = place_standbys(state, active)              # by tags; standbys_optimized_for_racks(...) by racks
            return assembled(state, active, standbys)

`active` maps every task to a process id, `standbys` every stateful task to process ids. `validate` tells whether an assignment
could be carried out before it is returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streamfleet.assignment.placing import by_process
from streamfleet.assignment.racks import optimized_for_racks
from streamfleet.assignment.snapshot import TaskKey
from streamfleet.assignment.standby_racks import standbys_optimized_for_racks
from streamfleet.assignment.standbys import place_standbys
from streamfleet.assignment.task_assignor import ApplicationState, ProcessAssignment, TaskAssignment
from streamfleet.assignment.validation import validate

__all__ = [
    "assembled",
    "identity_assignment",
    "optimized_for_racks",
    "place_standbys",
    "previous_places",
    "standbys_optimized_for_racks",
    "validate",
]


def previous_places(state: ApplicationState) -> dict[TaskKey, str]:
    """The process that has each task now. Tasks that nobody has, or nobody who can run them, are not in it."""
    return {
        task: name
        for name, process in state.processes.items()
        for task in sorted(process.active)
        if task.content_id in process.can_run
    }


def identity_assignment(state: ApplicationState) -> TaskAssignment:
    """Everybody keeps what it has, standbys included; complete only if every task is somewhere."""
    places = previous_places(state)
    return TaskAssignment(
        processes={
            name: ProcessAssignment(
                active=frozenset(task for task in process.active if places.get(task) == name),
                standby=frozenset(
                    task
                    for task in process.standby
                    if task not in process.active and task.content_id in process.can_run and state.tasks[task].stateful
                ),
            )
            for name, process in state.processes.items()
        }
    )


def assembled(
    state: ApplicationState,
    active: Mapping[TaskKey, str],
    standbys: Mapping[TaskKey, Iterable[str]],
    warmups: Mapping[TaskKey, Iterable[str]] | None = None,
    next_probe_ms: int | None = None,
) -> TaskAssignment:
    """Decisions by task as an assignment by process."""
    return TaskAssignment(processes=by_process(state, active, standbys, warmups or {}), next_probe_ms=next_probe_ms)
