"""The life of a task.

    CREATED ──initialize──> RESTORING ──complete_restoration──> RUNNING
       │                     │     ^                               │
       │                     │     └──────────resume────────┐      │
       └────────suspend──────┴───────────suspend──────> SUSPENDED <┘
                                                            │
                                                            └──close──> CLOSED

A task is closed only from SUSPENDED, so that its processors are closed before its stores are.
"""

from __future__ import annotations

import enum

from streamfleet.errors import StreamsError
from streamfleet.ids import TaskId


class TaskPhase(enum.Enum):
    """Where a task is in its life."""

    CREATED = "created"
    """Nothing is open."""
    RESTORING = "restoring"
    """Stores are open and are brought up to date from their changelogs."""
    RUNNING = "running"
    """Processors are initialised; records are processed."""
    SUSPENDED = "suspended"
    """Processors are closed and nothing is buffered; stores are still open."""
    CLOSED = "closed"


TRANSITIONS: dict[TaskPhase, frozenset[TaskPhase]] = {
    TaskPhase.CREATED: frozenset({TaskPhase.RESTORING, TaskPhase.SUSPENDED}),
    TaskPhase.RESTORING: frozenset({TaskPhase.RUNNING, TaskPhase.SUSPENDED}),
    TaskPhase.RUNNING: frozenset({TaskPhase.SUSPENDED}),
    TaskPhase.SUSPENDED: frozenset({TaskPhase.RESTORING, TaskPhase.CLOSED}),
    TaskPhase.CLOSED: frozenset(),
}


def checked_transition(task_id: TaskId, current: TaskPhase, target: TaskPhase) -> TaskPhase:
    """The target, if the move is in the table."""
    if target not in TRANSITIONS[current]:
        raise StreamsError(f"task {task_id} cannot go from {current.value} to {target.value}")
    return target


def require(task_id: TaskId, current: TaskPhase, *allowed: TaskPhase, action: str) -> None:
    """Refuse an action that is not possible in the current phase."""
    if current not in allowed:
        names = " or ".join(phase.value for phase in allowed)
        raise StreamsError(f"task {task_id} cannot {action} while it is {current.value}", hint=f"it must be {names}")
