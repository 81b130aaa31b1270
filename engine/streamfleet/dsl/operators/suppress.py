"""Suppression: updates of a table held back until their window has closed, or for some time after the first of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamfleet.dsl.operators.table_view import (
    AnyProcessor,
    Row,
    TableOperator,
    TableView,
    ValueGetter,
    internal,
)
from streamfleet.dsl.suppressed import BufferConfig
from streamfleet.errors import StreamsError
from streamfleet.processor.api import InternalProcessorContext, ProcessorContext
from streamfleet.records import NO_TIMESTAMP, Change, Record, RecordContext
from streamfleet.state.change_buffer import ChangeBuffer, Eviction

if TYPE_CHECKING:
    from streamfleet.dsl.ktable import KTable


@dataclass(frozen=True)
class Suppression:
    """What is held back. With `until_window_closes` an update waits from the end of its window on, and deletes are left out: nobody
    has seen what they delete.
    """

    wait_ms: int
    until_window_closes: bool
    buffer: BufferConfig
    store: str


class SuppressOperator(TableOperator):
    """Readers of the suppressed table see what was there before what is held back."""

    def __init__(self, parent: KTable[Any, Any], suppression: Suppression) -> None:
        self._parent = parent
        self._suppression = suppression
        self.send_old_values = parent.enable_sending_old_values(force=True)

    def __call__(self) -> AnyProcessor:
        return _Suppress(self._suppression)

    def enable_sending_old_values(self, *, force: bool) -> bool:
        return self._parent.enable_sending_old_values(force=force)

    def view(self) -> TableView:
        parent = self._parent.view()
        store = self._suppression.store
        return TableView((store, *parent.stores), lambda: _SuppressedGetter(store, parent.make()))


class _SuppressedGetter(ValueGetter):
    def __init__(self, store: str, parent: ValueGetter) -> None:
        self._store = store
        self._parent = parent

    def init(self, context: InternalProcessorContext) -> None:
        self._parent.init(context)
        self._buffer: ChangeBuffer = context.get_state_store(self._store)

    def get(self, key: Any) -> Row | None:
        is_held, prior = self._buffer.prior(key)
        return prior if is_held else self._parent.get(key)

    def close(self) -> None:
        self._parent.close()


class _Suppress(AnyProcessor):
    def __init__(self, suppression: Suppression) -> None:
        self._suppression = suppression

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self.context = context
        self._stream_time = NO_TIMESTAMP
        self._inside = internal(context)
        self._buffer: ChangeBuffer = context.get_state_store(self._suppression.store)
        if self._inside.config.dead_letter_topic is not None:
            self._buffer.remember_inputs()

    def process(self, record: Record[Any, Change[Any]]) -> None:
        self._stream_time = max(self._stream_time, record.timestamp)
        context = self._inside.record_context
        if context is None:  # a punctuator's update has no input record
            context = RecordContext("", -1, -1, record.timestamp, headers=record.headers)
        time = record.key.window.end if self._suppression.until_window_closes else context.timestamp
        self._buffer.put(time, record.key, record.value, context)
        self._emit_what_must_leave()

    def _emit_what_must_leave(self) -> None:
        buffer = self._buffer
        expired = self._stream_time - self._suppression.wait_ms
        buffer.evict_while(lambda: buffer.min_time <= expired, self._emit)
        if not self._is_full():
            return
        limits = self._suppression.buffer
        if not limits.emits_early:
            raise StreamsError(
                f"the buffer of operator {self._inside.node_name} exceeded its capacity: {buffer.num_records} of "
                f"{limits.records} records, {buffer.size_bytes} of {limits.bytes} bytes",
                hint="raise the limit, or let it emit_early_when_full where results may change",
            )
        is_full: Callable[[], bool] = self._is_full
        buffer.evict_while(is_full, self._emit)

    def _is_full(self) -> bool:
        limits = self._suppression.buffer
        return self._buffer.num_records > limits.records or self._buffer.size_bytes > limits.bytes

    def _emit(self, eviction: Eviction) -> None:
        if eviction.change.new is None and self._suppression.until_window_closes:
            return
        context = eviction.context
        with self._inside.as_record(context):
            self.context.forward(Record(eviction.key, eviction.change, context.timestamp, context.headers))
