"""The life of a member of a streams group, and the moves that are possible in it.

    CREATED ── start ──> JOINING ── answer ──> WAITING ── group ready ──> RECONCILING <──> STABLE
                          ^  ^                    │                           │              │
                          │  └──── fenced ────────┘                           │              │
                          └──── acknowledged ──── LOST <── fenced, thrown out, stuck ────────┘

    any ── leave ──> LEAVING ──> LEFT        any ── cannot go on ──> FAILED

All but CREATED, LOST and the last three heartbeat. RECONCILING waits for the StreamThread to do what the plan says.
"""

from __future__ import annotations

import enum

from streamfleet.errors import StreamsError


class StreamsGroupPhase(enum.Enum):
    CREATED = "created"
    """Nothing was said to anybody."""
    JOINING = "joining"
    """The first heartbeat is sent or about to be."""
    WAITING = "waiting"
    """A member; the broker has no plan yet: topics are missing, or it waits for more members."""
    RECONCILING = "reconciling"
    """A member with a plan that its StreamThread has not carried out yet."""
    STABLE = "stable"
    LOST = "lost"
    """No member; waiting for the StreamThread to let go of its tasks."""
    LEAVING = "leaving"
    LEFT = "left"
    FAILED = "failed"


_Phase = StreamsGroupPhase
_ENDS = frozenset({_Phase.LEAVING, _Phase.LEFT, _Phase.FAILED})

TRANSITIONS: dict[StreamsGroupPhase, frozenset[StreamsGroupPhase]] = {
    _Phase.CREATED: frozenset({_Phase.JOINING, _Phase.LEFT}),
    _Phase.JOINING: frozenset({_Phase.WAITING, _Phase.LOST}) | _ENDS,
    _Phase.WAITING: frozenset({_Phase.RECONCILING, _Phase.JOINING, _Phase.LOST}) | _ENDS,
    _Phase.RECONCILING: frozenset({_Phase.STABLE, _Phase.LOST}) | _ENDS,
    _Phase.STABLE: frozenset({_Phase.RECONCILING, _Phase.LOST}) | _ENDS,
    _Phase.LOST: frozenset({_Phase.JOINING}) | _ENDS,
    _Phase.LEAVING: frozenset({_Phase.LEFT}),
    _Phase.LEFT: frozenset(),
    _Phase.FAILED: frozenset({_Phase.LEFT}),
}

OVER = frozenset({_Phase.LEFT, _Phase.FAILED})
MEMBER = frozenset({_Phase.WAITING, _Phase.RECONCILING, _Phase.STABLE})
"""The broker counts on us."""


def checked_transition(current: StreamsGroupPhase, target: StreamsGroupPhase) -> StreamsGroupPhase:
    """The target, if the move is in the table."""
    if target not in TRANSITIONS[current]:
        raise StreamsError(f"a member of a streams group cannot go from {current.value} to {target.value}")
    return target
