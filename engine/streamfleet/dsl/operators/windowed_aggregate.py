"""Aggregating a grouped stream by windows: what time and sliding windows share, and time windows themselves."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from streamfleet.dsl.operators.aggregate import Aggregator, Initializer
from streamfleet.dsl.operators.table_view import (
    AnyProcessor,
    PartsProcessor,
    Row,
    TableOperator,
    TableView,
    UpdateForwarder,
    WindowStoreGetter,
    internal,
    window_rows,
)
from streamfleet.dsl.operators.window_close import CloseTimer
from streamfleet.dsl.windows import EmitStrategy, TimeWindows, Windows
from streamfleet.errors import StreamsError
from streamfleet.processor.api import ProcessorContext
from streamfleet.records import NO_TIMESTAMP, Change, Headers, Record, TimeWindow, Windowed


class WindowedAggregateOperator(TableOperator):
    """Supplier of a time-windowed or sliding aggregation."""

    def __init__(
        self, store: str, emit_strategy: EmitStrategy, initializer: Initializer, aggregator: Aggregator
    ) -> None:
        self._store = store
        self._emit_strategy = emit_strategy
        self._initializer = initializer
        self._aggregator = aggregator

    def enable_sending_old_values(self, *, force: bool) -> bool:
        self.send_old_values = True
        return True

    def view(self) -> TableView:
        store = self._store
        return TableView((store,), lambda: WindowStoreGetter(store))


class WindowedAggregateProcessor(AnyProcessor):
    """Stores and forwards what a window's aggregate becomes; on-close strategies forward only windows that have closed.

    Stream time is the processor's own, and starts anew with every task: after a restart, records may be taken that would have
    been late before.
    """

    def __init__(
        self,
        store: str,
        emit_strategy: EmitStrategy,
        initializer: Initializer,
        aggregator: Aggregator,
        *,
        send_old_values: bool,
    ) -> None:
        self._store_name = store
        self._emits_on_close = emit_strategy is EmitStrategy.ON_WINDOW_CLOSE
        self._initializer = initializer
        self._aggregator = aggregator
        self._send_old_values = send_old_values

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self.context = context
        self._internal = internal(context)
        self._stream_time = NO_TIMESTAMP
        self._store = context.get_state_store(self._store_name)
        self._rows = window_rows(self._store)
        cached_store = None if self._emits_on_close else self._store
        self._forwarder = UpdateForwarder(context, cached_store, send_old_values=self._send_old_values)
        self._timer = CloseTimer(self._internal, self._store_name) if self._emits_on_close else None
        self._forwards_at_once = not self._emits_on_close and not self._forwarder.is_cached

    def _observe(self, timestamp: int, grace_ms: int) -> int:
        """Move stream time on; returns the close time: windows that ended before it take no more records."""
        if timestamp > self._stream_time:  # noqa: PLR1730  (as above)
            self._stream_time = timestamp
        return self._stream_time - grace_ms

    def _update(
        self, key: Any, value: Any, timestamp: int, headers: Headers, window: TimeWindow, row: Row | None, place: Any
    ) -> None:
        """Add the record to a window whose row is known (None: it has none), and where it is."""
        if row is None:
            old = self._initializer()
        else:
            old = row.value
            if row.timestamp > timestamp:  # noqa: PLR1730  (once per record: a call costs more)
                timestamp = row.timestamp
        self._put(key, headers, window, place, self._aggregator(key, value, old), old, timestamp)

    def _put(
        self, key: Any, headers: Headers, window: TimeWindow, place: Any, new: Any, old: Any, timestamp: int
    ) -> None:
        self._rows.put_at(place, window.start, new, timestamp)
        if self._forwards_at_once:
            change = Change(new, old if self._send_old_values else None)
            self._internal.forward_parts(Windowed(key, window), change, timestamp, headers)

    def _emit_closed(self, headers: Headers, close_time: int) -> None:
        timer = self._timer
        if timer is None or not timer.is_due(close_time):
            return
        bounds = self._closed_starts(timer, close_time)
        if bounds is None:
            return
        with self._store.fetch_all(*bounds) as closed:
            for key, row in closed:
                if row.timestamp < 0:
                    raise _without_timestamp(self._store_name)
                self._forwarder.forward(Record(key, Change(row.value, None), row.timestamp, headers))
        timer.emitted(close_time)

    @abstractmethod
    def _closed_starts(self, timer: CloseTimer, close_time: int) -> tuple[int, int] | None:
        """Lowest and highest start of windows that have closed since the last time; None if there can be none."""


def _without_timestamp(store: str) -> StreamsError:
    return StreamsError(
        f"a closed window cannot be emitted: store {store} keeps no timestamps",
        hint="make it with Stores.timestamped_window, or give only a name",
    )


class TimeWindowedAggregateOperator(WindowedAggregateOperator):
    """Tumbling, hopping and unlimited windows."""

    def __init__(
        self,
        windows: Windows,
        store: str,
        emit_strategy: EmitStrategy,
        initializer: Initializer,
        aggregator: Aggregator,
        *,
        has_least_retention: bool,
    ) -> None:
        super().__init__(store, emit_strategy, initializer, aggregator)
        self._windows = windows
        self._has_least_retention = has_least_retention

    def __call__(self) -> AnyProcessor:
        return _TimeWindowedAggregate(
            self._windows,
            self._store,
            self._emit_strategy,
            self._initializer,
            self._aggregator,
            send_old_values=self.send_old_values,
            has_least_retention=self._has_least_retention,
        )


class _TimeWindowedAggregate(WindowedAggregateProcessor, PartsProcessor):
    def __init__(
        self,
        windows: Windows,
        store: str,
        emit_strategy: EmitStrategy,
        initializer: Initializer,
        aggregator: Aggregator,
        *,
        send_old_values: bool,
        has_least_retention: bool,
    ) -> None:
        super().__init__(store, emit_strategy, initializer, aggregator, send_old_values=send_old_values)
        self._windows = windows
        self._has_least_retention = has_least_retention

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        super().init(context)
        self._windows_known: tuple[TimeWindow, ...] = ()
        self._known_from = self._known_until = NO_TIMESTAMP
        # Such a store in memory forgets a window as soon as it sees the record that closes it: then it must be emitted before.
        self._emits_first = self._has_least_retention and not self._store.is_persistent

    def process_parts(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is None:
            self._internal.drop("null key")
            return
        close_time = self._observe(timestamp, self._windows.grace_ms)
        if self._emits_first:
            self._emit_closed(headers, close_time)
        rows = self._rows
        for window in (
            self._windows_known if self._known_from <= timestamp < self._known_until else self._windows_for(timestamp)
        ):
            start = window.start
            if window.end > close_time:
                place = rows.locate(key, start)
                self._update(key, value, timestamp, headers, window, rows.get_at(place, start), place)
            else:
                self._internal.drop("expired window")
        if self._timer is not None and not self._emits_first:
            self._emit_closed(headers, close_time)

    def _windows_for(self, timestamp: int) -> tuple[TimeWindow, ...]:
        """Most records are of the window that the record before was of: one window alone is known until its end."""
        windows = tuple(self._windows.windows_for(timestamp))
        if isinstance(self._windows, TimeWindows) and self._windows.advance_ms == self._windows.size_ms:
            [window] = self._windows_known = windows
            self._known_from, self._known_until = window.start, window.end
        return windows

    def _closed_starts(self, timer: CloseTimer, close_time: int) -> tuple[int, int] | None:
        highest = close_time - self._windows.size_ms
        if highest < 0:
            return None
        if not timer.has_emitted:
            return 0, highest
        lowest = max(0, timer.last_close_time - self._windows.size_ms) + 1
        if list(self._windows.windows_for(highest)) == list(self._windows.windows_for(lowest - 1)):
            return None  # close time has not reached the end of another window
        return lowest, highest
