"""A topic, or a stream, kept as a table: the newest value of each key."""

from __future__ import annotations

from typing import Any

from streamfleet.dsl.materialized import StoreSpec
from streamfleet.dsl.operators.table_view import (
    AnyProcessor,
    TableOperator,
    TableView,
    UpdateForwarder,
    internal,
    store_view,
    table_rows,
    value_or_none,
)
from streamfleet.processor.api import ProcessorContext
from streamfleet.records import Change, Record


class TableSourceOperator(TableOperator):
    """Has a store only if it was named, or if somebody reads the table or wants old values."""

    def __init__(self, spec: StoreSpec, *, materialize: bool) -> None:
        self._spec = spec
        spec.is_materialized = materialize

    def __call__(self) -> AnyProcessor:
        if not self._spec.is_materialized:
            return _PassingSource()
        return _StoredSource(self._spec.name, send_old_values=self.send_old_values)

    def enable_sending_old_values(self, *, force: bool) -> bool:
        if not force and not self._spec.is_materialized:
            return False
        self.send_old_values = True
        self._spec.is_materialized = True
        return True

    def view(self) -> TableView:
        self._spec.is_materialized = True
        return store_view(self._spec.name)


class _PassingSource(AnyProcessor):
    """Nobody needs the table itself, only its changes."""

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None:
            internal(self.context).drop("null key")
            return
        self.context.forward(record.with_value(Change(record.value, None)))


class _StoredSource(AnyProcessor):
    """Every update is stored and forwarded, equal and out-of-order ones too: the offset decides, not the timestamp."""

    def __init__(self, store: str, *, send_old_values: bool) -> None:
        self._store_name = store
        self._send_old_values = send_old_values

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self.context = context
        store = context.get_state_store(self._store_name)
        self._rows = table_rows(store)
        self._forwarder = UpdateForwarder(context, store, send_old_values=self._send_old_values)

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None:
            internal(self.context).drop("null key")
            return
        old = value_or_none(self._rows.get(record.key)) if self._send_old_values else None
        is_latest = self._rows.put(record.key, record.value, record.timestamp)
        if is_latest is not None:
            self._forwarder.forward(record.with_value(Change(record.value, old, is_latest)))
