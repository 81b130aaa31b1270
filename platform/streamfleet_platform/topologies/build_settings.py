"""Which of an app's settings its topology is built with: what a lock depends on besides the code. Called by whoever compiles or
asks whether that is needed: the command line, the planner. One answer for both, or a lock that one writes the other refuses.

They matter to an entry point that returns a StreamsBuilder. A worker builds with all its settings, these among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NAMES = frozenset(
    {"dsl.store.suppliers.class", "processor.wrapper.class", "windowstore.changelog.additional.retention.ms"}
)
_PREFIXES = ("topology.", "topic.")


def build_settings(of_app: Mapping[str, Any], of_cluster: Mapping[str, Any]) -> dict[str, Any]:
    """From `run.config` and from the `config` of the cluster, over which the app's own wins, as in a worker."""
    return {
        name: value
        for name, value in (dict(of_cluster) | dict(of_app)).items()
        if name in _NAMES or name.startswith(_PREFIXES)
    }
