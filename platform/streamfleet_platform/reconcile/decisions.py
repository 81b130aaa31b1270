"""What sensors act on, written down with an id that stays the same as long as the decision does. Called by reconciler.py.

An id is new when the decision is another one, or when what was done about it is over and it is still so: a retry is a new intent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from streamfleet_platform.model.app_definition import AppSpec
from streamfleet_platform.operations.seen import AppSeen
from streamfleet_platform.registry.tables import App
from streamfleet_platform.scaling.decision import Decision, decide
from streamfleet_platform.scaling.measures import Bounds, Recommendation
from streamfleet_platform.views import ProbeDecision, ScalingDecision

KEEP_RECOMMENDATIONS = timedelta(days=2)


def scaling_decision(
    app: str,
    spec: AppSpec,
    seen: AppSeen,
    former: Mapping[str, Any],
    recommended: list[Any],
    now: datetime,
    *,
    free_slots: int | None,
    is_over: bool,
) -> tuple[ScalingDecision, list[Any]] | None:
    """The decision and the history for the next one; None without measurements."""
    if seen.measures is None:
        return None
    history = [Recommendation(datetime.fromisoformat(at), slots) for at, slots in recommended]
    bounds = Bounds(scale=spec.scale, standbys=spec.state.standbys, free_slots=free_slots)
    decided = decide(seen.measures, bounds, history, now)
    current = len(seen.measures.placement)
    view = ScalingDecision(
        app=app,
        intent_id=_intent(app, decided, current, former, now, is_over=is_over),
        at=now,
        action=decided.action,
        current=current,
        slots=decided.slots,
        cause=decided.cause.value,
        reason=decided.reason,
        is_advice=decided.is_advice,
    )
    return view, _with(recommended, decided, now)


def reset_intent(app: App) -> str:
    """Of the reset that a raised generation asks for: the same as long as that is wanted."""
    return f"reset-{app.name}-{app.generation}-{app.wanted_generation}"


def _intent(
    app: str, decided: Decision, current: int, former: Mapping[str, Any], now: datetime, *, is_over: bool
) -> str:
    same = (former.get("action"), former.get("current"), former.get("slots")) == (
        decided.action,
        current,
        decided.slots,
    )
    if same and not is_over:
        return str(former["intent_id"])
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
