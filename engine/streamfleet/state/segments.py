"""Segments: the rows of a windowed store on RocksDB, cut by time, so that old ones go away with one range delete.

    segment (8) = time / interval | key of the row within the segment

A segment lives as long as any time in it is younger than the retention. Within a living segment older rows stay, hidden by whoever
reads (window_rows.py, session_rows.py). Scans go segment by segment: their order is by segment first.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from streamfleet.state.dirty_buffer import DirtyBuffer, Row
from streamfleet.state.engine_rows import StoreFacts
from streamfleet.state.prefixed_buffer import PrefixedBuffer

_SEGMENT = struct.Struct(">q")
SEGMENT_SIZE = 8


BufferT = TypeVar("BufferT", DirtyBuffer, PrefixedBuffer)


class Segments(Generic[BufferT]):
    """`drop` is called for each put into a segment that is gone."""

    def __init__(
        self,
        buffer: BufferT,
        facts: StoreFacts,
        retention_ms: int,
        interval_ms: int,
        drop: Callable[[], None],
    ) -> None:
        self.buffer: BufferT = buffer
        self._facts = facts
        self._retention_ms = retention_ms
        self._interval_ms = interval_ms
        self._drop = drop
        self._first_live = 0
        self._ids: list[int] = []
        self.reload()

    def reload(self) -> None:
        """Find out which segments have rows: one seek for each."""
        self._ids = []
        row = next(self.buffer.scan(b"", None), None)
        while row is not None:
            (segment,) = _SEGMENT.unpack_from(row[0])
            self._ids.append(segment)
            row = next(self.buffer.scan(_SEGMENT.pack(segment + 1), None), None)
        self._first_live = self._first_live_now()

    @property
    def observed_time(self) -> int:
        return self._facts.observed_time

    def oldest_readable(self, slack_ms: int = 0) -> int:
        """Rows with an earlier time are hidden."""
        return self._facts.observed_time - self._retention_ms + 1 - slack_ms

    def observe(self, time: int) -> None:
        """Let time go on, and with it old segments."""
        if time <= self._facts.observed_time:
            return
        self._facts.observed_time = time
        first_live = self._first_live_now()
        if first_live > self._first_live:
            self._first_live = first_live
            gone = bisect_left(self._ids, first_live)
            if gone:
                del self._ids[:gone]
                self.buffer.delete_range(b"", _SEGMENT.pack(first_live))

    def prefix_for_put(self, time: int, *, counted: bool = True) -> bytes | None:
        """Where a row of that time goes; None if its segment is gone."""
        self.observe(time)
        segment = time // self._interval_ms
        if segment < self._first_live:
            if counted:
                self._drop()
            return None
        ids = self._ids
        if not ids or ids[-1] < segment:
            ids.append(segment)
        elif (at := bisect_left(ids, segment)) == len(ids) or ids[at] != segment:
            insort(ids, segment)
        return _SEGMENT.pack(segment)

    def admits(self, time: int) -> bool:
        """Let time go on as `prefix_for_put` does; whether a row of that time would be kept."""
        ids = self._ids
        # Most rows are of the latest segment, and of a time that was seen before.
        if ids and time <= self._facts.observed_time and time // self._interval_ms == ids[-1]:
            return True
        return self.prefix_for_put(time, counted=False) is not None

    def is_live(self, time: int) -> bool:
        return time // self._interval_ms >= self._first_live

    def prefix_of(self, time: int) -> bytes:
        return _SEGMENT.pack(time // self._interval_ms)

    def scan(self, low: bytes, high: bytes, time_from: int, time_to: int, *, reverse: bool) -> Iterator[Row]:
        """Rows with low <= key < high of all segments that touch the times, without their segment."""
        ids = self._ids
        first = bisect_left(ids, time_from // self._interval_ms)
        last = bisect_right(ids, time_to // self._interval_ms)
        chosen = ids[first:last]
        for segment in reversed(chosen) if reverse else chosen:
            prefix = _SEGMENT.pack(segment)
            for key, value in self.buffer.scan(prefix + low, prefix + high, reverse=reverse):
                yield key[SEGMENT_SIZE:], value

    def _first_live_now(self) -> int:
        return max(0, self._facts.observed_time - self._retention_ms) // self._interval_ms
