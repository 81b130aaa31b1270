"""What a store promises to its users (StateStore and its kinds) and what it needs from its task (StoreContext).

Processors see the kinds; the task sees StateStore; nobody above state/ sees bytes. The implementations are in the modules beside.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, Self, TypeVar

from streamfleet.records import Headers, RawRecord, RecordContext, ValueAndTimestamp, VersionedRecord, Windowed

if TYPE_CHECKING:
    from streamfleet.ids import TaskId
    from streamfleet.ports import StoreEngine
    from streamfleet.serdes.api import Serde
    from streamfleet.state.store_caches import StoreCaches

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
S_co = TypeVar("S_co", bound="StateStore", covariant=True)

StoreEngineKind = Literal["rocksdb", "in_memory"]

FlushListener = Callable[[Any, Any, Any, int], None]
"""listener(key, new value, old value, timestamp): called while a cache is flushed, with the record context of the last update in
force. Values are the store's own (ValueAndTimestamp in timestamped stores), keys Windowed in window and session stores."""


class StoreContext(Protocol):
    """What a store needs from the task it belongs to."""

    application_id: str
    task_id: TaskId
    state_id: str
    """Names what the task's rows are the state of, whatever number its SubTopology has: content id and partition."""
    record_context: RecordContext | None
    """Of the record under way; a cache sets it to that of the cached update while it flushes, and puts the old one back."""
    caches: StoreCaches
    """Shared by the tasks of a thread."""
    deduplicate_changelog: bool
    default_key_serde: Serde[Any] | None
    default_value_serde: Serde[Any] | None

    def engine(self, kind: StoreEngineKind) -> StoreEngine: ...

    def changelog_topic(self, store_name: str) -> str | None:
        """None when the store is not logged."""

    def log_change(
        self, store_name: str, key: bytes, value: bytes | None, timestamp: int | None, headers: Headers
    ) -> None:
        """Send one changelog record now."""

    def drop(self, store_name: str, reason: str) -> None:
        """Count a put that the store did not take (older than its retention)."""


class StoreIterator(Iterator[T], ABC):
    """A scan. Close it: it holds the store's resources. Use it as a context manager, or exhaust it."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


class StateStore(ABC):
    """What a task does with every store."""

    name: str

    @property
    @abstractmethod
    def is_open(self) -> bool: ...

    @property
    @abstractmethod
    def is_persistent(self) -> bool:
        """True if the rows survive the process."""

    @abstractmethod
    def open(self, context: StoreContext) -> None: ...

    @abstractmethod
    def flush_cache(self) -> None:
        """Write through, and forward, what caching held back. Nothing to do for a store without cache."""

    @abstractmethod
    def restore(self, records: Iterable[RawRecord]) -> None:
        """Apply changelog records: straight to the rows, without logging, caching or counting."""

    @abstractmethod
    def close(self) -> None: ...


class KeyValueStore(StateStore, Generic[K, V]):
    """Key to value. Keys order as the unsigned bytes of their serialized form; bounds are inclusive, None is open."""

    @abstractmethod
    def get(self, key: K) -> V | None: ...

    @abstractmethod
    def put(self, key: K, value: V | None) -> None:
        """Set, or with None delete."""

    @abstractmethod
    def put_if_absent(self, key: K, value: V | None) -> V | None:
        """Set if there is no value; returns what was there."""

    @abstractmethod
    def put_all(self, entries: Iterable[tuple[K, V | None]]) -> None: ...

    @abstractmethod
    def delete(self, key: K) -> V | None:
        """Remove; returns what was there."""

    @abstractmethod
    def range(self, key_from: K | None, key_to: K | None) -> StoreIterator[tuple[K, V]]: ...

    @abstractmethod
    def reverse_range(self, key_from: K | None, key_to: K | None) -> StoreIterator[tuple[K, V]]: ...

    @abstractmethod
    def all(self) -> StoreIterator[tuple[K, V]]: ...

    @abstractmethod
    def reverse_all(self) -> StoreIterator[tuple[K, V]]: ...

    @abstractmethod
    def prefix_scan(self, prefix: Any, prefix_serde: Serde[Any]) -> StoreIterator[tuple[K, V]]: ...

    @abstractmethod
    def approximate_num_entries(self) -> int: ...

    @abstractmethod
    def set_flush_listener(self, listener: FlushListener, *, send_old_values: bool) -> bool:
        """Ask to be called when the cache is flushed. False if the store has no cache: then nothing is held back."""


TimestampedKeyValueStore = KeyValueStore[K, ValueAndTimestamp[V]]


class WindowStore(StateStore, Generic[K, V]):
    """(key, window start) to value, for as long as the retention lasts. Time bounds are inclusive, key bounds too (None: open)."""

    @abstractmethod
    def put(self, key: K, value: V | None, window_start: int) -> None: ...

    @abstractmethod
    def fetch(self, key: K, time: int) -> V | None: ...

    @abstractmethod
    def fetch_between(self, key: K, time_from: int, time_to: int) -> StoreIterator[tuple[int, V]]: ...

    @abstractmethod
    def backward_fetch_between(self, key: K, time_from: int, time_to: int) -> StoreIterator[tuple[int, V]]: ...

    @abstractmethod
    def fetch_range(
        self, key_from: K | None, key_to: K | None, time_from: int, time_to: int
    ) -> StoreIterator[tuple[Windowed[K], V]]: ...

    @abstractmethod
    def backward_fetch_range(
        self, key_from: K | None, key_to: K | None, time_from: int, time_to: int
    ) -> StoreIterator[tuple[Windowed[K], V]]: ...

    @abstractmethod
    def fetch_all(self, time_from: int, time_to: int) -> StoreIterator[tuple[Windowed[K], V]]: ...

    @abstractmethod
    def backward_fetch_all(self, time_from: int, time_to: int) -> StoreIterator[tuple[Windowed[K], V]]: ...

    @abstractmethod
    def all(self) -> StoreIterator[tuple[Windowed[K], V]]: ...

    @abstractmethod
    def backward_all(self) -> StoreIterator[tuple[Windowed[K], V]]: ...

    @abstractmethod
    def set_flush_listener(self, listener: FlushListener, *, send_old_values: bool) -> bool: ...


TimestampedWindowStore = WindowStore[K, ValueAndTimestamp[V]]


class SessionStore(StateStore, Generic[K, V]):
    """(key, session) to value. A session is found if it ends at or after `earliest_end` and starts at or before `latest_start`."""

    @abstractmethod
    def put(self, session: Windowed[K], value: V | None) -> None: ...

    @abstractmethod
    def remove(self, session: Windowed[K]) -> None: ...

    @abstractmethod
    def fetch_session(self, key: K, start: int, end: int) -> V | None: ...

    @abstractmethod
    def fetch(self, key: K) -> StoreIterator[tuple[Windowed[K], V]]: ...

    @abstractmethod
    def backward_fetch(self, key: K) -> StoreIterator[tuple[Windowed[K], V]]: ...

    @abstractmethod
    def fetch_range(self, key_from: K | None, key_to: K | None) -> StoreIterator[tuple[Windowed[K], V]]: ...

    @abstractmethod
    def backward_fetch_range(self, key_from: K | None, key_to: K | None) -> StoreIterator[tuple[Windowed[K], V]]: ...

    @abstractmethod
    def find_sessions(self, key: K, earliest_end: int, latest_start: int) -> StoreIterator[tuple[Windowed[K], V]]: ...

    @abstractmethod
    def backward_find_sessions(
        self, key: K, earliest_end: int, latest_start: int
    ) -> StoreIterator[tuple[Windowed[K], V]]: ...

    @abstractmethod
    def find_sessions_range(
        self, key_from: K | None, key_to: K | None, earliest_end: int, latest_start: int
    ) -> StoreIterator[tuple[Windowed[K], V]]: ...

    @abstractmethod
    def backward_find_sessions_range(
        self, key_from: K | None, key_to: K | None, earliest_end: int, latest_start: int
    ) -> StoreIterator[tuple[Windowed[K], V]]: ...

    @abstractmethod
    def find_ended_sessions(self, earliest_end: int, latest_end: int) -> StoreIterator[tuple[Windowed[K], V]]:
        """All sessions whose end lies in the bounds, ordered by end: what emitting on window close scans."""

    @abstractmethod
    def set_flush_listener(self, listener: FlushListener, *, send_old_values: bool) -> bool: ...


class VersionedKeyValueStore(StateStore, Generic[K, V]):
    """Key to its values over time, as far back as the store's history reaches."""

    VALID_TO_UNDEFINED: Final = -1
    """What `put` returns for the latest version of a key."""
    NOT_PUT: Final = -(2**63)
    """What it returns for one that is too old."""

    @abstractmethod
    def put(self, key: K, value: V | None, timestamp: int) -> int:
        """Set what the key is from that time on, or with None that it is deleted. Returns until when that is so: the time of the
        next version.
        """

    @abstractmethod
    def delete(self, key: K, timestamp: int) -> VersionedRecord[V] | None:
        """Delete from that time on; returns what was valid then."""

    @abstractmethod
    def get(self, key: K, as_of: int | None = None) -> VersionedRecord[V] | None:
        """The latest version, or the one that was valid at some time."""

    @abstractmethod
    def versions(self, key: K, *, reverse: bool = False) -> Iterator[VersionedRecord[V]]:
        """All versions that are known, the earliest first."""


class StoreBuilder(Protocol[S_co]):
    """A store's description; `build()` makes a new, closed store (one per task). Immutable: options change by copy."""

    @property
    def name(self) -> str: ...

    @property
    def logging_enabled(self) -> bool: ...

    @property
    def log_config(self) -> Mapping[str, str]:
        """The user's settings for the changelog topic; the library's own are in topology/internal_topics.py."""

    @property
    def caching_enabled(self) -> bool: ...

    @property
    def is_windowed(self) -> bool:
        """Window and session stores: their changelog is compacted and also deleted by age."""

    @property
    def retention_ms(self) -> int | None: ...

    def build(self) -> S_co: ...
