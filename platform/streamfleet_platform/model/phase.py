"""The phase of an app: one word for what it is doing, derived afresh on every pass (reconcile/) and kept with its history.

    PENDING ──> STARTING ──> RESTORING ──> WARMING ──> RUNNING <──> DEGRADED
       │            │            │   <──>  REBALANCING     │
       │            └─> WAITING (broker or source topic)   ├─> SCALING, UPGRADING, RESETTING   (while that operation runs)
       │            └─> CRASH_LOOP                         ├─> PAUSED, QUARANTINED
       └─> FENCED (a bootstrap holds it)                   └─> STOPPING ──> STOPPED
    FAILED: somebody has to look; reached from everywhere, left by an operation.

A phase is observed, not commanded: the world may jump, so a pass may record any move that MOVES allows, and what it does not
allow is a defect of the observer and refused.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping


class Phase(enum.StrEnum):
    """What an app is doing."""

    PENDING = "pending"
    """Known, nothing done yet."""
    STARTING = "starting"
    """Workers are started, not all are members of their group."""
    RESTORING = "restoring"
    """Some active task reads its changelog."""
    WARMING = "warming"
    """All tasks run; warm-ups are catching up."""
    REBALANCING = "rebalancing"
    """Workers are there, but some task has no owner."""
    RUNNING = "running"
    DEGRADED = "degraded"
    """It runs, but not as it should: a worker is missing, progress stands still, a bound is broken. The reason says which."""
    SCALING = "scaling"
    UPGRADING = "upgrading"
    RESETTING = "resetting"
    PAUSED = "paused"
    QUARANTINED = "quarantined"
    """Its error budget is spent; it waits for a person."""
    FENCED = "fenced"
    """A bootstrap holds it; no worker may start."""
    WAITING = "waiting"
    """Its broker or a source topic is missing."""
    CRASH_LOOP = "crash_loop"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


_OBSERVED = frozenset(
    {
        Phase.STARTING,
        Phase.RESTORING,
        Phase.WARMING,
        Phase.REBALANCING,
        Phase.RUNNING,
        Phase.DEGRADED,
        Phase.PAUSED,
        Phase.QUARANTINED,
        Phase.WAITING,
        Phase.CRASH_LOOP,
    }
)
"""What the workers of a started app may be seen in, in any order."""
_OPERATED = frozenset({Phase.SCALING, Phase.UPGRADING, Phase.RESETTING})
_ENDING = frozenset({Phase.STOPPING, Phase.STOPPED, Phase.FAILED})

MOVES: Mapping[Phase, frozenset[Phase]] = {
    # a pass may come late (another server resumes), and find an app that has started meanwhile
    Phase.PENDING: _OBSERVED | _OPERATED | {Phase.FENCED, Phase.STOPPING, Phase.STOPPED, Phase.FAILED},
    **{phase: (_OBSERVED | _OPERATED | _ENDING | {Phase.FENCED}) - {phase} for phase in _OBSERVED},
    **{phase: _OBSERVED | _ENDING | {Phase.FENCED} | (_OPERATED - {phase}) for phase in _OPERATED},
    Phase.FENCED: _OBSERVED | _OPERATED | _ENDING,
    Phase.STOPPING: _OBSERVED | _OPERATED | {Phase.STOPPED, Phase.FAILED, Phase.FENCED},
    Phase.STOPPED: _OBSERVED | _OPERATED | {Phase.FENCED, Phase.FAILED, Phase.PENDING},
    Phase.FAILED: _OBSERVED | _OPERATED | {Phase.STOPPING, Phase.STOPPED, Phase.PENDING, Phase.FENCED},
}


def may_move(old: Phase, new: Phase) -> bool:
    """Whether a pass may record this move. Staying is no move."""
    return new in MOVES[old]
