"""Store builders: a store's description as an immutable value; options change by copy (`with_caching` ...).

Made by Stores (stores.py) and by the DSL. A builder is also what Kafka Streams calls a supplier: given to Materialized,
the DSL takes its `for_table()` sibling. The stores that `build()` makes are in key_value_store.py, window_store.py and
session_store.py.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar, cast, get_args

from streamfleet.durations import Duration, duration_ms
from streamfleet.errors import OptionError
from streamfleet.records import ValueAndTimestamp
from streamfleet.serdes.api import Serde
from streamfleet.state.api import KeyValueStore, SessionStore, StateStore, StoreEngineKind, WindowStore

K = TypeVar("K")
V = TypeVar("V")

Logging = bool | Mapping[str, str]
"""Whether a store has a changelog; a mapping says yes and gives settings of that topic."""

MIN_SEGMENT_INTERVAL_MS = 60_000


@dataclass(frozen=True, eq=False, kw_only=True)
class OwnStoreBuilder(Generic[K, V]):
    """What the builders of all kinds share. Two builders are equal only if they are the same object: a name must not be
    given to two stores, however alike.
    """

    name: str
    kind: StoreEngineKind = "rocksdb"
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    caching: bool = False
    logging: Logging = True
    forgets_timestamps: bool = False
    """The values have timestamps, but the rows do not: what is read from them has the timestamp -1."""
    logs_headers: bool = False
    """Changelog records carry the headers of the record under way: so they do for stores of joins in the original."""

    def __post_init__(self) -> None:
        check_store_name(self.name)
        if self.kind not in get_args(StoreEngineKind):
            raise OptionError(
                f"store {self.name} cannot be of kind {self.kind!r}",
                hint=f"use {' or '.join(get_args(StoreEngineKind))}",
            )
        for what, serde in (("key_serde", self.key_serde), ("value_serde", self.value_serde)):
            if serde is not None and not (hasattr(serde, "serialize") and hasattr(serde, "deserialize")):
                raise OptionError(
                    f"{what} of store {self.name} is not a serde: {serde!r}",
                    hint="give an object such as streamfleet.serdes.string(), called",
                )

    @property
    def logging_enabled(self) -> bool:
        return self.logging is not False

    @property
    def user_log_config(self) -> Mapping[str, str]:
        return {} if isinstance(self.logging, bool) else self.logging

    @property
    def log_config(self) -> Mapping[str, str]:
        return self.user_log_config

    @property
    def caching_enabled(self) -> bool:
        return self.caching

    @property
    def is_windowed(self) -> bool:
        return False

    @property
    def retention_ms(self) -> int | None:
        return None

    @abstractmethod
    def build(self) -> StateStore: ...

    def with_caching(self, caching: bool = True) -> Self:
        return replace(self, caching=caching)

    def with_logging(self, logging: Logging = True) -> Self:
        return replace(self, logging=logging)

    def with_serdes(self, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None) -> Self:
        """None keeps what is there."""
        return replace(self, key_serde=key_serde or self.key_serde, value_serde=value_serde or self.value_serde)

    def with_logged_headers(self) -> Self:
        return replace(self, logs_headers=True)

    def with_kind(self, kind: StoreEngineKind) -> Self:
        return replace(self, kind=kind)

    def with_name(self, name: str) -> Self:
        return replace(self, name=name)


@dataclass(frozen=True, eq=False, kw_only=True)
class KeyValueStoreBuilder(OwnStoreBuilder[K, V]):
    """Key-value stores. With `max_entries` it is an LRU store: in memory, forgetting what was not used for longest."""

    is_timestamped: bool = False
    max_entries: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_entries is not None and self.max_entries < 0:
            raise OptionError(f"max_entries of store {self.name} must not be negative, got {self.max_entries}")

    def build(self) -> KeyValueStore[K, V]:
        from streamfleet.state.key_value_store import OwnKeyValueStore

        return OwnKeyValueStore(self)

    def timestamped(self) -> KeyValueStoreBuilder[K, ValueAndTimestamp[Any]]:
        return cast("KeyValueStoreBuilder[K, ValueAndTimestamp[Any]]", replace(self, is_timestamped=True))

    def for_table(self) -> KeyValueStoreBuilder[K, ValueAndTimestamp[Any]]:
        """The store as the DSL uses it. As in Kafka Streams a plain store has a place for timestamps in memory, but not on disk."""
        forgets = not self.is_timestamped and self.kind == "rocksdb"
        changed = replace(self, is_timestamped=True, forgets_timestamps=forgets)
        return cast("KeyValueStoreBuilder[K, ValueAndTimestamp[Any]]", changed)


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowStoreBuilder(OwnStoreBuilder[K, V]):
    """Window stores. `time_first` orders the rows by time, so that closed windows are found without visiting every key."""

    retention: int
    window_size: int
    retain_duplicates: bool = False
    is_timestamped: bool = False
    time_first: bool = False
    logged_retention: int | None = None
    """For how long the changelog keeps a change, if not as long as the store: in the DSL the windows decide that, not the store."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window_size > self.retention:
            raise OptionError(
                f"retention of window store {self.name} is {self.retention} ms, less than its window size of "
                f"{self.window_size} ms",
                hint="a window must be kept at least until it ends; raise the retention",
            )

    @property
    def is_windowed(self) -> bool:
        return True

    @property
    def retention_ms(self) -> int:
        return self.retention if self.logged_retention is None else self.logged_retention

    @property
    def log_config(self) -> Mapping[str, str]:
        """Duplicates have keys of their own, so compaction would find nothing to do: their changelog is deleted by age only.
        Timestamped stores make no such difference.
        """
        default = {"cleanup.policy": "delete"} if self.retain_duplicates and not self.is_timestamped else {}
        return default | dict(super().log_config)

    @property
    def caching_enabled(self) -> bool:
        """A cache holds one value per key and window, so a store of duplicates has none."""
        return self.caching and not self.retain_duplicates

    @property
    def segment_interval_ms(self) -> int:
        return segment_interval_ms(self.kind, self.retention)

    def build(self) -> WindowStore[K, V]:
        from streamfleet.state.window_store import OwnWindowStore

        return OwnWindowStore(self)

    def timestamped(self) -> WindowStoreBuilder[K, ValueAndTimestamp[Any]]:
        return cast("WindowStoreBuilder[K, ValueAndTimestamp[Any]]", replace(self, is_timestamped=True))

    def for_table(self) -> WindowStoreBuilder[K, ValueAndTimestamp[Any]]:
        """The store as the DSL uses it; see KeyValueStoreBuilder."""
        forgets = not self.is_timestamped and self.kind == "rocksdb"
        changed = replace(self, is_timestamped=True, forgets_timestamps=forgets)
        return cast("WindowStoreBuilder[K, ValueAndTimestamp[Any]]", changed)

    def with_retention(self, retention: Duration) -> Self:
        return replace(self, retention=duration_ms(retention, f"retention of store {self.name}"))

    def with_time_first(self, time_first: bool = True) -> Self:
        return replace(self, time_first=time_first)

    def with_logged_retention(self, retention_ms: int) -> Self:
        return replace(self, logged_retention=retention_ms)


@dataclass(frozen=True, eq=False, kw_only=True)
class SessionStoreBuilder(OwnStoreBuilder[K, V]):
    """Session stores. `time_first` and `logged_retention` as in window stores."""

    retention: int
    time_first: bool = False
    logged_retention: int | None = None

    @property
    def is_windowed(self) -> bool:
        return True

    @property
    def retention_ms(self) -> int:
        return self.retention if self.logged_retention is None else self.logged_retention

    @property
    def segment_interval_ms(self) -> int:
        return segment_interval_ms(self.kind, self.retention)

    def build(self) -> SessionStore[K, V]:
        from streamfleet.state.session_store import OwnSessionStore

        return OwnSessionStore(self)

    def with_retention(self, retention: Duration) -> Self:
        return replace(self, retention=duration_ms(retention, f"retention of store {self.name}"))

    def with_time_first(self, time_first: bool = True) -> Self:
        return replace(self, time_first=time_first)

    def with_logged_retention(self, retention_ms: int) -> Self:
        return replace(self, logged_retention=retention_ms)


def segment_interval_ms(kind: StoreEngineKind, retention_ms: int) -> int:
    """How much time shares a segment. In memory every millisecond is its own: such stores forget exactly on time, and a
    cache in front of them must order its entries as they do.
    """
    return 1 if kind == "in_memory" else max(retention_ms // 2, MIN_SEGMENT_INTERVAL_MS)


def check_store_name(name: object) -> None:
    if not isinstance(name, str):
        raise OptionError(f"a store's name must be text, got {name!r}", hint="give every store a name")
    if not name:
        raise OptionError("a store's name cannot be empty", hint="give every store a name")
