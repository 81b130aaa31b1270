"""Which environment variables apps and clusters may name: `secrets.env` of fleet.yaml as it was accepted last. Made by process.py,
asked by whoever is about to read one. What lies in the source's directory has no say: it may be a clone that is behind, or bare.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from streamfleet_platform.reconcile.fleet_state import definition_of
from streamfleet_platform.registry import apps
from streamfleet_platform.registry.database import Database


class SecretVariables:
    """`on_change` is called with all of them before others than before are given out: logs mask their values from then on. Any
    thread.
    """

    def __init__(self, database: Database, on_change: Callable[[frozenset[str]], None]) -> None:
        self._database = database
        self._on_change = on_change
        self._known: frozenset[str] | None = None
        self._lock = threading.Lock()

    def __call__(self) -> frozenset[str]:
        with self._database.read() as session:
            definition = definition_of(apps.fleet_state(session))
        names = frozenset(() if definition is None else definition.spec.secrets.env)
        with self._lock:
            if names != self._known:
                self._on_change(names)
                self._known = names
        return names
