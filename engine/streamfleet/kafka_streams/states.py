"""The life of a KafkaStreams client.

CREATED ── start ──> REBALANCING <──────────────> RUNNING
   │                     │   (all tasks of all threads)  │
   │                     ├─────────── close ─────────────┤
   │                     v                               v
   └── close ──> NOT_RUNNING <── PENDING_SHUTDOWN <──────┘
                         REBALANCING, RUNNING ── a thread failed ──> PENDING_ERROR ──> ERROR
"""

from __future__ import annotations

import enum

from streamfleet.errors import StreamsError


class ClientState(enum.Enum):
    CREATED = "created"
    REBALANCING = "rebalancing"
    """Joining the group, or restoring tasks."""
    RUNNING = "running"
    """All active tasks of all threads are running."""
    PENDING_SHUTDOWN = "pending_shutdown"
    NOT_RUNNING = "not_running"
    PENDING_ERROR = "pending_error"
    ERROR = "error"

    @property
    def is_over(self) -> bool:
        return self in (ClientState.NOT_RUNNING, ClientState.ERROR)


TRANSITIONS: dict[ClientState, frozenset[ClientState]] = {
    ClientState.CREATED: frozenset({ClientState.REBALANCING, ClientState.NOT_RUNNING, ClientState.PENDING_ERROR}),
    ClientState.REBALANCING: frozenset({ClientState.RUNNING, ClientState.PENDING_SHUTDOWN, ClientState.PENDING_ERROR}),
    ClientState.RUNNING: frozenset({ClientState.REBALANCING, ClientState.PENDING_SHUTDOWN, ClientState.PENDING_ERROR}),
    ClientState.PENDING_SHUTDOWN: frozenset({ClientState.NOT_RUNNING, ClientState.PENDING_ERROR}),
    ClientState.NOT_RUNNING: frozenset(),
    ClientState.PENDING_ERROR: frozenset({ClientState.ERROR}),
    ClientState.ERROR: frozenset(),
}


def checked_transition(current: ClientState, target: ClientState) -> ClientState:
    """The target, if the move is in the table."""
    if target not in TRANSITIONS[current]:
        raise StreamsError(f"a client cannot go from {current.value} to {target.value}")
    return target
