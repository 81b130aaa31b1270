"""Window rows on RocksDB, in segments by window start.

    key first (default)     segment | key | start (8) | sequence (4)                  = segment | raw key
    time first              segment | 0x00 | start (8) | key | sequence (4)           the value
                            segment | 0x01 | key | start (8) | sequence (4)           index, without value

Key first serves lookups of one key. Time first also serves scans over all keys in the order of time: for emitting on window close.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamfleet.durations import LONG_MAX
from streamfleet.state.dirty_buffer import DirtyBuffer, Row
from streamfleet.state.raw_keys import WINDOW_SUFFIX, is_between, pack_time, window_start
from streamfleet.state.recent_rows import RecentRows
from streamfleet.state.rows_api import WindowRows
from streamfleet.state.segments import SEGMENT_SIZE, Segments

AFTER_EVERYTHING = b"\xff" * 20
"""Behind every key it is appended to, with whatever suffix."""

_BASE = b"\x00"
_INDEX = b"\x01"
_AFTER_BASE = b"\x01"
_AFTER_INDEX = b"\x02"


class KeyFirstWindowRows(WindowRows):
    """The default."""

    def __init__(self, segments: Segments[DirtyBuffer], *, retain_duplicates: bool) -> None:
        self._segments = segments
        self.admits = segments.admits
        self.buffer = segments.buffer
        self._retain_duplicates = retain_duplicates
        self._recent: RecentRows | None = None

    def remember(self, recent: RecentRows) -> None:
        self._recent = recent

    def is_live(self, start: int) -> bool:
        return self._segments.is_live(start)

    def get(self, raw: bytes) -> bytes | None:
        start = window_start(raw)
        if start < self._segments.oldest_readable():
            return None
        return self._segments.buffer.get(self._segments.prefix_of(start) + raw)

    def put(self, raw: bytes, value: bytes | None) -> None:
        self._put(raw, value, counted=True)

    def remove(self, raw: bytes) -> None:
        self._put(raw, None, counted=False)

    def restore(self, raw: bytes, value: bytes | None) -> None:
        self._forget_recent()
        self._put(raw, value, counted=False)

    def reload(self) -> None:
        self._forget_recent()
        self._segments.reload()

    def _forget_recent(self) -> None:
        if self._recent is not None:
            self._recent.forget()

    def raw_key(self, stored: bytes) -> bytes | None:
        raw = stored[SEGMENT_SIZE:]
        return raw if window_start(raw) >= self.oldest_readable_ms else None

    @property
    def oldest_readable_ms(self) -> int:
        return self._segments.oldest_readable()

    def fetch(self, key: bytes, time_from: int, time_to: int, *, reverse: bool) -> Iterator[Row]:
        time_from = max(time_from, self._segments.oldest_readable())
        if self._recent is not None:
            found = self._recent.between(key, time_from, time_to, reverse=reverse)
            if found is not None:
                return found
        return self._fetch(key, time_from, time_to, reverse=reverse)

    def _fetch(self, key: bytes, time_from: int, time_to: int, *, reverse: bool) -> Iterator[Row]:
        low = key + pack_time(time_from)
        high = key + pack_time(time_to) + AFTER_EVERYTHING
        length = len(key) + WINDOW_SUFFIX
        for row in self._segments.scan(low, high, time_from, time_to, reverse=reverse):
            if len(row[0]) == length:  # else it belongs to another key that begins alike
                yield row

    def fetch_range(
        self, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int, *, reverse: bool
    ) -> Iterator[Row]:
        time_from = max(time_from, self._segments.oldest_readable())
        low = b"" if key_from is None else key_from
        high = AFTER_EVERYTHING if key_to is None else key_to + AFTER_EVERYTHING
        for row in self._segments.scan(low, high, time_from, time_to, reverse=reverse):
            raw = row[0]
            if time_from <= window_start(raw) <= time_to and is_between(raw[:-WINDOW_SUFFIX], key_from, key_to):
                yield row

    def all(self, *, reverse: bool) -> Iterator[Row]:
        return self.fetch_range(None, None, 0, LONG_MAX, reverse=reverse)

    def _put(self, raw: bytes, value: bytes | None, *, counted: bool) -> None:
        if value is None and self._retain_duplicates:
            return  # there is no single row that this could mean
        start, recent = window_start(raw), self._recent
        if recent is not None and recent.knows_nothing:
            recent.begin(self._segments.observed_time)
        prefix = self._segments.prefix_for_put(start, counted=counted)
        if prefix is None:
            return
        if recent is not None:
            recent.put(raw, value, start)
        if value is None:
            self._segments.buffer.delete(prefix + raw)
        else:
            self._segments.buffer.put(prefix + raw, value)


class TimeFirstWindowRows(WindowRows):
    """Ordered by time. Rows are readable one millisecond longer, because a window is emitted when it is exactly that old."""

    def __init__(self, segments: Segments[DirtyBuffer], *, retain_duplicates: bool) -> None:
        self._segments = segments
        self.buffer = segments.buffer
        self._retain_duplicates = retain_duplicates

    def get(self, raw: bytes) -> bytes | None:
        start = window_start(raw)
        if start < self._oldest_readable():
            return None
        return self._segments.buffer.get(self._segments.prefix_of(start) + _base_key(raw))

    def put(self, raw: bytes, value: bytes | None) -> None:
        self._put(raw, value, counted=True)

    def remove(self, raw: bytes) -> None:
        self._put(raw, None, counted=False)

    def restore(self, raw: bytes, value: bytes | None) -> None:
        self._put(raw, value, counted=False)

    def reload(self) -> None:
        self._segments.reload()

    def raw_key(self, stored: bytes) -> bytes | None:
        base = stored[SEGMENT_SIZE:]
        if not base.startswith(_BASE):
            return None
        raw = _raw_key(base)
        return raw if window_start(raw) >= self._oldest_readable() else None

    @property
    def oldest_readable_ms(self) -> int:
        return self._oldest_readable()

    def fetch(self, key: bytes, time_from: int, time_to: int, *, reverse: bool) -> Iterator[Row]:
        time_from = max(time_from, self._oldest_readable())
        low = _INDEX + key + pack_time(time_from)
        high = _INDEX + key + pack_time(time_to) + AFTER_EVERYTHING
        length = len(key) + WINDOW_SUFFIX
        for index, _ in self._segments.scan(low, high, time_from, time_to, reverse=reverse):
            raw = index[1:]
            if len(raw) == length and (value := self.get(raw)) is not None:
                yield raw, value

    def fetch_range(
        self, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int, *, reverse: bool
    ) -> Iterator[Row]:
        """Without bounds of the key in the order of time, else by key."""
        if key_from is None and key_to is None:
            return self._fetch_all(time_from, time_to, reverse=reverse)
        return self._fetch_keys(key_from, key_to, time_from, time_to, reverse=reverse)

    def all(self, *, reverse: bool) -> Iterator[Row]:
        return self._fetch_all(0, LONG_MAX, reverse=reverse)

    def _fetch_all(self, time_from: int, time_to: int, *, reverse: bool) -> Iterator[Row]:
        time_from = max(time_from, self._oldest_readable())
        low = _BASE + pack_time(time_from)
        high = _BASE + pack_time(time_to + 1) if time_to < LONG_MAX else _AFTER_BASE
        for base, value in self._segments.scan(low, high, time_from, time_to, reverse=reverse):
            yield _raw_key(base), value

    def _fetch_keys(
        self, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int, *, reverse: bool
    ) -> Iterator[Row]:
        time_from = max(time_from, self._oldest_readable())
        low = _INDEX if key_from is None else _INDEX + key_from
        high = _AFTER_INDEX if key_to is None else _INDEX + key_to + AFTER_EVERYTHING
        for index, _ in self._segments.scan(low, high, time_from, time_to, reverse=reverse):
            raw = index[1:]
            if time_from <= window_start(raw) <= time_to and is_between(raw[:-WINDOW_SUFFIX], key_from, key_to):
                value = self.get(raw)
                if value is not None:
                    yield raw, value

    def _put(self, raw: bytes, value: bytes | None, *, counted: bool) -> None:
        if value is None and self._retain_duplicates:
            return
        prefix = self._segments.prefix_for_put(window_start(raw), counted=counted)
        if prefix is None:
            return
        buffer = self._segments.buffer
        if value is None:
            buffer.delete(prefix + _base_key(raw))
            buffer.delete(prefix + _INDEX + raw)
        else:
            buffer.put(prefix + _base_key(raw), value)
            buffer.put(prefix + _INDEX + raw, b"")

    def _oldest_readable(self) -> int:
        return max(0, self._segments.oldest_readable(slack_ms=1))


def _base_key(raw: bytes) -> bytes:
    """From key | start | sequence to 0x00 | start | key | sequence."""
    return _BASE + raw[-WINDOW_SUFFIX:-4] + raw[:-WINDOW_SUFFIX] + raw[-4:]


def _raw_key(base: bytes) -> bytes:
    return base[9:-4] + base[1:9] + base[-4:]
