"""The fleet's own definition, as it was accepted last. Read by whoever needs its budgets or what it follows."""

from __future__ import annotations

from typing import Any

from streamfleet_platform.model.fleet_definition import FleetDefinition
from streamfleet_platform.operations.work import as_tuples
from streamfleet_platform.registry.tables import FleetState


def definition_of(state: FleetState) -> FleetDefinition | None:
    """None: nothing was applied yet."""
    content: dict[str, Any] = state.definition
    return FleetDefinition.model_validate(as_tuples(content)) if content else None
