"""Aggregating by sliding windows.

A record at time t has a left window [t - difference, t], which ends with it, and a right window [t + 1, t + 1 + difference], which
begins just after it and exists only if a later record falls into it. So a new record joins the windows that contain it, makes its
own left window, and may make two right windows: that of the record before it, and its own. Records earlier than one difference
share the window [0, difference], because no window may begin before 0.
"""

from __future__ import annotations

from typing import Any

from streamfleet.dsl.operators.aggregate import Aggregator, Initializer
from streamfleet.dsl.operators.table_view import AnyProcessor, Row
from streamfleet.dsl.operators.window_close import CloseTimer
from streamfleet.dsl.operators.windowed_aggregate import WindowedAggregateOperator, WindowedAggregateProcessor
from streamfleet.dsl.windows import EmitStrategy, SlidingWindows
from streamfleet.records import Record, TimeWindow, ValueAndTimestamp


class SlidingAggregateOperator(WindowedAggregateOperator):
    def __init__(
        self,
        windows: SlidingWindows,
        store: str,
        emit_strategy: EmitStrategy,
        initializer: Initializer,
        aggregator: Aggregator,
    ) -> None:
        super().__init__(store, emit_strategy, initializer, aggregator)
        self._windows = windows

    def __call__(self) -> AnyProcessor:
        return _SlidingAggregate(
            self._windows,
            self._store,
            self._emit_strategy,
            self._initializer,
            self._aggregator,
            send_old_values=self.send_old_values,
        )


class _SlidingAggregate(WindowedAggregateProcessor):
    def __init__(
        self,
        windows: SlidingWindows,
        store: str,
        emit_strategy: EmitStrategy,
        initializer: Initializer,
        aggregator: Aggregator,
        *,
        send_old_values: bool,
    ) -> None:
        super().__init__(store, emit_strategy, initializer, aggregator, send_old_values=send_old_values)
        self._difference_ms = windows.difference_ms
        self._grace_ms = windows.grace_ms

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None or record.value is None:
            self._internal.drop("null key or value")
            return
        close_time = self._observe(record.timestamp, self._grace_ms)
        if record.timestamp + self._difference_ms < close_time:
            self._internal.drop("expired window")
            return
        if record.timestamp < self._difference_ms:
            self._process_early(record, close_time)  # as in the original, nothing is emitted on close here
            return
        self._process(record, close_time)
        self._emit_closed(record.headers, close_time)

    def _process(self, record: Record[Any, Any], close_time: int) -> None:
        """Walk the key's windows around the record backwards, then make those that are missing."""
        now = record.timestamp
        starts: set[int] = set()
        before: Row | None = None  # the last window that ends before the record: what its left window may begin with
        after: Row | None = None  # the latest window that contains the record: what its right window may begin with
        previous: int | None = None  # timestamp of the record before this one
        has_left = has_right = False
        for start, row in self._windows_of(record.key, max(0, now - 2 * self._difference_ms), now + 1, backward=True):
            starts.add(start)
            end = start + self._difference_ms
            if start == now + 1:
                has_right = True
            elif end > now:
                after = row if after is None else after
                self._update_if_open(record, start, row, close_time)
            elif end == now:
                has_left = True
                self._update_if_open(record, start, row, close_time)
                if row.timestamp >= now:
                    return  # an equal timestamp was here before: all windows exist
                previous = row.timestamp
            else:
                before, previous = row, row.timestamp
                break
        if previous is not None and previous + 1 not in starts and previous + 1 + self._difference_ms >= now:
            self._make_window(record, previous + 1, close_time)
        if not has_left:
            self._make_left_window(record, before, previous, close_time)
        if not has_right:
            self._make_right_window(record, after)

    def _process_early(self, record: Record[Any, Any], close_time: int) -> None:
        now = record.timestamp
        starts: set[int] = set()
        combined: Row | None = None  # the shared window [0, difference]
        after: Row | None = None
        previous: int | None = None
        has_right = False
        for start, row in self._windows_of(record.key, 0, now + 1, backward=False):
            starts.add(start)
            if start == 0:
                combined = row
                if row.timestamp < now:
                    previous = row.timestamp
            elif start <= now:
                after = row
                self._update_if_open(record, start, row, close_time)
            else:
                has_right = True
        if after is None and combined is not None and combined.timestamp > now:
            after = combined
        if not has_right:
            self._make_right_window(record, after)
        if previous is not None and previous + 1 not in starts:
            self._make_window(record, previous + 1, close_time)
        if combined is None:
            self._make_window(record, 0, close_time)
        else:
            self._update_if_open(record, 0, combined, close_time)

    def _windows_of(self, key: Any, time_from: int, time_to: int, *, backward: bool) -> list[tuple[int, Row]]:
        """Taken as a list: windows are written while they are walked."""
        fetch = self._store.backward_fetch_between if backward else self._store.fetch_between
        with fetch(key, time_from, time_to) as windows:
            return list(windows)

    def _make_left_window(
        self, record: Record[Any, Any], before: Row | None, previous: int | None, close_time: int
    ) -> None:
        start = record.timestamp - self._difference_ms
        if before is not None and previous is not None and start <= previous:
            self._update_if_open(record, start, ValueAndTimestamp(before.value, record.timestamp), close_time)
        else:
            self._make_window(record, start, close_time)

    def _make_right_window(self, record: Record[Any, Any], after: Row | None) -> None:
        """The record itself is not in its right window: it takes over the aggregate of the later records as it is."""
        if after is not None and after.timestamp > record.timestamp:
            start = record.timestamp + 1
            window = TimeWindow(start, start + self._difference_ms)
            place = self._rows.locate(record.key, window.start)
            self._put(record.key, record.headers, window, place, after.value, None, after.timestamp)

    def _make_window(self, record: Record[Any, Any], start: int, close_time: int) -> None:
        self._update_if_open(record, start, None, close_time)

    def _update_if_open(self, record: Record[Any, Any], start: int, row: Row | None, close_time: int) -> None:
        end = start + self._difference_ms
        if end >= close_time:
            key, place = record.key, self._rows.locate(record.key, start)
            self._update(key, record.value, record.timestamp, record.headers, TimeWindow(start, end), row, place)
        else:
            self._internal.drop("expired window")

    def _closed_starts(self, timer: CloseTimer, close_time: int) -> tuple[int, int] | None:
        highest = close_time - self._difference_ms - 1
        if highest < 0:
            return None
        return max(0, timer.last_close_time - self._difference_ms) if timer.has_emitted else 0, highest
