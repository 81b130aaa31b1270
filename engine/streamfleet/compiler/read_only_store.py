"""A store behind a glass: what a processor gets when it asks for a global store. Made by node_context."""

from __future__ import annotations

from typing import Any

from streamfleet.errors import StateStoreError
from streamfleet.state.api import StateStore

WRITES = frozenset({"put", "put_all", "put_if_absent", "delete", "remove", "restore", "open", "close", "flush_cache"})


class ReadOnlyStore:
    """Passes every read on to the store and refuses whatever would change it: only its own topic may change a global
    store.
    """

    __slots__ = ("_store",)

    def __init__(self, store: StateStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if name in WRITES:
            raise StateStoreError(
                f"store {self._store.name} is global and read only, {name} is not possible",
                hint="write to the topic of the global store instead",
            )
        return getattr(self._store, name)
