"""When nothing is decided, and what is the cause. Called by decision.py, in this order: what cannot be seen is not acted on,
what is forbidden is not computed, what moves is left to come to rest, and what more slots cannot cure is named.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from streamfleet_platform.model.cron import Cron
from streamfleet_platform.model.quantities import duration_text
from streamfleet_platform.scaling.measures import Bounds, Measures, Recommendation, Task

EFFECTIVE_SHARE = 0.1
"""Of what was expected of the last scale-up: less is no effect."""
_WAITING_SHARE = 0.5


class Cause(enum.StrEnum):
    """Why it is as it is: of a decision, and of every non-decision."""

    CPU_BOUND = "cpu-bound"
    BROKER_BOUND = "broker-bound"
    STATE_BOUND = "state-bound"
    DOWNSTREAM_BOUND = "downstream-bound"
    SKEW_LIMITED = "skew-limited"
    QUOTA_LIMITED = "quota-limited"
    BUDGET_LIMITED = "budget-limited"
    INEFFECTIVE = "ineffective"
    FROZEN = "frozen"
    BLIND = "blind"
    SETTLING = "settling"
    DELAYED = "delayed"
    BACKING_OFF = "backing-off"
    STEADY = "steady"


Held = tuple[Cause, str]
"""Why nothing is decided: the cause, and a sentence."""


def held_back(measures: Measures, bounds: Bounds, now: datetime) -> Held | None:
    """What keeps any decision from being made."""
    if (why := _blind(measures, bounds, now)) is not None:
        return Cause.BLIND, why
    if (why := _frozen(bounds, now)) is not None:
        return Cause.FROZEN, why
    if measures.stable_since is None:
        return Cause.SETTLING, "the group rebalances, warms up or restores; the clock starts when it is stable"
    stable = (now - measures.stable_since).total_seconds()
    if stable < bounds.settle_seconds:
        return Cause.SETTLING, f"stable for {stable:.0f} s of {bounds.settle_seconds:.0f} s"
    return None


def _blind(measures: Measures, bounds: Bounds, now: datetime) -> str | None:
    """Missing, stale or contradictory measurements."""
    age = (now - measures.taken_at).total_seconds()
    if not 0 <= age <= bounds.metrics_max_age_seconds:
        return (
            f"the measurements are {age:.0f} s old, more than {bounds.metrics_max_age_seconds:.0f} s or from the future"
        )
    expected = {
        Task(content_id, partition)
        for content_id, part in measures.sub_topologies.items()
        for partition in range(max(part.sources.values(), default=0))
    }
    if missing := sorted(expected - measures.tasks.keys()):
        return f"{len(missing)} tasks are not measured, {missing[0]} among them"
    if unknown := sorted(measures.tasks.keys() - expected):
        return f"{len(unknown)} measured tasks are not known, {unknown[0]} among them"
    placed = [task for tasks in measures.placement.values() for task in tasks]
    if len(placed) != len(set(placed)):
        return "a task is reported by two slots"
    if lost := sorted(expected - set(placed)):
        return f"{len(lost)} tasks have no slot, {lost[0]} among them"
    for task, own in measures.tasks.items():
        numbers = (
            own.records_per_second,
            own.busy_seconds_per_record,
            own.lag_records,
            own.relayed_per_second,
            own.state_bytes,
        )
        if not all(math.isfinite(value) and value >= 0 for value in numbers):
            return f"task {task} reports a number below zero, or none"
        if own.busy_seconds_per_record == 0 and own.records_per_second + own.relayed_per_second > 0:
            return f"task {task} receives records and reports no time for them"
    return None


def _frozen(bounds: Bounds, now: datetime) -> str | None:
    for freeze in bounds.scale.freeze:
        begun = Cron.parse(freeze.cron).latest(now)
        if begun is not None and now < begun + timedelta(milliseconds=freeze.for_):
            return f"frozen since {begun:%Y-%m-%d %H:%M} UTC for {duration_text(freeze.for_)}: {freeze.reason}"
    return None


def not_curable(measures: Measures) -> Held | None:
    """What more slots would not change."""
    last = measures.last_scale_up
    if last is not None and last.expected_gain > 0 and last.measured_gain < EFFECTIVE_SHARE * last.expected_gain:
        share = last.measured_gain / last.expected_gain
        return Cause.INEFFECTIVE, (
            f"the last scale-up brought {last.measured_gain:.0f} of {last.expected_gain:.0f} records/s expected ({share:.0%})"
        )
    if not measures.slots:
        return None
    busiest = max(measures.slots.values(), key=lambda slot: slot.busy_share)
    if busiest.busy_share >= _WAITING_SHARE:
        return None
    for cause, share, what in (
        (Cause.DOWNSTREAM_BOUND, busiest.produce_share, "for what it writes to be acknowledged"),
        (Cause.BROKER_BOUND, busiest.broker_share, "for records it has asked for"),
    ):
        if share >= _WAITING_SHARE:
            return (
                cause,
                f"the busiest slot processes {busiest.busy_share:.0%} of its time and waits {share:.0%} {what}",
            )
    return None


def scale_down_target(wanted: int, history: Sequence[Recommendation], bounds: Bounds, now: datetime) -> int | Held:
    """The highest recommendation within the delay; held back until there are recommendations for all of it."""
    delay = timedelta(milliseconds=bounds.scale.scale_down.delay)
    within = [entry for entry in history if now - delay <= entry.at <= now]
    covered = any(entry.at <= now - delay for entry in history) or delay == timedelta(0)
    if not covered:
        since = min((entry.at for entry in within), default=now)
        return (
            Cause.DELAYED,
            f"{wanted} slots would do since {since:%H:%M} UTC; scale-down waits {duration_text(delay / timedelta(milliseconds=1))}",
        )
    return max([wanted, *(entry.slots for entry in within)])
