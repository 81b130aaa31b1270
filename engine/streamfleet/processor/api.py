"""Processor, FixedKeyProcessor and what they are given. Implemented by users and by the DSL's operators; run by compiler/."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

from streamfleet.records import FixedKeyRecord, Headers, Record, RecordContext, RecordMetadata

if TYPE_CHECKING:
    from streamfleet.config import StreamsConfig
    from streamfleet.ids import TaskId
    from streamfleet.state.api import StateStore, StoreBuilder

T = TypeVar("T")
KIn = TypeVar("KIn")
VIn = TypeVar("VIn")
KOut = TypeVar("KOut")
VOut = TypeVar("VOut")

Duration = timedelta | int
"""A duration given by a user: a timedelta, or a number of milliseconds."""


class PunctuationType(enum.Enum):
    STREAM_TIME = "stream_time"
    """Fires as the timestamps of records move on; never without data."""
    WALL_CLOCK_TIME = "wall_clock_time"
    """Fires as the machine's clock moves on."""


class Cancellable(Protocol):
    def cancel(self) -> None:
        """Never call the punctuator again."""


Punctuator = Callable[[int], None]
"""Called with the time that made it due."""


class ProcessorContext(ABC, Generic[KOut, VOut]):
    """A processor's way to the rest of the task. Every processor has its own."""

    @property
    @abstractmethod
    def application_id(self) -> str: ...

    @property
    @abstractmethod
    def task_id(self) -> TaskId: ...

    @abstractmethod
    def forward(self, record: Record[KOut, VOut], child: str | None = None) -> None:
        """Hand a record to all children, or to the one named, and return when they are done with it (depth first)."""

    @abstractmethod
    def get_state_store(self, name: str) -> Any:
        """A store that is connected to this processor."""

    @abstractmethod
    def schedule(
        self,
        interval: Duration,
        punctuation_type: PunctuationType,
        callback: Punctuator,
        start: int | None = None,
    ) -> Cancellable:
        """Call `callback(timestamp)` at every interval; `start` (epoch ms) anchors a wall-clock or stream-time schedule."""

    @abstractmethod
    def commit(self) -> None:
        """Ask for a commit; it happens in the task's next loop, not here."""

    @abstractmethod
    def record_metadata(self) -> RecordMetadata | None:
        """Where the record under way came from; None in a punctuator."""

    @abstractmethod
    def current_stream_time_ms(self) -> int:
        """The highest timestamp the task has seen; -1 before the first record."""

    @abstractmethod
    def current_system_time_ms(self) -> int: ...


class InternalProcessorContext(ProcessorContext[Any, Any]):
    """What the DSL's own operators see in addition. Not part of the public API."""

    @property
    @abstractmethod
    def node_name(self) -> str: ...

    @property
    @abstractmethod
    def config(self) -> StreamsConfig: ...

    @property
    @abstractmethod
    def has_children(self) -> bool:
        """Whether anybody gets what is forwarded: a table may be there for queries only."""

    @property
    @abstractmethod
    def record_context(self) -> RecordContext | None:
        """None in a punctuator."""

    @abstractmethod
    def forward_parts(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        """`forward` of the record with these parts, to all children: for operators that do so once per record."""

    @abstractmethod
    def as_record(self, record_context: RecordContext) -> AbstractContextManager[None]:
        """Within it, the task's record context is another one."""

    @abstractmethod
    def without_forward(self) -> ProcessorContext[Any, Any]:
        """The same context for code that must not forward: `forward` raises a StreamsError that says so."""

    @abstractmethod
    def drop(self, reason: str) -> None:
        """Count the record under way as dropped by this operator."""

    @abstractmethod
    def processor_metadata(self, key: str) -> int | None:
        """A number that travels with the committed offsets (the last emitted window close time)."""

    @abstractmethod
    def set_processor_metadata(self, key: str, value: int) -> None: ...

    @abstractmethod
    def shared(self, key: object, make: Callable[[], T]) -> T:
        """One object for all processors of the task that ask with the same key, from `init` to `close`."""


class FixedKeyProcessorContext(ABC, Generic[KOut, VOut]):
    """ProcessorContext of a FixedKeyProcessor: the same, but what it forwards keeps the key."""

    application_id: str
    task_id: TaskId

    @abstractmethod
    def forward(self, record: FixedKeyRecord[KOut, VOut], child: str | None = None) -> None: ...

    @abstractmethod
    def get_state_store(self, name: str) -> Any: ...

    @abstractmethod
    def schedule(
        self,
        interval: Duration,
        punctuation_type: PunctuationType,
        callback: Punctuator,
        start: int | None = None,
    ) -> Cancellable: ...

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def record_metadata(self) -> RecordMetadata | None: ...

    @abstractmethod
    def current_stream_time_ms(self) -> int: ...

    @abstractmethod
    def current_system_time_ms(self) -> int: ...


class Processor(ABC, Generic[KIn, VIn, KOut, VOut]):
    """One step of a topology. A supplier makes a new one for every task; `init` may be called again after `close`."""

    def init(self, context: ProcessorContext[KOut, VOut]) -> None:
        """Called before the first record. The default keeps the context as `self.context`."""
        self.context = context

    @abstractmethod
    def process(self, record: Record[KIn, VIn]) -> None: ...

    def close(self) -> None:
        """Called when the task goes away; forwarding is not possible here."""


class FixedKeyProcessor(ABC, Generic[KIn, VIn, VOut]):
    """A Processor that cannot change the key, so that nothing after it needs a repartition."""

    def init(self, context: FixedKeyProcessorContext[KIn, VOut]) -> None:
        self.context = context

    @abstractmethod
    def process(self, record: FixedKeyRecord[KIn, VIn]) -> None: ...

    def close(self) -> None: ...


class ValueTransformer(ABC, Generic[KIn, VIn, VOut]):
    """The function of `KTable.transform_values`: sees the key, may use stores, and returns the new value. It is also called for
    deletes (value None), and it may be called again for a value it has already seen, so it must not depend on being called once.
    """

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        self.context = context

    @abstractmethod
    def transform(self, key: KIn, value: VIn | None) -> VOut | None: ...

    def close(self) -> None: ...


ProcessorSupplier = Callable[[], "Processor[Any, Any, Any, Any] | FixedKeyProcessor[Any, Any, Any]"]
"""Makes a new processor at every call. A class is one; so is any callable. If it has a method `stores()`, the store builders that
this returns are added to the topology and connected to the processor."""


@runtime_checkable
class ConnectedStoreProvider(Protocol):
    """A supplier that brings its own stores."""

    def stores(self) -> Iterable[StoreBuilder[StateStore]]: ...
