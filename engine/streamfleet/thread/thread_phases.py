"""The life of a StreamThread.

CREATED ── start ──> STARTING ── first plan ──> ASSIGNED <──── all tasks restored ────> RUNNING
                        │                        │   ^                                    │
                        │                        │   └──────────── new plan, or lost ─────┤
                        └────────── shutdown ────┴──────────────── shutdown ──────────────┤
                                                                                          v
                                                 DEAD <── tasks closed, group left ── STOPPING
"""

from __future__ import annotations

import enum

from streamfleet.errors import StreamsError


class ThreadPhase(enum.Enum):
    CREATED = "created"
    STARTING = "starting"
    """Asked to be a member; no plan yet."""
    ASSIGNED = "assigned"
    """Has a plan, or has lost one; some tasks are not running yet."""
    RUNNING = "running"
    """All tasks of the plan are running."""
    STOPPING = "stopping"
    DEAD = "dead"


TRANSITIONS: dict[ThreadPhase, frozenset[ThreadPhase]] = {
    ThreadPhase.CREATED: frozenset({ThreadPhase.STARTING, ThreadPhase.DEAD}),
    ThreadPhase.STARTING: frozenset({ThreadPhase.ASSIGNED, ThreadPhase.STOPPING}),
    ThreadPhase.ASSIGNED: frozenset({ThreadPhase.ASSIGNED, ThreadPhase.RUNNING, ThreadPhase.STOPPING}),
    ThreadPhase.RUNNING: frozenset({ThreadPhase.ASSIGNED, ThreadPhase.STOPPING}),
    ThreadPhase.STOPPING: frozenset({ThreadPhase.DEAD}),
    ThreadPhase.DEAD: frozenset(),
}


def checked_transition(current: ThreadPhase, target: ThreadPhase) -> ThreadPhase:
    """The target, if the move is in the table."""
    if target not in TRANSITIONS[current]:
        raise StreamsError(f"a stream thread cannot go from {current.value} to {target.value}")
    return target
