"""decide(measures, bounds, history, now): how many slots an app should have, with a written reason and its numbers.

    held back?          measurements, freezes, stability                       guards.py
    demand and load     what every task has to do; one above 1 is skew         demand.py
    who is needed       smallest effective step whose worst slot fits          need.py, simulation.py
    up                  what cannot be cured by slots, quota, budget, price    guards.py, price.py
    down                no backlog, below the band, after the delay, price

Pure: the caller measures, keeps the recommendations and acts. A decision with `is_advice` is written down and not acted on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from streamfleet_platform.scaling.demand import utilizations
from streamfleet_platform.scaling.guards import Cause, Held, held_back, not_curable, scale_down_target
from streamfleet_platform.scaling.measures import Bounds, Measures, Recommendation, Task
from streamfleet_platform.scaling.need import ROUNDING, Need
from streamfleet_platform.scaling.price import Price, gain_of_scaling_down, gain_of_scaling_up, price_move
from streamfleet_platform.scaling.simulation import simulate, worst_slot

Action = Literal["up", "down", "hold"]


@dataclass(frozen=True)
class Decision:
    """What to do, and why."""

    action: Action
    slots: int
    """How many there should be."""
    cause: Cause
    reason: str
    recommended: int | None = None
    """What the numbers alone say, for the history; None where nothing was computed."""
    price: Price | None = None
    expected_gain: float = 0.0
    """Of a scale-up: records per second that can be processed then and cannot now."""
    is_advice: bool = False


def decide(measures: Measures, bounds: Bounds, history: Sequence[Recommendation], now: datetime) -> Decision:
    current = len(measures.placement)
    held = held_back(measures, bounds, now)
    if held is not None:
        return Decision("hold", current, *held)
    measures = in_slots(measures, bounds.slot_cpu)
    need = Need.of(measures, bounds)
    decided = _decide(need, measures, bounds, history, now)
    return replace(
        decided, recommended=need.slots, is_advice=bounds.scale.mode == "advise" and decided.action != "hold"
    )


def in_slots(measures: Measures, cpu: float) -> Measures:
    """Busy seconds as seconds of a slot: one that may use half a CPU is full when it is busy half of the time. Python runs one
    thread at a time, so more than one CPU makes no slot larger.
    """
    if cpu >= 1:
        return measures
    tasks = {
        task: replace(own, busy_seconds_per_record=own.busy_seconds_per_record / cpu)
        for task, own in measures.tasks.items()
    }
    return replace(measures, tasks=tasks)


def _decide(
    need: Need, measures: Measures, bounds: Bounds, history: Sequence[Recommendation], now: datetime
) -> Decision:
    current = len(measures.placement)
    scale = bounds.scale
    if current < scale.min:
        return Decision(
            "up", scale.min, Cause.QUOTA_LIMITED, f"{current} slots run, the definition wants at least {scale.min}"
        )
    if current > scale.max:
        return Decision(
            "down", scale.max, Cause.QUOTA_LIMITED, f"{current} slots run, the definition allows {scale.max}"
        )
    if not need.fits_now and _is_pressed(measures, bounds):
        return _scale_up(need, measures, bounds)
    if need.skewed:
        return _hold(current, Cause.SKEW_LIMITED, _skew_words(need.skewed))
    if need.slots < current:
        return _scale_down(need, measures, bounds, history, now)
    return _hold(
        current, Cause.STEADY, f"the fullest slot has a load of {need.worst_now:.2f}, {need.slots} slots are needed"
    )


def _is_pressed(measures: Measures, bounds: Bounds) -> bool:
    """Above the band, or with a backlog that is older than the latency that was promised."""
    _, busy = worst_slot(measures.placement, utilizations(measures))
    return busy > bounds.scale.utilization.band[1] or is_behind(measures, bounds)


def is_behind(measures: Measures, bounds: Bounds) -> bool:
    """With a backlog that is older than the latency that was promised."""
    return _backlog_seconds(measures) > bounds.scale.slo.max_latency / 1000


def _backlog_seconds(measures: Measures) -> float:
    """How far behind the task is that is furthest behind: what it has not processed, at the rate at which it arrives."""
    behind = 0.0
    for own in measures.tasks.values():
        rate = own.records_per_second + own.relayed_per_second
        behind = max(behind, own.lag_records / rate if rate else own.lag_records * own.busy_seconds_per_record)
    return behind


def _scale_up(need: Need, measures: Measures, bounds: Bounds) -> Decision:
    current = len(measures.placement)
    numbers = f"total load {sum(need.loads.values()):.2f}; {_worst_words(need, current)}"
    if (why := not_curable(measures)) is not None:
        return _hold(current, why[0], f"{why[1]}; {numbers}")
    limited = None if need.fits else _limit_words(need, bounds)
    skew = [_skew_words(need.skewed)] if need.skewed else []
    if need.slots <= current:
        fallback = (Cause.CPU_BOUND, f"no number of slots up to {need.limit} spreads the tasks better")
        cause, words = limited or fallback
        return _hold(current, cause, "; ".join([numbers, words, *skew]))
    gain = gain_of_scaling_up(
        measures.placement, need.placement, need.loads, bounds.horizon_seconds - need.price.move_seconds
    )
    prices = _price_words(need.price, gain, bounds)
    if need.price.slot_seconds >= gain:
        return _hold(current, Cause.STATE_BOUND, f"{numbers}; {prices}", need.price)
    notes = [numbers, prices]
    notes += [f"still too much: {limited[1]}"] if limited is not None else []
    expected = max(0.0, need.served(need.placement) - need.served(measures.placement))
    reason = "; ".join([*notes, *skew])
    return Decision("up", need.slots, Cause.CPU_BOUND, reason, price=need.price, expected_gain=expected)


def _limit_words(need: Need, bounds: Bounds) -> Held:
    if need.limit < bounds.scale.max:
        return Cause.BUDGET_LIMITED, f"the fleet's budget leaves {bounds.free_slots} more slots"
    return Cause.QUOTA_LIMITED, f"the definition allows {bounds.scale.max} slots"


def _worst_words(need: Need, current: int) -> str:
    return f"worst slot {need.worst_now:.2f} with {current} slots, {need.worst:.2f} with {need.slots}"


def _price_words(price: Price, gain: float, bounds: Bounds) -> str:
    return f"{price}; costs {price.slot_seconds:.0f} and brings {gain:.0f} slot seconds within {bounds.horizon_seconds:.0f} s"


def _scale_down(
    need: Need, measures: Measures, bounds: Bounds, history: Sequence[Recommendation], now: datetime
) -> Decision:
    current = len(measures.placement)
    _, busy = worst_slot(measures.placement, utilizations(measures))
    numbers = _worst_words(need, current)
    if busy >= bounds.scale.utilization.band[0]:
        return _hold(current, Cause.STEADY, f"the busiest slot is {busy:.0%} busy, within the band; {numbers}")
    backlog = _backlog_seconds(measures)
    if backlog > bounds.scale.slo.max_latency / 1000:
        return _hold(current, Cause.CPU_BOUND, f"no scale-down during a backlog of {backlog:.0f} s; {numbers}")
    target = scale_down_target(need.slots, history, bounds, now)
    if isinstance(target, tuple):
        return _hold(current, *target)
    if target >= current:
        return _hold(current, Cause.DELAYED, f"{target} slots were needed within the delay; {numbers}")
    placement = simulate(measures, target, bounds.standbys)
    price = price_move(measures, placement, need.loads, bounds)
    gain = gain_of_scaling_down(current, target, bounds.horizon_seconds - price.move_seconds)
    prices = _price_words(price, gain, bounds)
    if price.slot_seconds >= gain:
        return _hold(current, Cause.STATE_BOUND, f"{numbers}; {prices}", price)
    _, worst = worst_slot(placement, need.loads)
    if worst > 1.0 + ROUNDING:
        return _hold(current, Cause.STEADY, f"{target} slots would have {worst:.2f} in the fullest; {numbers}")
    return Decision("down", target, Cause.CPU_BOUND, f"{numbers}; {target} within the delay; {prices}", price=price)


def _hold(slots: int, cause: Cause, reason: str, price: Price | None = None) -> Decision:
    return Decision("hold", slots, cause, reason, price=price)


def _skew_words(skewed: Mapping[Task, float]) -> str:
    task, load = max(skewed.items(), key=lambda entry: entry[1])
    more = f" and {len(skewed) - 1} more" if len(skewed) > 1 else ""
    return (
        f"partition {task.partition} of sub-topology {task.content_id}{more} needs {load:.2f} slots for itself: "
        "a task is never split, so more slots cannot help; spread its keys, or use more partitions"
    )
