"""TaskProgram, and TaskEnvironment: what a program needs from the task that runs it.

StreamTask and GlobalTask own a program and give it an environment; the interpreter implements the program. Neither
side knows more of the other than is written here, so a second compiler can be put beside the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from streamfleet.processor.api import Cancellable, PunctuationType, Punctuator
from streamfleet.processor.handlers import ProcessingHandler
from streamfleet.records import Headers, ProducerRecord, Record, RecordContext
from streamfleet.topology.nodes import StreamPartitioner

if TYPE_CHECKING:
    from streamfleet.config import StreamsConfig
    from streamfleet.ids import TaskId
    from streamfleet.serdes.api import Serde
    from streamfleet.state.api import StateStore


T = TypeVar("T")


InputRecord = tuple[RecordContext, Any, Any]
"""A record as it comes out of a queue: its context, with the time that the extractor gave it, then key and value."""


class TaskProgram(Protocol):
    """The nodes of one task, ready to run."""

    def init(self) -> None:
        """Initialise all processors, parents first. May be called again after `close`."""

    def process(self, source: str, record: Record[Any, Any]) -> None:
        """Run one record from the named source through the graph, depth first. The record context is set by the
        caller, with the record's timestamp and headers.
        """

    def process_batch(self, source: str, batch: Sequence[InputRecord]) -> None:
        """Run records of the named source, one after the other; sets the record context and the stream time for each. Ends
        with the first error that no handler takes; the record context then is that of the record it is about.
        """

    def punctuate(self, operator: str, callback: Punctuator, timestamp: int) -> None:
        """Call a punctuator that the operator scheduled; its errors are handled like those of the operator."""

    def close(self) -> None:
        """Close all processors, also if some of them fail."""


SendParts = Callable[[Any, Any, int, Headers], None]
"""f(key, value, timestamp, headers): what a sink with one topic and no partitioner is."""


class RecordSender(Protocol):
    """Where sinks put their records."""

    def to_topic(self, operator: str, topic: str, key_serde: Serde[Any], value_serde: Serde[Any]) -> SendParts:
        """`send` for a sink that always writes to one topic and leaves the partition to the producer."""

    def send(
        self,
        operator: str,
        topic: str,
        record: Record[Any, Any],
        key_serde: Serde[Any],
        value_serde: Serde[Any],
        partitioner: StreamPartitioner | None,
    ) -> None:
        """Serialize and send, to one partition or several, or drop."""

    def send_dead_letters(self, operator: str, records: Iterable[ProducerRecord]) -> None:
        """Send what an error handler wrote, as it is."""


class TaskEnvironment(Protocol):
    """The task, as its program sees it."""

    application_id: str
    task_id: TaskId
    config: StreamsConfig
    record_context: RecordContext | None
    """Of the record under way. `forward` replaces it while timestamp or headers differ, and puts the old one back."""
    processing_handler: ProcessingHandler
    stream_time: int
    """Highest timestamp the task has seen; a program moves it on within a batch."""

    @property
    def sender(self) -> RecordSender: ...

    def stream_time_ms(self) -> int: ...

    def system_time_ms(self) -> int: ...

    def store(self, name: str) -> StateStore | None:
        """A store of this task."""

    def global_store(self, name: str) -> StateStore | None:
        """A global store, which every processor may read."""

    def schedule(
        self,
        operator: str,
        interval_ms: int,
        punctuation_type: PunctuationType,
        callback: Punctuator,
        start_ms: int | None,
    ) -> Cancellable: ...

    def request_commit(self) -> None: ...

    def drop(self, name: str, reason: str) -> None:
        """Count a record that the operator (or store) of that name left out."""

    def processor_metadata(self, key: str) -> int | None: ...

    def set_processor_metadata(self, key: str, value: int) -> None: ...

    def shared(self, key: object, make: Callable[[], T]) -> T:
        """What several processors of the task have in common."""
