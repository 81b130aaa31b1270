"""The life of a membership, and the moves that are possible in it.

    CREATED ── start ──> JOINING ── answer ──> SYNCING ── answer ──> STABLE
                          ^  ^ ^                  │                   │  │
                          │  │ └─ again ──────────┘                   │  │
                          │  └────── acknowledged (must rejoin) ──────┘  │
                          └── acknowledged ── PREPARING <── rebalance ───┘
                          └── acknowledged ── LOST <── thrown out, from any of the four on the way

    any ── leave ──> LEAVING ──> LEFT        any ── cannot go on ──> FAILED ── leave ──> LEFT

PREPARING and LOST wait for the StreamThread; PREPARING heartbeats meanwhile, LOST has nothing to keep.
"""

from __future__ import annotations

import enum

from streamfleet.errors import StreamsError


class MembershipPhase(enum.Enum):
    """Where a membership is in its life."""

    CREATED = "created"
    """Nothing was said to anybody."""
    JOINING = "joining"
    """JoinGroup is sent or about to be; the answer comes when every member has joined."""
    SYNCING = "syncing"
    """SyncGroup is sent; the answer comes when the leader has sent its plan."""
    STABLE = "stable"
    """A member with a plan; heartbeats keep it."""
    PREPARING = "preparing"
    """A rebalance was called; still a member, waiting for the StreamThread's report."""
    LOST = "lost"
    """No member; waiting for the StreamThread to let go of its tasks."""
    LEAVING = "leaving"
    """LeaveGroup is sent."""
    LEFT = "left"
    FAILED = "failed"


TRANSITIONS: dict[MembershipPhase, frozenset[MembershipPhase]] = {
    MembershipPhase.CREATED: frozenset({MembershipPhase.JOINING, MembershipPhase.LEFT}),
    MembershipPhase.JOINING: frozenset(
        {
            MembershipPhase.SYNCING,
            MembershipPhase.LOST,
            MembershipPhase.LEAVING,
            MembershipPhase.LEFT,
            MembershipPhase.FAILED,
        }
    ),
    MembershipPhase.SYNCING: frozenset(
        {
            MembershipPhase.STABLE,
            MembershipPhase.JOINING,
            MembershipPhase.LOST,
            MembershipPhase.LEAVING,
            MembershipPhase.LEFT,
            MembershipPhase.FAILED,
        }
    ),
    MembershipPhase.STABLE: frozenset(
        {
            MembershipPhase.PREPARING,
            MembershipPhase.JOINING,
            MembershipPhase.LOST,
            MembershipPhase.LEAVING,
            MembershipPhase.LEFT,
            MembershipPhase.FAILED,
        }
    ),
    MembershipPhase.PREPARING: frozenset(
        {
            MembershipPhase.JOINING,
            MembershipPhase.LOST,
            MembershipPhase.LEAVING,
            MembershipPhase.LEFT,
            MembershipPhase.FAILED,
        }
    ),
    MembershipPhase.LOST: frozenset(
        {MembershipPhase.JOINING, MembershipPhase.LEAVING, MembershipPhase.LEFT, MembershipPhase.FAILED}
    ),
    MembershipPhase.LEAVING: frozenset({MembershipPhase.LEFT}),
    MembershipPhase.LEFT: frozenset(),
    MembershipPhase.FAILED: frozenset({MembershipPhase.LEFT}),
}

OVER = frozenset({MembershipPhase.LEFT, MembershipPhase.FAILED})


def checked_transition(current: MembershipPhase, target: MembershipPhase) -> MembershipPhase:
    """The target, if the move is in the table."""
    if target not in TRANSITIONS[current]:
        raise StreamsError(f"a membership cannot go from {current.value} to {target.value}")
    return target
