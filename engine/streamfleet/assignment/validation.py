"""Whether an assignor's answer can be carried out. Called by group_assignment.py for every answer, and by whoever wants to know
before answering.
"""

from __future__ import annotations

from streamfleet.assignment.snapshot import TaskKey
from streamfleet.assignment.task_assignor import (
    ApplicationState,
    AssignmentError,
    ProcessAssignment,
    TaskAssignment,
    TaskAssignor,
)
from streamfleet.errors import InvalidAssignmentError


def checked(assignor: TaskAssignor, state: ApplicationState, assignment: TaskAssignment) -> TaskAssignment:
    """The assignment, after the assignor was told what is wrong with it, if anything is."""
    error, detail = validate(state, assignment)
    if (
        tell := getattr(assignor, "on_assignment_computed", None)
    ) is not None:  # not every app's assignor wants to know
        tell(assignment, error)
    if error is not AssignmentError.NONE:
        raise InvalidAssignmentError(
            f"the assignment of {type(assignor).__name__} cannot be carried out: {error.value} ({detail})",
            hint="correct the assignor named by task.assignor.class, or leave the setting out",
        )
    return assignment


def validate(state: ApplicationState, assignment: TaskAssignment) -> tuple[AssignmentError, str]:
    """The first error found, and where."""
    for process_id in assignment.processes:
        if process_id not in state.processes:
            return AssignmentError.UNKNOWN_PROCESS_ID, process_id
    for process_id in state.processes:
        if process_id not in assignment.processes:
            return AssignmentError.MISSING_PROCESS_ID, process_id
    given: dict[TaskKey, str] = {}
    for process_id, own in assignment.processes.items():
        error, detail = _validate_process(state, process_id, own)
        if error is not AssignmentError.NONE:
            return error, detail
        for task in own.active:
            if task in given:
                return AssignmentError.ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES, f"{task} to {given[task]} and {process_id}"
            given[task] = process_id
    for task in state.tasks:
        if task not in given:
            return AssignmentError.ACTIVE_TASK_NOT_ASSIGNED, str(task)
    return AssignmentError.NONE, ""


def _validate_process(state: ApplicationState, process_id: str, own: ProcessAssignment) -> tuple[AssignmentError, str]:
    copies = own.standby | own.warmup
    can_run = state.processes[process_id].can_run
    for task in own.active | copies:
        where = f"{task} to {process_id}"
        if task not in state.tasks:
            return AssignmentError.UNKNOWN_TASK_ID, where
        if task.content_id not in can_run:
            return AssignmentError.UNABLE_PROCESS, where
        if task in copies and not state.tasks[task].stateful:
            return AssignmentError.INVALID_STANDBY_TASK, where
    if len(own.active) + len(own.standby) + len(own.warmup) > len(own.active | copies):
        twice = min((own.active & copies) | (own.standby & own.warmup))
        return AssignmentError.TWO_COPIES_IN_ONE_PROCESS, f"{twice} to {process_id}"
    return AssignmentError.NONE, ""
