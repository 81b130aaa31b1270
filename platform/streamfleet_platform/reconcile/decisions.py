"""What sensors act on, written down with an id that stays the same as long as the decision does. Called by recording.py.

An id is new when the decision is another one, or when what was done about it is over and it is still so: a retry is a new intent.
What failed is not decided again at once, and what a scale-up brought is compared with what was expected (scaling/attempts.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from streamfleet_platform.model.app_definition import AppSpec
from streamfleet_platform.model.fleet_definition import RestoreBudget
from streamfleet_platform.operations.seen import AppSeen
from streamfleet_platform.registry.journal import Ended
from streamfleet_platform.registry.tables import App
from streamfleet_platform.scaling.attempts import Attempts, Outcome
from streamfleet_platform.scaling.decision import Decision, decide
from streamfleet_platform.scaling.measures import Bounds, Measures, Recommendation
from streamfleet_platform.views import ProbeDecision, ScalingDecision

KEEP_RECOMMENDATIONS = timedelta(days=2)
_WARMUPS = "max.warmup.replicas"


@dataclass(frozen=True)
class Former:
    """What was decided last, and what has come of it."""

    decision: Mapping[str, Any]
    recommended: list[Any]
    attempts: Attempts
    ended: Ended | None = None
    """The operation that was begun with its intent, if that is over."""

    @property
    def outcome(self) -> Outcome | None:
        if self.ended is None or self.decision.get("action") not in ("up", "down"):
            return None
        intent_id, slots = str(self.decision["intent_id"]), int(self.decision["slots"])
        return Outcome(intent_id=intent_id, slots=slots, failure=self.ended.failure)


@dataclass(frozen=True)
class Decided:
    """What is decided now, and what the next decision has to know."""

    view: ScalingDecision
    recommended: list[Any]
    attempts: Attempts


def scaling_decision(
    app: App, seen: AppSeen, former: Former, bounds: Bounds, rate: float | None, now: datetime
) -> Decided | None:
    """None without measurements. `rate`: what the app has processed lately, in records per second."""
    attempts, outcome = former.attempts.of(app.revision), former.outcome
    if outcome is not None:
        attempts = attempts.after(outcome, now)
    if seen.measures is None:
        return None
    attempts = attempts.measured(seen.measures, bounds, rate, now)
    measures = replace(seen.measures, last_scale_up=attempts.last_scale_up)
    history = [Recommendation(datetime.fromisoformat(at), slots) for at, slots in former.recommended]
    current = len(measures.placement)
    decided = attempts.backed_off(decide(measures, bounds, history, now), current, now)
    intent_id = _intent(app.name, decided, current, former, now)
    view = ScalingDecision(
        app=app.name,
        intent_id=intent_id,
        at=now,
        action=decided.action,
        current=current,
        slots=decided.slots,
        cause=decided.cause.value,
        reason=decided.reason,
        is_advice=decided.is_advice,
    )
    return Decided(view, _with(former.recommended, decided, now), attempts.asking(intent_id, decided, rate))


def bounds_of(spec: AppSpec, measures: Measures | None, restore: RestoreBudget, free_slots: int | None) -> Bounds:
    """What the definitions allow, and what is known of how fast the app restores."""
    bounds = Bounds(scale=spec.scale, slot_cpu=spec.run.slot.cpu, standbys=spec.state.standbys, free_slots=free_slots)
    warmups = int(spec.run.config.get(_WARMUPS, bounds.max_warmups))
    if restore.concurrent is not None:
        warmups = min(warmups, restore.concurrent)
    known = None if measures is None else measures.restore_bytes_per_second
    speed = bounds.restore_bytes_per_second if known is None else known
    if restore.bytes_per_second is not None:  # those that warm up at a time share it
        speed = min(speed, restore.bytes_per_second / warmups)
    return replace(bounds, max_warmups=warmups, restore_bytes_per_second=max(1.0, speed))


def reset_intent(app: App) -> str:
    """Of the reset that a raised generation asks for: the same as long as that is wanted."""
    return f"reset-{app.name}-{app.generation}-{app.wanted_generation}"


def _intent(app: str, decided: Decision, current: int, former: Former, now: datetime) -> str:
    before = former.decision
    same = (before.get("action"), before.get("current"), before.get("slots")) == (
        decided.action,
        current,
        decided.slots,
    )
    if same and former.ended is None:
        return str(before["intent_id"])
    return f"scale-{app}-{current}-{decided.slots}-{int(now.timestamp() * 1000)}"


def _with(recommended: list[Any], decided: Decision, now: datetime) -> list[Any]:
    """One entry per change, and one that says until when the last one held."""
    if decided.recommended is None:
        return recommended
    oldest = (now - KEEP_RECOMMENDATIONS).isoformat()
    kept = [entry for entry in recommended if entry[0] >= oldest]
    entry = [now.isoformat(), decided.recommended]
    if len(kept) >= 2 and kept[-1][1] == kept[-2][1] == decided.recommended:
        kept.pop()
    return [*kept, entry]


def probe_decision(app: str, seen: AppSeen, former: Mapping[str, Any] | None, now: datetime) -> ProbeDecision | None:
    """Warm-ups that have caught up."""
    ready = tuple(sorted(f"{task.id}@{task.slot}" for task in seen.warming if task.state == "caught_up"))
    if not ready:
        return None
    if former is not None and tuple(former.get("tasks", ())) == ready:
        return ProbeDecision.model_validate(former)
    digest = hashlib.sha256(",".join(ready).encode()).hexdigest()[:12]
    return ProbeDecision(
        app=app,
        intent_id=f"probe-{app}-{digest}-{int(now.timestamp() * 1000)}",
        at=now,
        tasks=ready,
        reason=f"{len(ready)} warm-ups have caught up and wait for a rebalance",
    )
