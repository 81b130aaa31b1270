"""Session rows on RocksDB, in segments by the end of the session.

key first (default)     segment | key | end (8) | start (8)                       = segment | raw key
time first              segment | 0x00 | end (8) | start (8) | key                the value
                        segment | 0x01 | key | end (8) | start (8)                index, without value
"""

from __future__ import annotations

from collections.abc import Iterator

from streamfleet.durations import LONG_MAX
from streamfleet.state.dirty_buffer import DirtyBuffer, Row
from streamfleet.state.raw_keys import SESSION_SUFFIX, is_between, pack_time, session_bounds
from streamfleet.state.recent_rows import RecentRows
from streamfleet.state.rows_api import SessionRows
from streamfleet.state.segments import SEGMENT_SIZE, Segments
from streamfleet.state.window_rows import AFTER_EVERYTHING

_BASE = b"\x00"
_INDEX = b"\x01"
_AFTER_BASE = b"\x01"
_AFTER_INDEX = b"\x02"


class KeyFirstSessionRows(SessionRows):
    """The default."""

    def __init__(self, segments: Segments[DirtyBuffer]) -> None:
        self._segments = segments
        self.buffer = segments.buffer
        self._recent: RecentRows | None = None

    def remember(self, recent: RecentRows) -> None:
        self._recent = recent

    def get(self, raw: bytes) -> bytes | None:
        end, _ = session_bounds(raw)
        if end < self._segments.oldest_readable():
            return None
        return self._segments.buffer.get(self._segments.prefix_of(end) + raw)

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
        return raw if session_bounds(raw)[0] >= self.oldest_readable_ms else None

    @property
    def oldest_readable_ms(self) -> int:
        return self._segments.oldest_readable()

    def find(self, key: bytes, earliest_end: int, latest_start: int, *, reverse: bool) -> Iterator[Row]:
        earliest_end = max(earliest_end, self._segments.oldest_readable())
        rows = None
        if self._recent is not None:
            rows = self._recent.between(key, earliest_end, LONG_MAX, reverse=reverse)
        if rows is None:
            low = key + pack_time(earliest_end)
            high = key + pack_time(LONG_MAX) + AFTER_EVERYTHING
            rows = self._segments.scan(low, high, earliest_end, LONG_MAX, reverse=reverse)
        length = len(key) + SESSION_SUFFIX
        for row in rows:
            if len(row[0]) == length and session_bounds(row[0])[1] <= latest_start:
                yield row

    def find_range(
        self, key_from: bytes | None, key_to: bytes | None, earliest_end: int, latest_start: int, *, reverse: bool
    ) -> Iterator[Row]:
        earliest_end = max(earliest_end, self._segments.oldest_readable())
        low = b"" if key_from is None else key_from
        high = AFTER_EVERYTHING if key_to is None else key_to + AFTER_EVERYTHING
        for row in self._segments.scan(low, high, earliest_end, LONG_MAX, reverse=reverse):
            end, start = session_bounds(row[0])
            if end >= earliest_end and start <= latest_start and is_between(row[0][:-SESSION_SUFFIX], key_from, key_to):
                yield row

    def find_ended(self, earliest_end: int, latest_end: int) -> Iterator[Row]:
        rows = self._segments.scan(b"", AFTER_EVERYTHING, earliest_end, latest_end, reverse=False)
        ended = [row for row in rows if earliest_end <= session_bounds(row[0])[0] <= latest_end]
        ended.sort(key=_by_time)
        return iter(ended)

    def _put(self, raw: bytes, value: bytes | None, *, counted: bool) -> None:
        (end, _), recent = session_bounds(raw), self._recent
        if recent is not None and recent.knows_nothing:
            recent.begin(self._segments.observed_time)
        prefix = self._segments.prefix_for_put(end, counted=counted)
        if prefix is None:
            return
        if recent is not None:
            recent.put(raw, value, end)
        if value is None:
            self._segments.buffer.delete(prefix + raw)
        else:
            self._segments.buffer.put(prefix + raw, value)


class TimeFirstSessionRows(SessionRows):
    """Ordered by time as well, so that ended sessions are found without visiting every key."""

    def __init__(self, segments: Segments[DirtyBuffer]) -> None:
        self._segments = segments
        self.buffer = segments.buffer

    def get(self, raw: bytes) -> bytes | None:
        end, _ = session_bounds(raw)
        if end < self._segments.oldest_readable():
            return None
        return self._segments.buffer.get(self._segments.prefix_of(end) + _base_key(raw))

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
        raw = base[17:] + base[1:17]
        return raw if session_bounds(raw)[0] >= self.oldest_readable_ms else None

    @property
    def oldest_readable_ms(self) -> int:
        return self._segments.oldest_readable()

    def find(self, key: bytes, earliest_end: int, latest_start: int, *, reverse: bool) -> Iterator[Row]:
        earliest_end = max(earliest_end, self._segments.oldest_readable())
        low = _INDEX + key + pack_time(earliest_end)
        high = _INDEX + key + pack_time(LONG_MAX) + AFTER_EVERYTHING
        length = len(key) + SESSION_SUFFIX
        for index, _ in self._segments.scan(low, high, earliest_end, LONG_MAX, reverse=reverse):
            raw = index[1:]
            if len(raw) == length and session_bounds(raw)[1] <= latest_start and (value := self.get(raw)) is not None:
                yield raw, value

    def find_range(
        self, key_from: bytes | None, key_to: bytes | None, earliest_end: int, latest_start: int, *, reverse: bool
    ) -> Iterator[Row]:
        earliest_end = max(earliest_end, self._segments.oldest_readable())
        low = _INDEX if key_from is None else _INDEX + key_from
        high = _AFTER_INDEX if key_to is None else _INDEX + key_to + AFTER_EVERYTHING
        for index, _ in self._segments.scan(low, high, earliest_end, LONG_MAX, reverse=reverse):
            raw = index[1:]
            end, start = session_bounds(raw)
            if end < earliest_end or start > latest_start or not is_between(raw[:-SESSION_SUFFIX], key_from, key_to):
                continue
            value = self.get(raw)
            if value is not None:
                yield raw, value

    def find_ended(self, earliest_end: int, latest_end: int) -> Iterator[Row]:
        low = _BASE + pack_time(earliest_end)
        high = _BASE + pack_time(latest_end + 1) if latest_end < LONG_MAX else _AFTER_BASE
        for base, value in self._segments.scan(low, high, earliest_end, latest_end, reverse=False):
            yield base[17:] + base[1:17], value

    def _put(self, raw: bytes, value: bytes | None, *, counted: bool) -> None:
        prefix = self._segments.prefix_for_put(session_bounds(raw)[0], counted=counted)
        if prefix is None:
            return
        buffer = self._segments.buffer
        if value is None:
            buffer.delete(prefix + _base_key(raw))
            buffer.delete(prefix + _INDEX + raw)
        else:
            buffer.put(prefix + _base_key(raw), value)
            buffer.put(prefix + _INDEX + raw, b"")


def _base_key(raw: bytes) -> bytes:
    """From key | end | start to 0x00 | end | start | key."""
    return _BASE + raw[-SESSION_SUFFIX:] + raw[:-SESSION_SUFFIX]


def _by_time(row: Row) -> bytes:
    return row[0][-SESSION_SUFFIX:] + row[0][:-SESSION_SUFFIX]
