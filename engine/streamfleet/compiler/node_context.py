"""The contexts that processors are given: one object per processor, with `forward` bound to that node's children.

Made by the interpreter. Because every node has its own, nobody has to keep track of a current node, and a context that
is called from a punctuator or from a flushing cache forwards to the right children by itself.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from streamfleet.compiler.failures import remember_context
from streamfleet.compiler.program import TaskEnvironment
from streamfleet.compiler.read_only_store import ReadOnlyStore
from streamfleet.durations import duration_ms
from streamfleet.errors import OptionError, StreamsError
from streamfleet.processor.api import (
    Cancellable,
    Duration,
    FixedKeyProcessorContext,
    InternalProcessorContext,
    ProcessorContext,
    PunctuationType,
    Punctuator,
)
from streamfleet.records import FixedKeyRecord, Headers, Record, RecordContext, RecordMetadata

if TYPE_CHECKING:
    from streamfleet.config import StreamsConfig
    from streamfleet.ids import TaskId

T = TypeVar("T")

Process = Callable[[Record[Any, Any]], None]

UNKNOWN_KEY: Any = object()
"""The key of the record under way when there is none: a punctuator of a FixedKeyProcessor may forward any key it has
kept.
"""


class ProcessorPhase(enum.Enum):
    STARTING = "starting"
    RUNNING = "running"
    CLOSING = "closing"


class NodeContext(InternalProcessorContext):
    """Context of one Processor, and the base of the one of a FixedKeyProcessor."""

    __slots__ = ("_children", "_environment", "_name", "_phase", "_stores", "_targets")

    def __init__(
        self, environment: TaskEnvironment, name: str, stores: tuple[str, ...], children: Mapping[str, Process]
    ) -> None:
        self._environment = environment
        self._name = name
        self._stores = stores
        self._children = children
        self._targets = tuple(children.values())
        self._phase = ProcessorPhase.STARTING

    def enter(self, phase: ProcessorPhase) -> None:
        """Told by the program; only a running processor may forward."""
        self._phase = phase

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        if self._phase is not ProcessorPhase.RUNNING:
            self._refuse_forward()
        targets = self._targets if child is None else (self._child(child),)
        environment = self._environment
        before = environment.record_context
        # Without a record under way there is nothing to derive from; the children see none either.
        if before is None or (before.timestamp == record.timestamp and before.headers == record.headers):
            for process in targets:
                process(record)
            return
        environment.record_context = before.derive(record.timestamp, record.headers)
        try:
            for process in targets:
                process(record)
        finally:
            environment.record_context = before

    def forward_parts(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        self.forward(Record(key, value, timestamp, headers))

    def _child(self, name: str) -> Process:
        process = self._children.get(name)
        if process is None:
            names = ", ".join(self._children) or "none"
            raise StreamsError(
                f"operator {self._name} has no child {name!r}",
                hint=f"forward to one of its children ({names}) or to all",
            )
        return process

    def _refuse_forward(self) -> NoReturn:
        if self._phase is ProcessorPhase.STARTING:
            raise StreamsError(
                f"operator {self._name} forwards a record in its init",
                hint="forward from process or a punctuator; the operators downstream are initialised later",
            )
        raise StreamsError(
            f"operator {self._name} forwards a record after it was closed",
            hint="forward from process or a punctuator; in close the operators downstream may be gone already",
        )

    def get_state_store(self, name: str) -> Any:
        global_store = self._environment.global_store(name)
        if global_store is not None:
            return ReadOnlyStore(global_store)
        store = self._environment.store(name) if name in self._stores else None
        if store is None:
            names = ", ".join(self._stores) or "none"
            raise StreamsError(
                f"operator {self._name} has no store {name!r}, its stores are: {names}",
                hint="connect the store: name it in stores=... of process(), return its builder from the supplier's "
                "stores(), or use connect_processor_and_state_stores",
            )
        return store

    def schedule(
        self,
        interval: Duration,
        punctuation_type: PunctuationType,
        callback: Punctuator,
        start: int | None = None,
    ) -> Cancellable:
        interval_ms = duration_ms(interval, f"the interval of a punctuation of operator {self._name}")
        if interval_ms == 0:
            raise OptionError(
                f"operator {self._name} schedules a punctuation every {interval!r}", hint="1 ms is the least"
            )
        return self._environment.schedule(self._name, interval_ms, PunctuationType(punctuation_type), callback, start)

    def commit(self) -> None:
        self._environment.request_commit()

    def drop(self, reason: str) -> None:
        self._environment.drop(self._name, reason)

    def record_metadata(self) -> RecordMetadata | None:
        context = self.record_context
        return None if context is None else RecordMetadata(context.topic, context.partition, context.offset)

    @property
    def has_children(self) -> bool:
        return bool(self._children)

    @property
    def record_context(self) -> RecordContext | None:
        context = self._environment.record_context
        # A punctuator has a context without topic: stores take the time of their changes from it.
        return context if context is not None and context.topic else None

    @contextmanager
    def as_record(self, record_context: RecordContext) -> Iterator[None]:
        before = self._environment.record_context
        self._environment.record_context = record_context
        try:
            yield
        except Exception as error:
            remember_context(error, record_context)
            raise
        finally:
            self._environment.record_context = before

    def without_forward(self) -> ProcessorContext[Any, Any]:
        return NoForwardContext(self._environment, self._name, self._stores, {})

    def current_stream_time_ms(self) -> int:
        return self._environment.stream_time_ms()

    def current_system_time_ms(self) -> int:
        return self._environment.system_time_ms()

    def processor_metadata(self, key: str) -> int | None:
        return self._environment.processor_metadata(key)

    def set_processor_metadata(self, key: str, value: int) -> None:
        self._environment.set_processor_metadata(key, value)

    def shared(self, key: object, make: Callable[[], T]) -> T:
        return self._environment.shared(key, make)

    @property
    def application_id(self) -> str:
        return self._environment.application_id

    @property
    def task_id(self) -> TaskId:
        return self._environment.task_id

    @property
    def node_name(self) -> str:
        return self._name

    @property
    def config(self) -> StreamsConfig:
        return self._environment.config


class NoForwardContext(NodeContext):
    """Of code whose results leave it in another way, such as the transformer of a table."""

    def forward(self, record: Record[Any, Any], child: str | None = None) -> NoReturn:
        raise StreamsError(
            f"the function of operator {self.node_name} tries to forward a record",
            hint="return the result instead; use process() to forward any number of records",
        )


class FixedKeyNodeContext(FixedKeyProcessorContext[Any, Any]):
    """Context of one FixedKeyProcessor: checks the key, then does what the NodeContext does."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self.application_id = context.application_id
        self.task_id = context.task_id
        self.key_under_way: Any = UNKNOWN_KEY

    def forward(self, record: FixedKeyRecord[Any, Any], child: str | None = None) -> None:
        key = self.key_under_way
        if key is not UNKNOWN_KEY and record.key is not key and record.key != key:
            raise StreamsError(
                f"operator {self._context.node_name} changed the key from {key!r} to {record.key!r}",
                hint="a FixedKeyProcessor must keep it; use process() instead of process_values() to change keys",
            )
        self._context.forward(Record(record.key, record.value, record.timestamp, record.headers), child)

    def get_state_store(self, name: str) -> Any:
        return self._context.get_state_store(name)

    def schedule(
        self,
        interval: Duration,
        punctuation_type: PunctuationType,
        callback: Punctuator,
        start: int | None = None,
    ) -> Cancellable:
        return self._context.schedule(interval, punctuation_type, callback, start)

    def commit(self) -> None:
        self._context.commit()

    def record_metadata(self) -> RecordMetadata | None:
        return self._context.record_metadata()

    def current_stream_time_ms(self) -> int:
        return self._context.current_stream_time_ms()

    def current_system_time_ms(self) -> int:
        return self._context.current_system_time_ms()
