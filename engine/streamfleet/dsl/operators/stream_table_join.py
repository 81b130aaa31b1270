"""Streams joined with a table or a global table: each stream record looks up one row; updates of the table join nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamfleet.dsl.operators.table_view import AnyProcessor, TableView, ValueGetter, internal, value_or_none
from streamfleet.processor.api import ProcessorContext
from streamfleet.records import Record

KeySelector = Callable[[Any, Any], Any]
Joiner = Callable[[Any, Any, Any], Any]
"""f(key of the stream record, its value, value of the table) -> result"""


class StreamTableJoinOperator:
    """`select_key` says which row to look up; for a plain table it is the record's own key."""

    def __init__(self, view: TableView, select_key: KeySelector, joiner: Joiner, *, left: bool) -> None:
        self._view = view
        self._select_key = select_key
        self._joiner = joiner
        self._left = left

    def __call__(self) -> AnyProcessor:
        return _StreamTableJoin(self._view.make(), self._select_key, self._joiner, left=self._left)


class _StreamTableJoin(AnyProcessor):
    def __init__(self, table: ValueGetter, select_key: KeySelector, joiner: Joiner, *, left: bool) -> None:
        self._table = table
        self._select_key = select_key
        self._joiner = joiner
        self._left = left

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self.context = context
        self._table.init(internal(context))

    def process(self, record: Record[Any, Any]) -> None:
        key = self._select_key(record.key, record.value)
        if record.value is None or (key is None and not self._left):
            internal(self.context).drop("null join key or value")
            return
        found = None if key is None else value_or_none(self._table.get(key))
        if found is not None or self._left:
            joined = self._joiner(record.key, record.value, found)
            self.context.forward(Record(record.key, joined, record.timestamp, record.headers))

    def close(self) -> None:
        self._table.close()


def own_key(key: Any, _value: Any) -> Any:
    return key
