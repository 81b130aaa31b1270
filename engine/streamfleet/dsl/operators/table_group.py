"""Grouping and aggregating a table: what a changed row takes away from its old group, and what it adds to its new one.

The change travels through an internal topic, because the groups of the old and the new value may be in different partitions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamfleet.dsl.operators.stateless import as_pair
from streamfleet.dsl.operators.table_view import (
    AnyProcessor,
    TableOperator,
    TableView,
    UpdateForwarder,
    store_view,
    table_rows,
    value_or_none,
)
from streamfleet.errors import StreamsError
from streamfleet.processor.api import ProcessorContext
from streamfleet.records import Change, Record

Selector = Callable[[Any, Any], tuple[Any, Any]]
Aggregator = Callable[[Any, Any, Any], Any]
"""f(key, value, aggregate) -> aggregate"""


class TableRepartitionMapOperator:
    """Selects group and value for the old and the new row of a change."""

    uses_versions = False

    def __init__(self, selector: Selector) -> None:
        self._selector = selector

    def __call__(self) -> AnyProcessor:
        return _TableRepartitionMap(self._selector, uses_versions=self.uses_versions)


class _TableRepartitionMap(AnyProcessor):
    def __init__(self, selector: Selector, *, uses_versions: bool) -> None:
        self._selector = selector
        self._uses_versions = uses_versions

    def process(self, record: Record[Any, Change[Any]]) -> None:
        if record.key is None:
            raise StreamsError("the key of a grouped table is null", hint="a table never has such a row: report this")
        change = record.value
        if self._uses_versions and not change.is_latest:
            return
        new = self._selected(record.key, change.new)
        old = self._selected(record.key, change.old)
        if new is not None and old is not None and new[0] == old[0]:
            self._forward(record, new[0], Change(new[1], old[1], change.is_latest))
            return
        if old is not None:
            self._forward(record, old[0], Change(None, old[1], change.is_latest))
        if new is not None:
            self._forward(record, new[0], Change(new[1], None, change.is_latest))

    def _selected(self, key: Any, value: Any) -> tuple[Any, Any] | None:
        """None where there is no value, or where the selector leaves the row out: by None, or by a null key or value."""
        selected = None if value is None else self._selector(key, value)
        if selected is None:
            return None
        group, grouped = as_pair(selected, "group_by")
        return None if group is None or grouped is None else (group, grouped)

    def _forward(self, record: Record[Any, Any], group: Any, change: Change[Any]) -> None:
        self.context.forward(Record(group, change, record.timestamp, record.headers))


class TableAggregateOperator(TableOperator):
    """Takes the old value out of its group's aggregate first, then adds the new one.

    `initializer` None is a reduce: then the first value is the aggregate.
    """

    def __init__(
        self, store: str, initializer: Callable[[], Any] | None, adder: Aggregator, subtractor: Aggregator
    ) -> None:
        self._store = store
        self._initializer = initializer
        self._adder = adder
        self._subtractor = subtractor

    def __call__(self) -> AnyProcessor:
        return _TableAggregate(
            self._store, self._initializer, self._adder, self._subtractor, send_old_values=self.send_old_values
        )

    def enable_sending_old_values(self, *, force: bool) -> bool:
        self.send_old_values = True
        return True

    def view(self) -> TableView:
        return store_view(self._store)


class _TableAggregate(AnyProcessor):
    def __init__(
        self,
        store: str,
        initializer: Callable[[], Any] | None,
        adder: Aggregator,
        subtractor: Aggregator,
        *,
        send_old_values: bool,
    ) -> None:
        self._store_name = store
        self._initializer = initializer
        self._adder = adder
        self._subtractor = subtractor
        self._send_old_values = send_old_values

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self.context = context
        store = context.get_state_store(self._store_name)
        self._rows = table_rows(store)
        self._forwarder = UpdateForwarder(context, store, send_old_values=self._send_old_values)

    def process(self, record: Record[Any, Change[Any]]) -> None:
        if record.key is None:
            raise StreamsError(f"the group key of an aggregated table is null (store {self._store_name})")
        row = self._rows.get(record.key)
        old = value_or_none(row)
        change = record.value
        timestamp = record.timestamp
        aggregate = old
        if change.old is not None and old is not None:
            aggregate = self._subtractor(record.key, change.old, old)
            timestamp = max(record.timestamp, row.timestamp)
        if change.new is not None:
            if row is not None and (aggregate is not None or self._initializer is not None):
                timestamp = max(record.timestamp, row.timestamp)
            aggregate = self._added(record.key, change.new, aggregate)
        is_latest = self._rows.put(record.key, aggregate, timestamp)
        if is_latest is not None:
            result = Change(aggregate, old, is_latest)
            self._forwarder.forward(Record(record.key, result, timestamp, record.headers))

    def _added(self, key: Any, value: Any, aggregate: Any) -> Any:
        if aggregate is not None:
            return self._adder(key, value, aggregate)
        return value if self._initializer is None else self._adder(key, value, self._initializer())
