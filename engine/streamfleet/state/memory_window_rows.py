"""Window and session rows in the memory engine. They are forgotten exactly when their time is over, and come in the order of time.

    0x00 | time (8) | key | rest        the value; time and rest: start and sequence, or a session's end and start
    0x01 | raw key                      index, without value

Kafka Streams' in-memory stores behave the same way, down to the order of sessions that end together: the later start comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

from streamfleet.durations import LONG_MAX
from streamfleet.state.dirty_buffer import DirtyBuffer, Row
from streamfleet.state.engine_rows import StoreFacts
from streamfleet.state.raw_keys import (
    SESSION_SUFFIX,
    WINDOW_SUFFIX,
    is_between,
    pack_time,
    session_bounds,
)
from streamfleet.state.rows_api import BottomRows, SessionRows, WindowRows
from streamfleet.state.window_rows import AFTER_EVERYTHING

_BASE = b"\x00"
_INDEX = b"\x01"
_AFTER_BASE = b"\x01"


class _TimedRows(BottomRows):
    """Expiry and lookup, common to both. `suffix` is the length of what follows the key in a raw key: time (8) and rest."""

    def __init__(
        self, buffer: DirtyBuffer, facts: StoreFacts, retention_ms: int, suffix: int, drop: Callable[[], None]
    ) -> None:
        self.buffer = buffer
        self._facts = facts
        self._retention_ms = retention_ms
        self._suffix = suffix
        self._rest = suffix - 8
        self._drop = drop
        self._oldest = 0
        """No row is older; so most puts need not look for expired rows."""

    def get(self, raw: bytes) -> bytes | None:
        return self.buffer.get(self._base_key(raw))

    def put(self, raw: bytes, value: bytes | None) -> None:
        if self._is_in_time(raw):
            self._set(raw, value)
        else:
            self._drop()

    def remove(self, raw: bytes) -> None:
        self._set(raw, None)

    def restore(self, raw: bytes, value: bytes | None) -> None:
        if self._is_in_time(raw):
            self._set(raw, value)

    def reload(self) -> None:
        self._oldest = 0

    def raw_key(self, stored: bytes) -> bytes | None:
        return self._raw_key(stored) if stored.startswith(_BASE) else None

    @property
    def oldest_readable_ms(self) -> int:
        return self._facts.observed_time - self._retention_ms + 1

    def _is_in_time(self, raw: bytes) -> bool:
        at = len(raw) - self._suffix
        time = int.from_bytes(raw[at : at + 8], "big")
        if time > self._facts.observed_time:
            self._facts.observed_time = time
            self._expire()
        return time > self._facts.observed_time - self._retention_ms

    def _set(self, raw: bytes, value: bytes | None) -> None:
        if value is None:
            self.buffer.delete(self._base_key(raw))
            self.buffer.delete(_INDEX + raw)
            return
        at = len(raw) - self._suffix
        self._oldest = min(self._oldest, int.from_bytes(raw[at : at + 8], "big"))
        self.buffer.put(self._base_key(raw), value)
        self.buffer.put(_INDEX + raw, b"")

    def _expire(self) -> None:
        oldest_live = self._facts.observed_time - self._retention_ms + 1
        if oldest_live <= self._oldest:
            return
        end = _BASE + pack_time(oldest_live)
        expired = [key for key, _ in self.buffer.scan(_BASE, end)]
        if expired:
            self.buffer.delete_range(_BASE, end)
            for base in expired:
                self.buffer.delete(_INDEX + self._raw_key(base))
        first = next(self.buffer.scan(_BASE, _AFTER_BASE), None)
        self._oldest = LONG_MAX if first is None else int.from_bytes(first[0][1:9], "big")

    def _in_time_order(self, time_from: int, time_to: int, *, reverse: bool) -> Iterator[Row]:
        low = _BASE + pack_time(time_from)
        high = _BASE + pack_time(time_to + 1) if time_to < LONG_MAX else _AFTER_BASE
        for base, value in self.buffer.scan(low, high, reverse=reverse):
            yield self._raw_key(base), value

    def _of_key(self, key: bytes, time_from: int, time_to: int, *, reverse: bool) -> Iterator[Row]:
        low = _INDEX + key + pack_time(time_from)
        high = _INDEX + key + pack_time(time_to) + AFTER_EVERYTHING
        length = len(key) + self._suffix
        for index, _ in self.buffer.scan(low, high, reverse=reverse):
            raw = index[1:]
            if len(raw) == length and (value := self.get(raw)) is not None:
                yield raw, value

    def _base_key(self, raw: bytes) -> bytes:
        at = len(raw) - self._suffix
        return _BASE + raw[at : at + 8] + raw[:at] + raw[at + 8 :]

    def _raw_key(self, base: bytes) -> bytes:
        end = len(base) - self._rest
        return base[9:end] + base[1:9] + base[end:]


class MemoryWindowRows(_TimedRows, WindowRows):
    """Window rows, ordered by start, then key."""

    def __init__(
        self,
        buffer: DirtyBuffer,
        facts: StoreFacts,
        retention_ms: int,
        drop: Callable[[], None],
        *,
        retain_duplicates: bool,
    ) -> None:
        super().__init__(buffer, facts, retention_ms, WINDOW_SUFFIX, drop)
        self._retain_duplicates = retain_duplicates

    def fetch(self, key: bytes, time_from: int, time_to: int, *, reverse: bool) -> Iterator[Row]:
        return self._of_key(key, time_from, time_to, reverse=reverse)

    def fetch_range(
        self, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int, *, reverse: bool
    ) -> Iterator[Row]:
        for row in self._in_time_order(time_from, time_to, reverse=reverse):
            if is_between(row[0][:-WINDOW_SUFFIX], key_from, key_to):
                yield row

    def all(self, *, reverse: bool) -> Iterator[Row]:
        return self._in_time_order(0, LONG_MAX, reverse=reverse)

    def _set(self, raw: bytes, value: bytes | None) -> None:
        if value is None and self._retain_duplicates:
            return  # there is no single row that this could mean
        super()._set(raw, value)


class MemorySessionRows(_TimedRows, SessionRows):
    """Session rows, ordered by end, then key, then start, the latest first."""

    def __init__(self, buffer: DirtyBuffer, facts: StoreFacts, retention_ms: int, drop: Callable[[], None]) -> None:
        super().__init__(buffer, facts, retention_ms, SESSION_SUFFIX, drop)

    def find(self, key: bytes, earliest_end: int, latest_start: int, *, reverse: bool) -> Iterator[Row]:
        rows = self._of_key(key, earliest_end, LONG_MAX, reverse=reverse)
        return _later_start_first(rows, latest_start)

    def find_range(
        self, key_from: bytes | None, key_to: bytes | None, earliest_end: int, latest_start: int, *, reverse: bool
    ) -> Iterator[Row]:
        for row in _later_start_first(self._in_time_order(earliest_end, LONG_MAX, reverse=reverse), latest_start):
            if is_between(row[0][:-SESSION_SUFFIX], key_from, key_to):
                yield row

    def find_ended(self, earliest_end: int, latest_end: int) -> Iterator[Row]:
        return _later_start_first(self._in_time_order(earliest_end, latest_end, reverse=False), LONG_MAX)


def _later_start_first(rows: Iterator[Row], latest_start: int) -> Iterator[Row]:
    """Turns round the sessions of one key that end together (for a reverse scan: back)."""
    for _, group in groupby(rows, key=_key_and_end):
        for row in reversed(list(group)):
            if session_bounds(row[0])[1] <= latest_start:
                yield row


def _key_and_end(row: Row) -> bytes:
    return row[0][:-8]
