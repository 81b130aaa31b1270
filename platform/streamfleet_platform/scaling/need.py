"""How many slots the numbers alone ask for: the smallest effective step with which every slot can do its work.

Called by decision.py, which decides whether anything is done about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamfleet_platform.scaling.demand import demands, loads
from streamfleet_platform.scaling.measures import Bounds, Measures, Task
from streamfleet_platform.scaling.price import Price, missing_work, price_move
from streamfleet_platform.scaling.simulation import Placement, effective_steps, simulate, worst_slot

SKEW_TOLERANCE = 0.1
"""Of the work may find no slot when a task is too much for any: to give that task a slot of its own could take as many slots as
there are tasks, since the assignor deals them by number.
"""
_PRICING_ROUNDS = 3
ROUNDING = 1e-9


@dataclass(frozen=True)
class Need:
    """What the numbers alone say."""

    loads: Mapping[Task, float]
    """At most 1 each: a task can have one slot and no more."""
    demand: Mapping[Task, float]
    """Records per second."""
    skewed: Mapping[Task, float]
    """Loads of those that would have more than 1."""
    slots: int
    """The smallest effective step that fits, or the one that comes nearest within `limit`."""
    limit: int
    placement: Placement
    worst: float
    """Of the fullest slot then."""
    worst_now: float
    fits: bool
    fits_now: bool
    price: Price

    def served(self, placement: Mapping[int, frozenset[Task]]) -> float:
        """Records per second, of those demanded, that are processed so: a slot with too much to do does its share of each task."""
        total = 0.0
        for tasks in placement.values():
            share = 1.0 / max(1.0, sum(self.loads.get(task, 0.0) for task in tasks))
            total += share * sum(self.demand.get(task, 0.0) / self.skewed.get(task, 1.0) for task in tasks)
        return total

    @classmethod
    def of(cls, measures: Measures, bounds: Bounds) -> Need:
        """How long a move takes depends on the move, and how many slots are needed on that: a few rounds settle it."""
        move_seconds = bounds.move_seconds or 0.0
        need = cls._with(measures, bounds, move_seconds)
        for _ in range(_PRICING_ROUNDS if bounds.move_seconds is None else 0):
            if need.price.move_seconds <= move_seconds:
                break
            move_seconds = need.price.move_seconds
            need = cls._with(measures, bounds, move_seconds)
        return need

    @classmethod
    def _with(cls, measures: Measures, bounds: Bounds, move_seconds: float) -> Need:
        scale = bounds.scale
        demand = demands(
            measures,
            target=scale.utilization.target,
            move_seconds=move_seconds,
            catch_up_seconds=scale.slo.catch_up / 1000,
        )
        wanted = loads(measures, demand)
        load = {task: min(one, 1.0) for task, one in wanted.items()}
        skewed = {task: one for task, one in wanted.items() if one > 1.0}
        tolerated = SKEW_TOLERANCE * sum(load.values()) if skewed else 0.0
        limit = _limit(measures, bounds)
        placement = smallest_fit(measures, load, scale.min, limit, bounds.standbys, tolerated)
        return cls(
            loads=load,
            demand=demand,
            skewed=skewed,
            slots=len(placement),
            limit=limit,
            placement=placement,
            worst=worst_slot(placement, load)[1],
            worst_now=worst_slot(measures.placement, load)[1],
            fits=missing_work(placement, load) <= tolerated + ROUNDING,
            fits_now=missing_work(measures.placement, load) <= tolerated + ROUNDING,
            price=price_move(measures, placement, load, bounds),
        )


def _limit(measures: Measures, bounds: Bounds) -> int:
    """What definition and budget allow; a budget takes no slot away."""
    if bounds.free_slots is None:
        return bounds.scale.max
    return min(bounds.scale.max, max(len(measures.placement) + bounds.free_slots, bounds.scale.min))


def smallest_fit(
    measures: Measures, load: Mapping[Task, float], low: int, high: int, standbys: int = 0, tolerated: float = 0.0
) -> Placement:
    """The smallest effective step with which no slot has more than it can do, up to what is tolerated; else the one that comes
    nearest.
    """
    best: tuple[float, Placement] | None = None
    steps = sorted({low, *effective_steps(len(measures.tasks), low, high)})
    # Fewer slots than there is work for cannot fit, however the tasks are dealt: only the last resort is looked at.
    least = sum(load.values()) - tolerated
    for slots in [step for step in steps if step >= least - ROUNDING] or steps[-1:]:
        placement = simulate(measures, slots, standbys)
        missing = missing_work(placement, load)
        if best is None or missing < best[0] - ROUNDING:
            best = missing, placement
        if missing <= tolerated + ROUNDING:
            break
    assert best is not None
    return best[1]
