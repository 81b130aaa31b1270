"""OwnSessionStore: the typed session store. Built by SessionStoreBuilder; the layouts below it are in session_rows.py and
memory_window_rows.py.
"""

from __future__ import annotations

from typing import Any, TypeVar

from streamfleet.durations import LONG_MAX
from streamfleet.records import SessionWindow, Windowed
from streamfleet.state.api import SessionStore, StoreIterator
from streamfleet.state.builders import SessionStoreBuilder
from streamfleet.state.cached_rows import CachedRows, CachedSessionRows
from streamfleet.state.memory_window_rows import MemorySessionRows
from streamfleet.state.own_store import OwnStore, RowIterator
from streamfleet.state.raw_keys import SESSION_SUFFIX, pack_session, session_bounds
from streamfleet.state.recent_rows import RecentRows
from streamfleet.state.rows_api import Rows, SessionRows
from streamfleet.state.segments import Segments
from streamfleet.state.session_rows import KeyFirstSessionRows, TimeFirstSessionRows
from streamfleet.state.store_home import RowsHome, StoreHome

K = TypeVar("K")
V = TypeVar("V")


class OwnSessionStore(OwnStore, SessionStore[K, V]):
    """Its raw keys are key | end | start."""

    def __init__(self, builder: SessionStoreBuilder[K, V]) -> None:
        super().__init__(builder, is_timestamped=False)
        self._session = builder
        self._recent: RecentRows | None = None

    def open_in(self, home: StoreHome) -> None:
        super().open_in(home)
        memory = home.context.caches.objects
        if isinstance(self._bottom, KeyFirstSessionRows) and memory.max_bytes > 0:
            self._recent = RecentRows(SESSION_SUFFIX, memory)

    def expect_look_back(self, look_back_ms: int) -> None:
        if self._recent is not None:
            self._recent.look_back(look_back_ms)
            self._bottom.remember(self._recent)

    def close(self) -> None:
        if self._recent is not None:
            self._recent.close()
            self._recent = None
        super().close()

    def put(self, session: Windowed[K], value: V | None) -> None:
        raw = self._raw(session)
        self._top.put(raw, self._codec.value_bytes(value))

    def remove(self, session: Windowed[K]) -> None:
        self._top.remove(self._raw(session))

    def fetch_session(self, key: K, start: int, end: int) -> V | None:
        raw_key = self._codec.key_bytes(key)
        if start < 0 or end < 0:
            return None
        value: V | None = self._get(raw_key + pack_session(end, start))
        return value

    def fetch(self, key: K) -> StoreIterator[tuple[Windowed[K], V]]:
        return self._find(key, 0, LONG_MAX, reverse=False)

    def backward_fetch(self, key: K) -> StoreIterator[tuple[Windowed[K], V]]:
        return self._find(key, 0, LONG_MAX, reverse=True)

    def fetch_range(self, key_from: K | None, key_to: K | None) -> StoreIterator[tuple[Windowed[K], V]]:
        return self._find_range(key_from, key_to, 0, LONG_MAX, reverse=False)

    def backward_fetch_range(self, key_from: K | None, key_to: K | None) -> StoreIterator[tuple[Windowed[K], V]]:
        return self._find_range(key_from, key_to, 0, LONG_MAX, reverse=True)

    def find_sessions(self, key: K, earliest_end: int, latest_start: int) -> StoreIterator[tuple[Windowed[K], V]]:
        return self._find(key, earliest_end, latest_start, reverse=False)

    def backward_find_sessions(
        self, key: K, earliest_end: int, latest_start: int
    ) -> StoreIterator[tuple[Windowed[K], V]]:
        return self._find(key, earliest_end, latest_start, reverse=True)

    def find_sessions_range(
        self, key_from: K | None, key_to: K | None, earliest_end: int, latest_start: int
    ) -> StoreIterator[tuple[Windowed[K], V]]:
        return self._find_range(key_from, key_to, earliest_end, latest_start, reverse=False)

    def backward_find_sessions_range(
        self, key_from: K | None, key_to: K | None, earliest_end: int, latest_start: int
    ) -> StoreIterator[tuple[Windowed[K], V]]:
        return self._find_range(key_from, key_to, earliest_end, latest_start, reverse=True)

    def find_ended_sessions(self, earliest_end: int, latest_end: int) -> StoreIterator[tuple[Windowed[K], V]]:
        low, high = max(earliest_end, 0), min(latest_end, LONG_MAX)
        rows = iter(()) if low > high else self._scans.find_ended(low, high)
        return RowIterator(rows, self._decoded)

    def _find(
        self, key: K, earliest_end: int, latest_start: int, *, reverse: bool
    ) -> StoreIterator[tuple[Windowed[K], V]]:
        rows = self._scans.find(self._codec.key_bytes(key), max(earliest_end, 0), latest_start, reverse=reverse)
        return RowIterator(rows, self._decoded)

    def _find_range(
        self, key_from: K | None, key_to: K | None, earliest_end: int, latest_start: int, *, reverse: bool
    ) -> StoreIterator[tuple[Windowed[K], V]]:
        low, high = self._codec.bound_bytes(key_from), self._codec.bound_bytes(key_to)
        rows = self._scans.find_range(low, high, max(earliest_end, 0), latest_start, reverse=reverse)
        return RowIterator(rows, self._decoded)

    def _raw(self, session: Windowed[K]) -> bytes:
        if not isinstance(session, Windowed):
            raise TypeError(f"store {self.name} takes a Windowed session, got {session!r} ({type(session).__name__})")
        window = session.window
        if window.start < 0 or window.end < window.start:
            raise ValueError(f"store {self.name} was given the impossible session {window}")
        raw: bytes = self._codec.key_bytes(session.key) + pack_session(window.end, window.start)
        return raw

    def _decoded(self, raw: bytes, value: bytes) -> tuple[Windowed[K], V]:
        return self._listened_key(raw), self._codec.value_of(value)

    def _listened_key(self, raw: bytes) -> Windowed[Any]:
        end, start = session_bounds(raw)
        return Windowed(self._codec.key_of(raw[:-SESSION_SUFFIX]), SessionWindow(start, end))

    def _make_rows(self, home: RowsHome) -> SessionRows:
        builder = self._session
        rows = home.rows(builder.kind)
        buffer, facts = rows.buffer(self.name), rows.facts(self.name)

        def drop() -> None:
            home.context.drop(self.name, "expired")

        if not self.is_persistent:
            return MemorySessionRows(buffer, facts, builder.retention, drop)
        segments = Segments(buffer, facts, builder.retention, builder.segment_interval_ms, drop)
        return TimeFirstSessionRows(segments) if builder.time_first else KeyFirstSessionRows(segments)

    def _make_cache(self, below: Rows, bottom: SessionRows, home: StoreHome) -> CachedRows:
        return CachedSessionRows(below, bottom, home, self._session.segment_interval_ms)
