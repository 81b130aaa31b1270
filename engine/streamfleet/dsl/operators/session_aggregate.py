"""Aggregating by session windows: a record joins, and may merge, all sessions of its key within the gap.

A merged session is deleted and forwarded as a delete, at its own end, before the session that takes its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamfleet.dsl.operators.aggregate import Aggregator, Initializer
from streamfleet.dsl.operators.table_view import (
    AnyProcessor,
    SessionForwarder,
    SessionStoreGetter,
    TableOperator,
    TableView,
    expect_look_back,
    internal,
)
from streamfleet.dsl.operators.window_close import CloseTimer
from streamfleet.dsl.windows import EmitStrategy, SessionWindows
from streamfleet.processor.api import ProcessorContext
from streamfleet.records import NO_TIMESTAMP, Change, Record, SessionWindow, Windowed

Merger = Callable[[Any, Any, Any], Any]
"""f(key, aggregate, aggregate of a merged session) -> aggregate"""


class SessionAggregateOperator(TableOperator):
    def __init__(
        self,
        windows: SessionWindows,
        store: str,
        emit_strategy: EmitStrategy,
        initializer: Initializer,
        aggregator: Aggregator,
        merger: Merger,
    ) -> None:
        self._windows = windows
        self._store = store
        self._emit_strategy = emit_strategy
        self._initializer = initializer
        self._aggregator = aggregator
        self._merger = merger

    def __call__(self) -> AnyProcessor:
        return _SessionAggregate(
            self._windows,
            self._store,
            self._emit_strategy,
            self._initializer,
            self._aggregator,
            self._merger,
            send_old_values=self.send_old_values,
        )

    def enable_sending_old_values(self, *, force: bool) -> bool:
        self.send_old_values = True
        return True

    def view(self) -> TableView:
        store = self._store
        return TableView((store,), lambda: SessionStoreGetter(store))


class _SessionAggregate(AnyProcessor):
    def __init__(
        self,
        windows: SessionWindows,
        store: str,
        emit_strategy: EmitStrategy,
        initializer: Initializer,
        aggregator: Aggregator,
        merger: Merger,
        *,
        send_old_values: bool,
    ) -> None:
        self._gap_ms = windows.gap_ms
        self._grace_ms = windows.grace_ms
        self._store_name = store
        self._emits_on_close = emit_strategy is EmitStrategy.ON_WINDOW_CLOSE
        self._initializer = initializer
        self._aggregator = aggregator
        self._merger = merger
        self._send_old_values = send_old_values

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self.context = context
        self._internal = internal(context)
        self._stream_time = NO_TIMESTAMP
        self._store = context.get_state_store(self._store_name)
        expect_look_back(self._store, self._gap_ms)
        cached_store = None if self._emits_on_close else self._store
        self._forwarder = SessionForwarder(context, cached_store, send_old_values=self._send_old_values)
        self._timer = CloseTimer(self._internal, self._store_name) if self._emits_on_close else None

    def process(self, record: Record[Any, Any]) -> None:
        key, timestamp = record.key, record.timestamp
        if key is None:
            self._internal.drop("null key")
            return
        self._stream_time = max(self._stream_time, timestamp)
        close_time = self._stream_time - self._grace_ms - self._gap_ms
        with self._store.find_sessions(key, timestamp - self._gap_ms, timestamp + self._gap_ms) as found:
            merged = list(found)
        aggregate = self._initializer()
        start = end = timestamp
        for session, value in merged:
            aggregate = self._merger(key, aggregate, value)
            start, end = min(start, session.window.start), max(end, session.window.end)
        if end < close_time:
            self._internal.drop("expired window")
        else:
            if (start, end) != (timestamp, timestamp):
                self._remove(merged)
            new = self._aggregator(key, record.value, aggregate)
            session = Windowed(key, SessionWindow(start, end))
            self._store.put(session, new)
            self._forward(session, new, None)
        self._emit_closed(record, close_time)

    def _remove(self, sessions: list[tuple[Windowed[Any], Any]]) -> None:
        for session, value in sessions:
            self._store.remove(session)
            self._forward(session, None, value)

    def _forward(self, session: Windowed[Any], new: Any, old: Any) -> None:
        """Without headers, as in the original: the result stems from several records."""
        if not self._emits_on_close and not self._forwarder.is_cached:
            self._forwarder.forward(Record(session, Change(new, old), session.window.end))

    def _emit_closed(self, record: Record[Any, Any], close_time: int) -> None:
        timer = self._timer
        if timer is None or not timer.is_due(close_time):
            return
        earliest, latest = max(0, timer.last_close_time), close_time - 1  # a session includes its end
        if latest < 0 or latest < earliest:
            return
        with self._store.find_ended_sessions(earliest, latest) as closed:
            for session, value in closed:
                change = Change(value, None)
                self._forwarder.forward(Record(session, change, session.window.end, record.headers))
        timer.emitted(close_time)
