"""OwnStore: what the typed stores of all kinds share: life cycle, layers, restore. Iterators over rows are here as
well.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, TypeVar, cast

from streamfleet.errors import StoreUnavailableError
from streamfleet.records import RawRecord
from streamfleet.state.api import FlushListener, StoreContext, StoreIterator
from streamfleet.state.builders import OwnStoreBuilder
from streamfleet.state.cached_rows import CachedRows
from streamfleet.state.codec import StoreCodec
from streamfleet.state.dirty_buffer import DirtyBuffer, Row
from streamfleet.state.logged_rows import TIMESTAMP_SIZE, UNKNOWN_TIMESTAMP, LoggedRows, UnstampedRows
from streamfleet.state.record_cache import CacheEntry, ObjectEntry
from streamfleet.state.rows_api import BottomRows, Rows
from streamfleet.state.store_home import RowsHome, StoreHome
from streamfleet.state.task_store import QueryableStore

T = TypeVar("T")


class ClosedRows:
    """Stands where a store's rows are while it is open: whatever is asked of it fails by name."""

    def __init__(self, store_name: str) -> None:
        self._store_name = store_name

    def __getattr__(self, _: str) -> NoReturn:
        raise StoreUnavailableError(
            f"store {self._store_name} is not open", hint="use a store between init and close of its processor only"
        )


class RowIterator(StoreIterator[T]):
    """Rows, decoded one by one."""

    def __init__(self, rows: Iterator[Row], decode: Callable[[bytes, bytes], T]) -> None:
        self._rows = rows
        self._decode = decode

    def __next__(self) -> T:
        raw, value = next(self._rows)
        return self._decode(raw, value)

    def close(self) -> None:
        self._rows = iter(())  # dropping the generator ends it, down to the engine's iterator


class PeekedRows:
    """Reads cache and rows without leaving a trace in either: who asks from outside must not change what is evicted next."""

    def __init__(self, cache: CachedRows | None, bottom: BottomRows) -> None:
        self._cache = cache
        self._bottom = bottom

    def get(self, raw: bytes) -> bytes | None:
        entry = None if self._cache is None else self._cache.peek(raw)
        return self._bottom.peek(raw) if entry is None else entry.value


class OwnStore(QueryableStore):
    """A typed store over `_top`: the cache if there is one, else the rows with or without log. `_bottom` is for scans
    and restore.
    """

    def __init__(self, builder: OwnStoreBuilder[Any, Any], *, is_timestamped: bool) -> None:
        self.name = builder.name
        self._builder = builder
        self._is_timestamped = is_timestamped
        self._close_layers()

    def _close_layers(self) -> None:
        self._top: Any = ClosedRows(self.name)
        self._scans: Any = self._top
        self._bottom: Any = self._top
        self._codec: Any = self._top
        self._cache: CachedRows | None = None
        self._current: OwnStore | None = None
        self._is_open = False

    @property
    def is_open(self) -> bool:
        return self._is_open

    @property
    def is_persistent(self) -> bool:
        return self._builder.kind == "rocksdb"

    @property
    def is_timestamped(self) -> bool:
        return self._is_timestamped

    @property
    def remembers_commit(self) -> bool:
        return self._builder.is_windowed

    def open(self, context: StoreContext) -> None:
        self.open_in(StoreHome(context))

    def open_in(self, home: StoreHome) -> None:
        builder = self._builder
        self._codec = StoreCodec(
            self.name, builder.key_serde, builder.value_serde, home.context, is_timestamped=self._is_timestamped
        )
        self._bottom = bottom = self._make_rows(home)
        below: Rows = UnstampedRows(bottom) if builder.forgets_timestamps else bottom
        changelog = home.changelog(self.name, home.usual_changelog) if builder.logging_enabled else None
        if changelog is not None:
            below = LoggedRows(
                below,
                changelog,
                home.context,
                is_timestamped=self._is_timestamped,
                logs_headers=builder.logs_headers,
            )
            self._on_logged(bottom, below)
        self._top, self._scans = below, bottom
        if builder.caching_enabled and home.record_cache.max_bytes > 0:  # a cache of no size is no cache
            self._top = self._scans = self._cache = self._make_cache(below, bottom, home)
        self._is_open = True

    def expect_look_back(self, look_back_ms: int) -> None:
        """Told by an operator that asks with every record for rows of its key that are, at most, so much older than the record.
        Most stores have nothing to gain by it.
        """

    def current_view(self) -> OwnStore:
        if self._current is None:
            self._current = cast("OwnStore", self._builder.build())
            self._current.open_view(self._codec, self._bottom, PeekedRows(self._cache, self._bottom), self._scans)
        return self._current

    def committed_view(self, home: RowsHome) -> OwnStore:
        view = cast("OwnStore", self._builder.build())
        view.open_committed(self._codec, home)
        return view

    @property
    def _scanned(self) -> DirtyBuffer:
        return cast("DirtyBuffer", self._bottom.buffer)

    def open_view(self, codec: StoreCodec, bottom: Any, top: Any, scans: Any) -> None:
        """Become a view, for reads only, over layers that belong to another store."""
        self._codec, self._bottom, self._top, self._scans = codec, bottom, top, scans
        self._is_open = True

    def open_committed(self, codec: StoreCodec, home: RowsHome) -> None:
        rows = self._make_rows(home)
        self.open_view(codec, rows, rows, rows)

    @property
    def bottom(self) -> BottomRows:
        """The rows as they are in the engine, for who reads all of them."""
        return cast("BottomRows", self._bottom)

    @property
    def keeps_timestamps(self) -> bool:
        """Whether the timestamp in a row is that of its changelog record."""
        return self._is_timestamped and not self._builder.forgets_timestamps

    @property
    def codec(self) -> StoreCodec:
        """How keys and values are written; raises StoreUnavailableError while the store is closed."""
        return cast("StoreCodec", self._codec)

    @abstractmethod
    def _make_rows(self, home: RowsHome) -> BottomRows: ...

    @abstractmethod
    def _make_cache(self, below: Rows, bottom: Any, home: StoreHome) -> CachedRows: ...

    @abstractmethod
    def _listened_key(self, raw: bytes) -> Any:
        """The key that a flush listener is given."""

    def _on_logged(self, bottom: BottomRows, logged: LoggedRows) -> None:
        """Called when the store has a changelog."""

    def set_flush_listener(self, listener: FlushListener, *, send_old_values: bool) -> bool:
        if self._cache is None:
            return False
        value_of = self._codec.value_of

        def decoded(raw: bytes, entry: CacheEntry, old: bytes | None, timestamp: int) -> None:
            new = (
                entry.held if isinstance(entry, ObjectEntry) else None if entry.value is None else value_of(entry.value)
            )
            listener(self._listened_key(raw), new, None if old is None else value_of(old), timestamp)

        self._cache.set_listener(decoded, send_old_values=send_old_values)
        return True

    def flush_cache(self) -> None:
        if self._cache is not None:
            self._cache.flush()

    def discard(self) -> None:
        if self._cache is not None:
            self._cache.clear()
        self._bottom.reload()

    def restore(self, records: Iterable[RawRecord]) -> None:
        restore = self._bottom.restore
        for record in records:
            key, value = record.key, record.value
            if key is None:
                continue
            if value is not None and self._is_timestamped:
                forgets = self._builder.forgets_timestamps
                stamp = UNKNOWN_TIMESTAMP if forgets else record.timestamp.to_bytes(TIMESTAMP_SIZE, "big", signed=True)
                value = stamp + value
            self._restored(key)
            restore(key, value)

    def _restored(self, raw: bytes) -> None:
        """Called for every restored record."""

    def close(self) -> None:
        if self._cache is not None:
            self._cache.clear()
        self._close_layers()

    def _get(self, raw: bytes) -> Any:
        data = self._top.get(raw)
        return None if data is None else self._codec.value_of(data)
