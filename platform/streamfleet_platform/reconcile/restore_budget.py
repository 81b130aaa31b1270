"""How fast each worker may restore, so that those of a cluster together stay within the fleet's budget. Called by reconciler.py.

Workers of higher priority come first: at most `concurrent` restore at a time, and these share the bytes by their priorities. The
others wait at a trickle, which keeps their progress visible. A worker keeps the last rate it was told, also while no server runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamfleet_platform.model.fleet_definition import RestoreBudget

TRICKLE_BYTES = 16 * 1024
"""Per second, of a worker whose turn has not come."""
TOLERANCE = 0.1
"""A rate that differs by less is not sent again."""


@dataclass(frozen=True)
class Restorer:
    """A worker that answers."""

    app: str
    slot: int
    priority: int
    is_restoring: bool
    """Or warms up."""
    rate: int
    """What it was told last; 0: no limit."""


Slot = tuple[str, int]


def rates(workers: Sequence[Restorer], budget: RestoreBudget) -> Mapping[Slot, int]:
    """What each should be told, of those whose rate is another one. 0 takes a limit away."""
    if budget.bytes_per_second is None and budget.concurrent is None:
        wanted = {(worker.app, worker.slot): 0 for worker in workers}
    else:
        wanted = _shared(workers, budget)
    return {
        (worker.app, worker.slot): wanted[worker.app, worker.slot]
        for worker in workers
        if _is_other(worker.rate, wanted[worker.app, worker.slot])
    }


def _shared(workers: Sequence[Restorer], budget: RestoreBudget) -> dict[Slot, int]:
    busy = sorted(
        (worker for worker in workers if worker.is_restoring), key=lambda one: (-one.priority, one.app, one.slot)
    )
    turn = busy[: budget.concurrent]
    weights = sum(worker.priority + 1 for worker in turn)
    # Who begins to restore before the next pass begins with a share, not with all of it.
    idle = 0 if budget.bytes_per_second is None else max(TRICKLE_BYTES, budget.bytes_per_second // (len(turn) + 1))
    wanted = {(worker.app, worker.slot): idle for worker in workers}
    wanted |= {(worker.app, worker.slot): TRICKLE_BYTES for worker in busy}
    for worker in turn:
        share = 0
        if budget.bytes_per_second is not None:
            share = max(TRICKLE_BYTES, budget.bytes_per_second * (worker.priority + 1) // weights)
        wanted[worker.app, worker.slot] = share
    return wanted


def _is_other(now: int, wanted: int) -> bool:
    if now == 0 or wanted == 0:
        return now != wanted
    return abs(now - wanted) > TOLERANCE * wanted
