"""Aggregating a grouped stream: count, reduce and aggregate, one row per key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamfleet.dsl.operators.table_view import (
    AnyProcessor,
    PartsProcessor,
    TableOperator,
    TableView,
    UpdateForwarder,
    internal,
    store_view,
    table_rows,
)
from streamfleet.processor.api import ProcessorContext
from streamfleet.records import Change, Headers

Initializer = Callable[[], Any]
Aggregator = Callable[[Any, Any, Any], Any]
"""f(key, value, aggregate) -> aggregate"""


class StreamAggregateOperator(TableOperator):
    """A reduce is an aggregate whose initializer gives None: then its aggregator returns the first value as it is."""

    def __init__(self, store: str, initializer: Initializer, aggregator: Aggregator) -> None:
        self._store = store
        self._initializer = initializer
        self._aggregator = aggregator

    def __call__(self) -> AnyProcessor:
        return _StreamAggregate(self._store, self._initializer, self._aggregator, send_old_values=self.send_old_values)

    def enable_sending_old_values(self, *, force: bool) -> bool:
        self.send_old_values = True
        return True

    def view(self) -> TableView:
        return store_view(self._store)


class _StreamAggregate(PartsProcessor):
    def __init__(self, store: str, initializer: Initializer, aggregator: Aggregator, *, send_old_values: bool) -> None:
        self._store_name = store
        self._initializer = initializer
        self._aggregator = aggregator
        self._send_old_values = send_old_values

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self.context = internal(context)
        store = context.get_state_store(self._store_name)
        rows = table_rows(store)
        self._locate, self._get_at, self._put_at = rows.locate, rows.get_at, rows.put_at
        forwarder = UpdateForwarder(context, store, send_old_values=self._send_old_values)
        self._forwards_at_once = self.context.has_children and not forwarder.is_cached

    def process_parts(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is None or value is None:
            self.context.drop("null key or value")
            return
        place = self._locate(key)
        row = self._get_at(place)
        if row is None:
            old = self._initializer()
        else:
            old = row.value
            if row.timestamp > timestamp:  # noqa: PLR1730  (once per record: a call costs more)
                timestamp = row.timestamp
        new = self._aggregator(key, value, old)
        is_latest = self._put_at(place, new, timestamp)
        if is_latest is not None and self._forwards_at_once:
            change = Change(new, old if self._send_old_values else None, is_latest)
            self.context.forward_parts(key, change, timestamp, headers)


def zero() -> int:
    return 0


def nothing() -> None:
    return None


def count_one(_key: Any, _value: Any, count: int) -> int:
    return count + 1


def reducing(reducer: Callable[[Any, Any], Any]) -> Aggregator:
    """An aggregator from a reducer f(aggregate, value)."""

    def aggregate(_key: Any, value: Any, aggregate: Any) -> Any:
        return value if aggregate is None else reducer(aggregate, value)

    return aggregate
