"""GlobalTask: keeps the global stores of a process up to date. Fed by whoever reads their topics, record by record.

Every record goes through the processor of its store, at start as well as later. There is no commit: the topic itself
is the changelog and is read from the beginning. Nothing is forwarded, sent or scheduled; the broker's timestamps are
taken as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import structlog

from streamfleet.clock import Clock
from streamfleet.compiler.execution import global_program_topology, make_program
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.metrics import Metrics
from streamfleet.ports import Producer
from streamfleet.processor.handlers import DeserializationHandler, LogAndFailProcessing
from streamfleet.records import ProducerRecord, RawRecord, Record
from streamfleet.state.api import StateStore
from streamfleet.state.committed_stores import CommittedStores
from streamfleet.state.task_state import TaskState
from streamfleet.task.record_deserializer import RecordDeserializer
from streamfleet.task.store_engines import StoreEngines
from streamfleet.task.task_context import GlobalTaskContext
from streamfleet.topology.nodes import GlobalStoreEntry, StoreEntry

if TYPE_CHECKING:
    from streamfleet.config import StreamsConfig

log = structlog.get_logger(__name__)

GLOBAL_TASK_ID = TaskId(-1, -1)


class NoProducer:
    """Producer of the GlobalTask: there is nothing to send but what a handler of the user's own gives as dead letters."""

    def send(self, record: ProducerRecord) -> None:
        log.warning("dead letter of a global store not sent", topic=record.topic)

    def partition_count(self, topic: str) -> int | None:
        return None


class GlobalTask:
    """All global stores of one process."""

    def __init__(
        self,
        entries: tuple[GlobalStoreEntry, ...],
        config: StreamsConfig,
        *,
        clock: Clock,
        engines: StoreEngines,
        metrics: Metrics,
        deserialization: DeserializationHandler | None = None,
    ) -> None:
        """`deserialization` is asked about records that cannot be read; None: the one of the configuration."""
        producer: Producer = NoProducer()
        self._engines = engines
        self._context = GlobalTaskContext(
            GLOBAL_TASK_ID,
            config.with_(dead_letter_topic=None),
            clock=clock,
            producer=producer,
            engines=engines,
            metrics=metrics,
            changelogs={},
            global_stores={},
            state_id="global",
        )
        if not config.processing_handler_sees_global_stores:
            # A global store that has left out a record is wrong for good, in every process.
            self._context.processing_handler = LogAndFailProcessing()
        self._program = make_program(global_program_topology(entries), self._context)
        handler = deserialization or self._context.handlers.deserialization
        self._sources = {
            topic: (entry.source.name, RecordDeserializer(entry.source, self._context, handler))
            for entry in entries
            for topic in entry.source.topics
        }
        self._entries = entries
        self._state: TaskState | None = None
        self._next_offsets: dict[TopicPartition, int] = {}

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(self._sources)

    @property
    def stores(self) -> Mapping[str, StateStore]:
        return self._context.stores

    @property
    def committed_stores(self) -> CommittedStores | None:
        """The stores as of the last flush, for any thread; None before they are open."""
        return None if self._state is None else self._state.committed

    @property
    def next_offsets(self) -> Mapping[TopicPartition, int]:
        """How far each partition has been read."""
        return self._next_offsets

    def initialize(self) -> None:
        self._state = TaskState(self._context, [StoreEntry(entry.builder, None) for entry in self._entries])
        self._context.stores = self._state.stores
        self._program.init()

    def update(self, raw: RawRecord) -> None:
        """Apply one record of a global topic."""
        source, deserializer = self._sources[raw.topic]
        pair = deserializer.deserialize(raw)
        if pair is not None:
            self._context.record_context = raw
            self._program.process(source, Record(*pair, raw.timestamp, raw.headers))
        self._next_offsets[TopicPartition(raw.topic, raw.partition)] = raw.offset + 1

    def flush(self) -> None:
        """Make what was applied visible in the stores' rows."""
        if self._state is not None:
            self._state.flush_caches()
            self._state.commit({}, {partition: offset - 1 for partition, offset in self._next_offsets.items()})

    def discard(self) -> None:
        """Forget what was applied since the last flush."""
        if self._state is not None:
            self._state.discard()

    def close(self) -> None:
        try:
            self._program.close()
        finally:
            if self._state is not None:
                self._state.close()
            self._engines.close()
