"""Who has, or is to get, how many of the fleet's slots: what the budget is shared by. Used by recording.py and reconciler.py."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.registry.tables import App, Operation, ScalingRecord


def claims_of(
    apps: Sequence[App],
    operations: Mapping[str, Operation],
    scaling: Mapping[str, ScalingRecord],
    ended: Collection[str],
) -> dict[str, int]:
    """By app: its slots, those that an operation under way brings, and those that were decided and not acted on yet."""
    claims = slots_of(apps, operations)
    for app in apps:
        record = scaling.get(app.name)
        if record is not None and app.desired == "running":
            with_decision(claims, app, record.decision, ended)
    return claims


def slots_of(apps: Sequence[App], operations: Mapping[str, Operation]) -> dict[str, int]:
    """By app: its slots, or those that an operation that has begun brings."""
    claims = {app.name: app.slots for app in apps}
    for app, operation in operations.items():
        if operation.kind == OperationKind.SCALE and operation.started_at is not None and app in claims:
            claims[app] = max(claims[app], int(operation.params["slots"]))
    return claims


def with_decision(claims: dict[str, int], app: App, decision: Mapping[str, Any], ended: Collection[str]) -> None:
    """What a decision asks for counts until it was acted on: others cannot have it meanwhile."""
    waits = decision.get("action") == "up" and not decision.get("is_advice") and decision.get("intent_id") not in ended
    if waits:
        claims[app.name] = max(claims.get(app.name, 0), int(decision["slots"]))
