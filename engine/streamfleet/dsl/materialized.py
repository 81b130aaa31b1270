"""How a result is kept: Materialized is what the user says, StoreSpec what becomes of it for one operator.

A StoreSpec has a name from the start (generated ones use up a number) but makes its StoreBuilder only when the topology is
written, because only then the app's defaults are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from streamfleet.config import StreamsConfig
from streamfleet.dsl.names import NameProvider, checked_name
from streamfleet.dsl.windows import EmitStrategy, SessionWindows, SlidingWindows, Windows
from streamfleet.durations import Duration, duration_ms
from streamfleet.errors import OptionError
from streamfleet.serdes.api import Serde
from streamfleet.state.api import StateStore, StoreBuilder
from streamfleet.state.stores import KeyValueStoreBuilder, SessionStoreBuilder, Stores, WindowStoreBuilder
from streamfleet.state.versioned_store import VersionedStoreBuilder

StoreKind = Literal["rocksdb", "in_memory"]
AnyStoreBuilder = (
    KeyValueStoreBuilder[Any, Any]
    | WindowStoreBuilder[Any, Any]
    | SessionStoreBuilder[Any, Any]
    | VersionedStoreBuilder
)


@dataclass(frozen=True, init=False)
class Materialized:
    """How to keep a result. `name_or_store` is a name, or a store from `Stores` that says itself of which kind it is."""

    name: str | None
    supplier: AnyStoreBuilder | None
    key_serde: Serde[Any] | None
    value_serde: Serde[Any] | None
    kind: StoreKind | None
    caching: bool
    logging: bool | Mapping[str, str]
    retention_ms: int | None

    def __init__(
        self,
        name_or_store: str | AnyStoreBuilder | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        kind: StoreKind | None = None,
        caching: bool = True,
        logging: bool | Mapping[str, str] = True,
        retention: Duration | None = None,
    ) -> None:
        """Without `kind`, the app's `dsl.store.suppliers.class` decides; a mapping as `logging` sets changelog topic settings."""
        supplier = None if name_or_store is None or isinstance(name_or_store, str) else name_or_store
        name = checked_name(name_or_store) if isinstance(name_or_store, str) else supplier.name if supplier else None
        if kind not in (None, "rocksdb", "in_memory"):
            raise OptionError(f"Materialized: there is no store kind {kind!r}", hint='use "rocksdb" or "in_memory"')
        retention_ms = None if retention is None else duration_ms(retention, "retention of Materialized")
        values = (name, supplier, key_serde, value_serde, kind, caching, logging, retention_ms)
        for field, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, field, value)


def chosen_materialized(operator: str, store: str | None, materialized: Materialized | None) -> Materialized | None:
    """`store="name"` is short for `materialized=Materialized("name")`."""
    if store is not None and materialized is not None:
        raise OptionError(f"{operator} was given both store and materialized", hint="put the name into Materialized")
    return Materialized(store) if store is not None else materialized


class StoreSpec:
    """The store one operator keeps its result in."""

    def __init__(
        self,
        materialized: Materialized | None,
        names: NameProvider,
        prefix: str,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
    ) -> None:
        """Serdes are those to use where `materialized` names none."""
        self._options = materialized or Materialized()
        self.is_named = self._options.name is not None
        self.name = self._options.name or names.generate_store(prefix, logged=self._options.logging is not False)
        self.key_serde = self._options.key_serde or key_serde
        self.value_serde = self._options.value_serde or value_serde
        self.is_materialized = True
        self.is_versioned = isinstance(self._options.supplier, VersionedStoreBuilder)
        self._builder: AnyStoreBuilder | None = None

    @property
    def queryable_name(self) -> str | None:
        return self.name if self.is_named else None

    def builder(self, config: StreamsConfig | None) -> StoreBuilder[StateStore]:
        """Always the same object: a store that is added twice must be recognised."""
        if self._builder is None:
            kind: StoreKind = self._options.kind or (config.dsl_store_kind if config is not None else "rocksdb")
            self._builder = (
                self._make(kind)
                .with_serdes(self.key_serde, self.value_serde)
                .with_caching(self._options.caching and self._may_cache())
                .with_logging(self._options.logging)
            )
        return self._builder

    def _make(self, kind: StoreKind) -> AnyStoreBuilder:
        supplier = self._options.supplier
        if supplier is None:
            return Stores.timestamped_key_value(self.name, kind=kind)
        if isinstance(supplier, VersionedStoreBuilder):
            return supplier
        if not isinstance(supplier, KeyValueStoreBuilder):
            raise _wrong_supplier(supplier, "a key-value store", "Stores.key_value")
        return supplier.for_table()

    def _may_cache(self) -> bool:
        return True


class _WindowedStoreSpec(StoreSpec):
    """Sliding and session windows that are emitted on close are never cached; time windows are: so it is in the original."""

    emit_strategy: EmitStrategy
    has_least_retention: bool
    """Rows are kept no longer than windows take records."""

    def _may_cache(self) -> bool:
        return self.emit_strategy is not EmitStrategy.ON_WINDOW_CLOSE

    def _retention(self, what: str, least_ms: int) -> int:
        chosen = self._options.retention_ms
        kept = getattr(self._options.supplier, "retention", chosen)
        self.has_least_retention = kept is None or kept == least_ms
        if chosen is None:
            return least_ms
        if chosen < least_ms:
            raise OptionError(
                f"window store {self.name} would keep its rows for {chosen} ms, but {what} needs {least_ms} ms",
                hint="raise the retention, or leave it out",
            )
        return chosen


class WindowStoreSpec(_WindowedStoreSpec):
    """The store of a time-windowed or sliding aggregation."""

    def for_windows(self, windows: Windows | SlidingWindows, emit_strategy: EmitStrategy) -> WindowStoreSpec:
        self.emit_strategy = emit_strategy
        self._is_sliding = isinstance(windows, SlidingWindows)
        if isinstance(windows, SlidingWindows):
            self._size_ms = windows.difference_ms
            self._retention_ms = self._retention(repr(windows), 2 * windows.difference_ms + windows.grace_ms)
        else:
            self._size_ms = windows.size_ms
            self._retention_ms = self._retention(repr(windows), windows.size_ms + windows.grace_ms)
        return self

    def _may_cache(self) -> bool:
        return super()._may_cache() or not self._is_sliding

    def _make(self, kind: StoreKind) -> AnyStoreBuilder:
        supplier = self._options.supplier
        if supplier is not None:
            if not isinstance(supplier, WindowStoreBuilder):
                raise _wrong_supplier(supplier, "a window store", "Stores.window")
            return supplier.for_table().with_logged_retention(self._retention_ms)
        builder: WindowStoreBuilder[Any, Any] = Stores.timestamped_window(
            self.name, self._retention_ms, self._size_ms, kind=kind
        )
        if self.emit_strategy is EmitStrategy.ON_WINDOW_CLOSE:
            return builder.with_time_first()
        return builder


class SessionStoreSpec(_WindowedStoreSpec):
    """The store of a session aggregation."""

    def for_windows(self, windows: SessionWindows, emit_strategy: EmitStrategy) -> SessionStoreSpec:
        self.emit_strategy = emit_strategy
        self._retention_ms = self._retention(repr(windows), windows.gap_ms + windows.grace_ms)
        return self

    def _make(self, kind: StoreKind) -> AnyStoreBuilder:
        supplier = self._options.supplier
        if supplier is not None:
            if not isinstance(supplier, SessionStoreBuilder):
                raise _wrong_supplier(supplier, "a session store", "Stores.session")
            return supplier.with_logged_retention(self._retention_ms)
        builder: SessionStoreBuilder[Any, Any] = Stores.session(self.name, self._retention_ms, kind=kind)
        if self.emit_strategy is EmitStrategy.ON_WINDOW_CLOSE:
            return builder.with_time_first()
        return builder


def _wrong_supplier(supplier: AnyStoreBuilder, needed: str, factory: str) -> OptionError:
    return OptionError(
        f"store {supplier.name} was made by a {type(supplier).__name__}, but its operator keeps its result in {needed}",
        hint=f"make it with {factory}, or give only a name",
    )
