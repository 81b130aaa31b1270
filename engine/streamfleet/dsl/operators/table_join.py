"""Table-table joins. An update of either side is joined with the row of the other side, by key; the result is a table again.

Which results there are when one side has no row makes the three kinds: inner needs both, left needs the left one, outer needs one.
"""

from __future__ import annotations

import enum
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
from streamfleet.processor.api import InternalProcessorContext, ProcessorContext
from streamfleet.records import NO_TIMESTAMP, Change, Record

if TYPE_CHECKING:
    from streamfleet.dsl.ktable import KTable

OUT_OF_ORDER = "out-of-order update of a versioned table"

Joiner = Callable[[Any, Any, Any], Any]
"""f(key, value of this side, value of the other side) -> result"""


class JoinSide(enum.Enum):
    """Which of the two rows a result needs, seen from the side whose update is processed."""

    NEEDS_BOTH = "inner"
    NEEDS_THIS = "left side of a left join"
    NEEDS_OTHER = "right side of a left join"
    NEEDS_ONE = "outer"

    def has_result(self, this: Any, other: Any) -> bool:
        if self is JoinSide.NEEDS_BOTH:
            return this is not None and other is not None
        if self is JoinSide.NEEDS_THIS:
            return this is not None
        if self is JoinSide.NEEDS_OTHER:
            return other is not None
        return this is not None or other is not None

    def needs_other_row(self) -> bool:
        return self in (JoinSide.NEEDS_BOTH, JoinSide.NEEDS_OTHER)


class TableJoinOperator(TableOperator):
    """One side of a join: joins updates of `this` with rows of `other`."""

    uses_versions = False

    def __init__(self, this: KTable[Any, Any], other: KTable[Any, Any], joiner: Joiner, side: JoinSide) -> None:
        self._this = this
        self._other = other
        self._joiner = joiner
        self._side = side
        self._this_view = this.view()
        self._other_view = other.view()

    def __call__(self) -> AnyProcessor:
        return _TableJoin(
            self._other_view.make(),
            self._joiner,
            self._side,
            send_old_values=self.send_old_values,
            uses_versions=self.uses_versions,
        )

    def enable_sending_old_values(self, *, force: bool) -> bool:
        self._this.enable_sending_old_values(force=True)
        self._other.enable_sending_old_values(force=True)
        self.send_old_values = True
        return True

    def view(self) -> TableView:
        stores = tuple(dict.fromkeys(self._this_view.stores + self._other_view.stores))
        return TableView(stores, self._joined_getter)

    def _joined_getter(self) -> ValueGetter:
        return _JoinedGetter(self._this_view.make(), self._other_view.make(), self._joiner, self._side)


class _TableJoin(AnyProcessor):
    def __init__(
        self, other: ValueGetter, joiner: Joiner, side: JoinSide, *, send_old_values: bool, uses_versions: bool
    ) -> None:
        self._uses_versions = uses_versions
        self._other = other
        self._joiner = joiner
        self._side = side
        self._send_old_values = send_old_values

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self.context = context
        self._other.init(internal(context))

    def process(self, record: Record[Any, Change[Any]]) -> None:
        if record.key is None:
            internal(self.context).drop("null key")
            return
        if self._uses_versions and not record.value.is_latest:
            internal(self.context).drop(OUT_OF_ORDER)
            return
        row = self._other.get(record.key)
        other = value_or_none(row)
        change = record.value
        if other is None and (self._side.needs_other_row() or (change.new is None and change.old is None)):
            return
        timestamp = record.timestamp if row is None else max(record.timestamp, row.timestamp)
        new = self._joined(record.key, change.new, other)
        old = self._joined(record.key, change.old, other) if self._send_old_values else None
        self.context.forward(Record(record.key, Change(new, old, change.is_latest), timestamp, record.headers))

    def _joined(self, key: Any, this: Any, other: Any) -> Any:
        return self._joiner(key, this, other) if self._side.has_result(this, other) else None

    def close(self) -> None:
        self._other.close()


class _JoinedGetter(ValueGetter):
    def __init__(self, this: ValueGetter, other: ValueGetter, joiner: Joiner, side: JoinSide) -> None:
        self._this = this
        self._other = other
        self._joiner = joiner
        self._side = side

    def init(self, context: InternalProcessorContext) -> None:
        self._this.init(context)
        self._other.init(context)

    def get(self, key: Any) -> Row | None:
        # The side that a result cannot do without is asked first: asking the other one may run user code for nothing.
        first, second = self._this, self._other
        if self._side is JoinSide.NEEDS_OTHER:
            first, second = second, first
        row = first.get(key)
        if row is None and self._side is not JoinSide.NEEDS_ONE:
            return None
        this, other = row, second.get(key)
        if self._side is JoinSide.NEEDS_OTHER:
            this, other = other, this
        if not self._side.has_result(value_or_none(this), value_or_none(other)):
            return None
        timestamp = max(NO_TIMESTAMP if row is None else row.timestamp for row in (this, other))
        return as_row(self._joiner(key, value_or_none(this), value_or_none(other)), timestamp)

    def close(self) -> None:
        self._this.close()
        self._other.close()


class TableJoinMergeOperator(TableOperator):
    """Brings the results of both sides together, and keeps them if the join was given a store."""

    def __init__(self, this: TableJoinOperator, other: TableJoinOperator, store: str | None) -> None:
        self._this = this
        self._other = other
        self._store = store

    def __call__(self) -> AnyProcessor:
        return _TableJoinMerge(self._store, send_old_values=self.send_old_values)

    def enable_sending_old_values(self, *, force: bool) -> bool:
        self._this.enable_sending_old_values(force=True)
        self._other.enable_sending_old_values(force=True)
        self.send_old_values = True
        return True

    def view(self) -> TableView:
        return store_view(self._store) if self._store is not None else self._this.view()


class _TableJoinMerge(AnyProcessor):
    def __init__(self, store: str | None, *, send_old_values: bool) -> None:
        self._store_name = store
        self._send_old_values = send_old_values

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self.context = context
        store = None if self._store_name is None else context.get_state_store(self._store_name)
        self._rows = None if store is None else table_rows(store)
        self._forwarder = UpdateForwarder(context, store, send_old_values=self._send_old_values)

    def process(self, record: Record[Any, Change[Any]]) -> None:
        if self._rows is None:
            self._forwarder.forward(record)
            return
        change = record.value
        is_latest = self._rows.put(record.key, change.new, record.timestamp)
        if is_latest is not None:
            self._forwarder.forward(record.with_value(Change(change.new, change.old, is_latest)))
