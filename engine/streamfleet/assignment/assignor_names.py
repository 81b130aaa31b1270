"""The setting `task.assignor.class` becomes a TaskAssignor. Called by who makes a StreamsProtocol."""

from __future__ import annotations

import importlib
from typing import Any

from streamfleet.assignment.high_availability import HighAvailabilityTaskAssignor
from streamfleet.assignment.sticky import StickyTaskAssignor
from streamfleet.assignment.task_assignor import TaskAssignor
from streamfleet.errors import ConfigError


def task_assignor(setting: Any) -> TaskAssignor:
    """From `high_availability`, `sticky`, `module:attribute`, a class or an object; None: high_availability."""
    if setting is None or setting == "high_availability":
        return HighAvailabilityTaskAssignor()
    if setting == "sticky":
        return StickyTaskAssignor()
    found = _imported(setting) if isinstance(setting, str) else setting
    assignor: TaskAssignor = found() if isinstance(found, type) else found
    if not callable(getattr(assignor, "assign", None)):
        raise ConfigError(
            f"task.assignor.class {setting!r} has no method assign", hint="see streamfleet.assignment.TaskAssignor"
        )
    return assignor


def _imported(name: str) -> Any:
    module_name, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"task.assignor.class {name} cannot be loaded: {error}",
            hint="write module:attribute, and install the module where the app runs",
        ) from error
