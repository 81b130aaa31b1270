"""Tables derived key by key from another: filter, map values, transform values.

Each may keep its result in a store of its own; without one it is computed again whenever it is read.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from streamfleet.dsl.operators.table_view import (
    AnyProcessor,
    Row,
    TableOperator,
    TableView,
    UpdateForwarder,
    ValueGetter,
    as_row,
    internal,
    store_view,
    table_rows,
    value_or_none,
)
from streamfleet.processor.api import InternalProcessorContext, ProcessorContext, ValueTransformer
from streamfleet.records import NO_TIMESTAMP, Change, Record, RecordContext, ValueAndTimestamp

if TYPE_CHECKING:
    from streamfleet.dsl.ktable import KTable

Compute = Callable[[Any, Any], Any]
"""f(key, value or None) -> derived value or None"""


class DerivedTableOperator(TableOperator):
    """`store` is the name of the operator's own store, None if it has none."""

    def __init__(self, parent: KTable[Any, Any], store: str | None) -> None:
        self._parent = parent
        self._store = store

    def enable_sending_old_values(self, *, force: bool) -> bool:
        if self._store is not None or self._parent.enable_sending_old_values(force=force):
            self.send_old_values = True
        return self.send_old_values

    def view(self) -> TableView:
        if self._store is not None:
            return store_view(self._store)
        parent = self._parent.view()
        return TableView(parent.stores, lambda: self._derived_getter(parent.make()))

    @abstractmethod
    def _derived_getter(self, parent: ValueGetter) -> ValueGetter: ...


class TableFilterOperator(DerivedTableOperator):
    """Keeps the rows a predicate accepts. A row that is not accepted (any more) is forwarded as a delete."""

    uses_versions = False

    def __init__(self, parent: KTable[Any, Any], predicate: Compute, negate: bool, store: str | None) -> None:
        super().__init__(parent, store)
        self._predicate = predicate
        self._negate = negate
        # Old values cost nothing where the parent has a store, and spare deletes of rows that were never there.
        self.send_old_values = parent.enable_sending_old_values(force=False)

    def __call__(self) -> AnyProcessor:
        # In a versioned table such a delete changes history, so it is known to somebody.
        skips = self.send_old_values and not self.uses_versions
        return _DerivedTable(
            self._compute, self._store, send_old_values=self.send_old_values, skip_unknown_deletes=skips
        )

    def _compute(self, key: Any, value: Any) -> Any:
        if value is not None and bool(self._predicate(key, value)) is not self._negate:
            return value
        return None

    def _derived_getter(self, parent: ValueGetter) -> ValueGetter:
        return _DerivedGetter(parent, self._compute)


class TableMapValuesOperator(DerivedTableOperator):
    """A new value for each row; deletes pass as they are."""

    def __init__(self, parent: KTable[Any, Any], function: Compute, store: str | None) -> None:
        super().__init__(parent, store)
        self._function = function

    def __call__(self) -> AnyProcessor:
        return _DerivedTable(
            self._compute, self._store, send_old_values=self.send_old_values, skip_unknown_deletes=False
        )

    def _compute(self, key: Any, value: Any) -> Any:
        return None if value is None else self._function(key, value)

    def _derived_getter(self, parent: ValueGetter) -> ValueGetter:
        return _DerivedGetter(parent, self._compute)


class _DerivedTable(AnyProcessor):
    def __init__(
        self, compute: Compute, store: str | None, *, send_old_values: bool, skip_unknown_deletes: bool
    ) -> None:
        self._compute = compute
        self._store_name = store
        self._send_old_values = send_old_values
        self._skip_unknown_deletes = skip_unknown_deletes

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self.context = context
        store = None if self._store_name is None else context.get_state_store(self._store_name)
        self._rows = None if store is None else table_rows(store)
        self._forwarder = UpdateForwarder(context, store, send_old_values=self._send_old_values)

    def process(self, record: Record[Any, Change[Any]]) -> None:
        change = record.value
        new = self._compute(record.key, change.new)
        old = self._old_value(record.key, change)
        if self._skip_unknown_deletes and new is None and old is None:
            return
        is_latest: bool | None = change.is_latest
        if self._rows is not None:
            is_latest = self._rows.put(record.key, new, record.timestamp)
        if is_latest is not None:
            self._forwarder.forward(record.with_value(Change(new, old, is_latest)))

    def _old_value(self, key: Any, change: Change[Any]) -> Any:
        if not self._send_old_values:
            return None
        return value_or_none(self._rows.get(key)) if self._rows is not None else self._compute(key, change.old)


class _DerivedGetter(ValueGetter):
    def __init__(self, parent: ValueGetter, compute: Compute) -> None:
        self._parent = parent
        self._compute = compute

    def init(self, context: InternalProcessorContext) -> None:
        self._parent.init(context)

    def get(self, key: Any) -> Row | None:
        return self._derived(key, self._parent.get(key))

    @property
    def is_versioned(self) -> bool:
        return self._parent.is_versioned

    def get_as_of(self, key: Any, timestamp: int) -> Row | None:
        return self._derived(key, self._parent.get_as_of(key, timestamp))

    def _derived(self, key: Any, row: Row | None) -> Row | None:
        return None if row is None else as_row(self._compute(key, row.value), row.timestamp)

    def close(self) -> None:
        self._parent.close()


class TableTransformOperator(DerivedTableOperator):
    """A new value for each row and each delete, by an object of the user's that may use stores."""

    def __init__(
        self, parent: KTable[Any, Any], supplier: Callable[[], ValueTransformer[Any, Any, Any]], store: str | None
    ) -> None:
        super().__init__(parent, store)
        self._supplier = supplier

    def __call__(self) -> AnyProcessor:
        return _TransformedTable(self._supplier(), self._store, send_old_values=self.send_old_values)

    def _derived_getter(self, parent: ValueGetter) -> ValueGetter:
        return _TransformedGetter(parent, self._supplier())


class _TransformedTable(_DerivedTable):
    def __init__(
        self, transformer: ValueTransformer[Any, Any, Any], store: str | None, *, send_old_values: bool
    ) -> None:
        super().__init__(transformer.transform, store, send_old_values=send_old_values, skip_unknown_deletes=False)
        self._transformer = transformer

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        super().init(context)
        self._transformer.init(internal(context).without_forward())

    def close(self) -> None:
        self._transformer.close()


class _TransformedGetter(ValueGetter):
    """Computes again on a read, under a record context that tells only what is known of the row: its timestamp."""

    def __init__(self, parent: ValueGetter, transformer: ValueTransformer[Any, Any, Any]) -> None:
        self._parent = parent
        self._transformer = transformer

    def init(self, context: InternalProcessorContext) -> None:
        self._context = context
        self._parent.init(context)
        self._transformer.init(context.without_forward())

    def get(self, key: Any) -> Row | None:
        return self._transformed(key, self._parent.get(key))

    @property
    def is_versioned(self) -> bool:
        return self._parent.is_versioned

    def get_as_of(self, key: Any, timestamp: int) -> Row | None:
        return self._transformed(key, self._parent.get_as_of(key, timestamp))

    def _transformed(self, key: Any, row: Row | None) -> Row | None:
        timestamp = NO_TIMESTAMP if row is None else row.timestamp
        with self._context.as_record(RecordContext("", -1, -1, timestamp)):
            value = self._transformer.transform(key, value_or_none(row))
        return None if value is None else ValueAndTimestamp(value, timestamp)

    def close(self) -> None:
        self._parent.close()
        self._transformer.close()
