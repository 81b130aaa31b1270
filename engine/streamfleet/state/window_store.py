"""OwnWindowStore: the typed window store. Built by WindowStoreBuilder; the layouts below it are in window_rows.py and
memory_window_rows.py.
"""

from __future__ import annotations

from typing import Any, TypeVar

from streamfleet.durations import LONG_MAX
from streamfleet.records import TimeWindow, ValueAndTimestamp, Windowed
from streamfleet.state.api import StoreIterator, WindowStore
from streamfleet.state.builders import WindowStoreBuilder
from streamfleet.state.cached_rows import CachedRows, CachedTimeFirstWindowRows, CachedWindowRows
from streamfleet.state.holding_store import HoldingStore
from streamfleet.state.logged_rows import LoggedRows
from streamfleet.state.memory_window_rows import MemoryWindowRows
from streamfleet.state.own_store import RowIterator
from streamfleet.state.raw_keys import MAX_SEQUENCE, WINDOW_SUFFIX, pack_window, window_start
from streamfleet.state.recent_rows import RecentRows
from streamfleet.state.rows_api import BottomRows, Rows, WindowRows
from streamfleet.state.segments import Segments
from streamfleet.state.store_home import RowsHome, StoreHome
from streamfleet.state.window_rows import KeyFirstWindowRows, TimeFirstWindowRows

K = TypeVar("K")
V = TypeVar("V")


class OwnWindowStore(HoldingStore, WindowStore[K, V]):
    """Its raw keys are key | start | sequence."""

    def __init__(self, builder: WindowStoreBuilder[K, V]) -> None:
        super().__init__(builder, is_timestamped=builder.is_timestamped)
        self._window = builder
        self._retain_duplicates = builder.retain_duplicates
        self._facts: Any = None
        self._last_stored_sequence = 0
        self._recent: RecentRows | None = None
        self._logged: LoggedRows | None = None

    def open_in(self, home: StoreHome) -> None:
        super().open_in(home)
        memory = home.context.caches.objects
        if isinstance(self._bottom, KeyFirstWindowRows) and memory.max_bytes > 0:
            self._recent = RecentRows(WINDOW_SUFFIX, memory)

    def expect_look_back(self, look_back_ms: int) -> None:
        if self._recent is not None:
            self._recent.look_back(look_back_ms)
            self._bottom.remember(self._recent)

    def close(self) -> None:
        if self._recent is not None:
            self._recent.close()
            self._recent = None
        super().close()

    def _may_hold_objects(self) -> bool:
        """Below a cache any row may be one; else time must be told when an object is put, which needs rows that can be told."""
        if self._retain_duplicates or self._builder.forgets_timestamps:
            return False
        return self._cache is not None or isinstance(self._bottom, KeyFirstWindowRows)

    def put(self, key: K, value: V | None, window_start: int) -> None:
        if window_start < 0:
            raise ValueError(f"store {self.name} was given the negative window start {window_start}")
        if self._retain_duplicates:
            data = self._codec.value_bytes(value)
            sequence = self._next_sequence(is_stored=data is not None)
            self._top.put(self._codec.key_bytes(key) + pack_window(window_start, sequence), data)
        else:
            self._put(self._codec.key_bytes(key) + pack_window(window_start, 0), window_start, value)

    def fetch(self, key: K, time: int) -> V | None:
        """With duplicates: the last put, if it was here; as in Kafka Streams a lookup cannot find earlier ones."""
        raw_key = self._codec.key_bytes(key)
        if time < 0 or (self._retain_duplicates and not self.is_persistent):
            return None
        value: V | None = self.get_row(raw_key + pack_window(time, self._last_stored_sequence), time)
        return value

    # for who reads a row and writes it again: its raw key is made once

    def raw_row(self, key: K, window_start: int) -> bytes:
        raw: bytes = self._codec.key_bytes(key) + pack_window(window_start, 0)
        return raw

    def get_row(self, raw: bytes, window_start: int) -> Any:
        return None if self._hides(window_start) else self.get_at(raw)

    def put_row(self, raw: bytes, window_start: int, value: Any, timestamp: int) -> None:
        """`put` of a timestamped store without duplicates; a value of None deletes."""
        if (self._objects is None or self._bottom.admits(window_start)) and self._hold_row(raw, value, timestamp):
            return
        self._put(raw, window_start, None if value is None else ValueAndTimestamp(value, timestamp))

    def _put(self, raw: bytes, window_start: int, value: Any) -> None:
        is_kept = self._objects is None or self._bottom.admits(window_start)
        if not is_kept or not self._hold(raw, value):
            self._forget(raw)
            self._top.put(raw, self._codec.value_bytes(value))

    def _hides(self, window_start: int) -> bool:
        """Whether a row may be held as an object that would be too old to be read."""
        if self._objects is not None:  # once per record: its rows are key first, and hide what they would as well
            return bool(window_start <= self._facts.observed_time - self._window.retention)
        seen = self._seen
        return seen is not None and seen._objects is not None and window_start < self._bottom.oldest_readable_ms  # noqa: SLF001  (as of the store it is a view of)

    def _settle(self, raw: bytes, data: bytes | None) -> None:
        """What has become too old since it was put is logged, as it was then, and not counted as dropped."""
        if self._bottom.is_live(window_start(raw)):
            self._top.put(raw, data)
        elif self._logged is not None:
            self._logged.log_put(raw, data)

    def _on_logged(self, bottom: BottomRows, logged: LoggedRows) -> None:
        self._logged = logged

    def fetch_between(self, key: K, time_from: int, time_to: int) -> StoreIterator[tuple[int, V]]:
        return self._fetch(key, time_from, time_to, reverse=False)

    def backward_fetch_between(self, key: K, time_from: int, time_to: int) -> StoreIterator[tuple[int, V]]:
        return self._fetch(key, time_from, time_to, reverse=True)

    def fetch_range(
        self, key_from: K | None, key_to: K | None, time_from: int, time_to: int
    ) -> StoreIterator[tuple[Windowed[K], V]]:
        return self._fetch_range(key_from, key_to, time_from, time_to, reverse=False)

    def backward_fetch_range(
        self, key_from: K | None, key_to: K | None, time_from: int, time_to: int
    ) -> StoreIterator[tuple[Windowed[K], V]]:
        return self._fetch_range(key_from, key_to, time_from, time_to, reverse=True)

    def fetch_all(self, time_from: int, time_to: int) -> StoreIterator[tuple[Windowed[K], V]]:
        return self._fetch_range(None, None, time_from, time_to, reverse=False)

    def backward_fetch_all(self, time_from: int, time_to: int) -> StoreIterator[tuple[Windowed[K], V]]:
        return self._fetch_range(None, None, time_from, time_to, reverse=True)

    def all(self) -> StoreIterator[tuple[Windowed[K], V]]:
        self.settle()
        return RowIterator(self._scans.all(reverse=False), self._decoded)

    def backward_all(self) -> StoreIterator[tuple[Windowed[K], V]]:
        self.settle()
        return RowIterator(self._scans.all(reverse=True), self._decoded)

    def _fetch(self, key: K, time_from: int, time_to: int, *, reverse: bool) -> StoreIterator[tuple[int, V]]:
        raw_key = self._codec.key_bytes(key)
        times = _readable(time_from, time_to)
        self.settle()
        rows = iter(()) if times is None else self._scans.fetch(raw_key, *times, reverse=reverse)
        return RowIterator(rows, self._decoded_start)

    def _fetch_range(
        self, key_from: K | None, key_to: K | None, time_from: int, time_to: int, *, reverse: bool
    ) -> StoreIterator[tuple[Windowed[K], V]]:
        low, high = self._codec.bound_bytes(key_from), self._codec.bound_bytes(key_to)
        times = _readable(time_from, time_to)
        self.settle()
        rows = iter(()) if times is None else self._scans.fetch_range(low, high, *times, reverse=reverse)
        return RowIterator(rows, self._decoded)

    def _decoded_start(self, raw: bytes, value: bytes) -> tuple[int, V]:
        return window_start(raw), self._codec.value_of(value)

    def _decoded(self, raw: bytes, value: bytes) -> tuple[Windowed[K], V]:
        return self._listened_key(raw), self._codec.value_of(value)

    def _listened_key(self, raw: bytes) -> Windowed[Any]:
        start = window_start(raw)
        end = min(start + self._window.window_size, LONG_MAX)
        return Windowed(self._codec.key_of(raw[:-WINDOW_SUFFIX]), TimeWindow(start, end))

    def _next_sequence(self, *, is_stored: bool) -> int:
        """Deletes use one up as well: they are logged, though they delete nothing."""
        sequence: int = (self._facts.sequence + 1) & MAX_SEQUENCE
        self._facts.sequence = sequence
        if is_stored:
            self._last_stored_sequence = sequence
        return sequence

    def _restored(self, raw: bytes) -> None:
        if self._retain_duplicates:
            self._facts.sequence = int.from_bytes(raw[-4:], "big")

    def _make_rows(self, home: RowsHome) -> WindowRows:
        builder = self._window
        rows = home.rows(builder.kind)
        buffer = rows.buffer(self.name)
        self._facts = facts = rows.facts(self.name)

        def drop() -> None:
            home.context.drop(self.name, "expired")

        if not self.is_persistent:
            return MemoryWindowRows(buffer, facts, builder.retention, drop, retain_duplicates=builder.retain_duplicates)
        segments = Segments(buffer, facts, builder.retention, builder.segment_interval_ms, drop)
        layout = TimeFirstWindowRows if builder.time_first else KeyFirstWindowRows
        return layout(segments, retain_duplicates=builder.retain_duplicates)

    def _make_cache(self, below: Rows, bottom: WindowRows, home: StoreHome) -> CachedRows:
        time_first = self._window.time_first and self.is_persistent
        layout = CachedTimeFirstWindowRows if time_first else CachedWindowRows
        return layout(below, bottom, home, self._window.segment_interval_ms)


def _readable(time_from: int, time_to: int) -> tuple[int, int] | None:
    """Bounds that can be packed; None if nothing lies between them."""
    time_from, time_to = max(time_from, 0), min(time_to, LONG_MAX)
    return None if time_from > time_to else (time_from, time_to)
