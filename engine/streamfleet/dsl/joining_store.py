"""JoinStore: a store that a join brings along, beside those of the streams and tables it joins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from streamfleet.config import StreamsConfig
from streamfleet.state.api import StateStore, StoreBuilder

StoreKind = Literal["rocksdb", "in_memory"]


class JoinStore:
    """A store of a join: its name is known at once, its builder when the app's defaults are."""

    def __init__(self, name: str, make: Callable[[StoreKind], StoreBuilder[Any]], kind: StoreKind | None) -> None:
        self.name = name
        self._make = make
        self._kind = kind
        self._builder: StoreBuilder[StateStore] | None = None

    def builder(self, config: StreamsConfig | None) -> StoreBuilder[StateStore]:
        """Always the same object: a store that is added twice must be recognised."""
        if self._builder is None:
            default: StoreKind = "rocksdb" if config is None else config.dsl_store_kind
            self._builder = self._make(self._kind or default)
        return self._builder
