"""Streams joined with a table or a global table: each stream record looks up one row; updates of the table join nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamfleet.dsl.operators.table_view import (
    AnyProcessor,
    PartsProcessor,
    Row,
    TableView,
    ValueGetter,
    internal,
    value_or_none,
)
from streamfleet.processor.api import ProcessorContext
from streamfleet.records import Headers, RecordContext
from streamfleet.state.record_buffer import HeldRecord, RecordBuffer

KeySelector = Callable[[Any, Any], Any]
Joiner = Callable[[Any, Any, Any], Any]
"""f(key of the stream record, its value, value of the table) -> result"""


class StreamTableJoinOperator:
    """`select_key` says which row to look up; for a plain table it is the record's own key."""

    def __init__(
        self,
        view: TableView,
        select_key: KeySelector,
        joiner: Callable[..., Any],
        *,
        left: bool,
        buffer: str | None = None,
        takes_both_keys: bool = False,
    ) -> None:
        """`buffer` names the store of records that wait for the table, in a join with grace. `takes_both_keys`: the joiner is a
        Joiner with the key that was looked up as second argument.
        """
        self._view = view
        self._select_key = select_key
        self._joiner = joiner
        self._left = left
        self._buffer = buffer
        self._takes_both_keys = takes_both_keys

    def __call__(self) -> AnyProcessor:
        if self._takes_both_keys:
            return _BothKeysJoin(self._view.make(), self._select_key, self._joiner, left=self._left)
        if self._buffer is None:
            return _StreamTableJoin(self._view.make(), self._select_key, self._joiner, left=self._left)
        return _WaitingJoin(self._buffer, self._view.make(), self._select_key, self._joiner, left=self._left)


class _StreamTableJoin(PartsProcessor):
    def __init__(self, table: ValueGetter, select_key: KeySelector, joiner: Callable[..., Any], *, left: bool) -> None:
        self._table = table
        self._select_key = select_key
        self._joiner = joiner
        self._left = left

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self.context = internal(context)
        self._table.init(self.context)
        self._is_versioned = self._table.is_versioned

    def process_parts(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        wanted = self._select_key(key, value)
        if value is None or (wanted is None and not self._left):
            self.context.drop("null join key or value")
            return
        self._join(wanted, key, value, timestamp, headers)

    def _join(self, wanted: Any, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        """`wanted` is the key in the table."""
        found = None if wanted is None else value_or_none(self._row(wanted, timestamp))
        if found is not None or self._left:
            self.context.forward_parts(key, self._joined(wanted, key, value, found), timestamp, headers)

    def _joined(self, _wanted: Any, key: Any, value: Any, found: Any) -> Any:
        return self._joiner(key, value, found)

    def _row(self, key: Any, timestamp: int) -> Row | None:
        """A table with history is asked for what it held at the time of the record."""
        return self._table.get_as_of(key, timestamp) if self._is_versioned else self._table.get(key)

    def close(self) -> None:
        self._table.close()


class _BothKeysJoin(_StreamTableJoin):
    def _joined(self, wanted: Any, key: Any, value: Any, found: Any) -> Any:
        return self._joiner(key, wanted, value, found)


class _WaitingJoin(_StreamTableJoin):
    """Joins a record when stream time has gone on by the grace: then the table should know what it held at that time."""

    def __init__(self, buffer: str, table: ValueGetter, select_key: KeySelector, joiner: Joiner, *, left: bool) -> None:
        super().__init__(table, select_key, joiner, left=left)
        self._buffer_name = buffer

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        super().init(context)
        self._buffer: RecordBuffer = context.get_state_store(self._buffer_name)

    def _join(self, wanted: Any, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        context = self.context.record_context or RecordContext("", -1, -1, timestamp, headers=headers)
        if wanted is None or not self._buffer.put(key, value, context):
            super()._join(
                wanted, key, value, timestamp, headers
            )  # nothing to wait for: without a key, or too late already
            return
        self._buffer.take_due(self._join_held)

    def _join_held(self, held: HeldRecord) -> None:
        context = held.context
        with self.context.as_record(context):
            wanted = self._select_key(held.key, held.value)
            super()._join(wanted, held.key, held.value, context.timestamp, context.headers)


def own_key(key: Any, _value: Any) -> Any:
    return key
