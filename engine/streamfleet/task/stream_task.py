"""StreamTask: one partition of one SubTopology, from raw input records to sent results and offsets to commit.

Stepped by its owner (a StreamThread, or the test driver): add records, process some of them, punctuate, commit. It
owns the queues, the program, the stores and their context, and delegates to them. It has no thread; time, producer,
broker lags and store engines are given to it. A commit has two halves, so that the owner can make offsets and results
durable between them: `prepare_commit` (flush caches, log changes, name the offsets) and `post_commit` (write the
stores).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from streamfleet.clock import Clock
from streamfleet.compiler.execution import make_program
from streamfleet.compiler.program import TaskEnvironment, TaskProgram
from streamfleet.errors import StreamsError, TaskInterruptedError
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.metrics import Metrics
from streamfleet.ports import Producer, StoreEngine
from streamfleet.processor.api import PunctuationType
from streamfleet.processor.timestamps import FailOnInvalidTimestamp
from streamfleet.records import NO_TIMESTAMP, ProducerRecord, RawRecord, RecordContext
from streamfleet.state.api import StateStore
from streamfleet.state.committed_stores import CommittedStores
from streamfleet.state.store_caches import StoreCaches
from streamfleet.state.task_state import TaskState
from streamfleet.task import restoration
from streamfleet.task.held_back import stores_behind_caches
from streamfleet.task.offsets import CommittedOffset
from streamfleet.task.partition_group import LagOf, PartitionGroup
from streamfleet.task.phases import TaskPhase, checked_transition, require
from streamfleet.task.punctuation import PunctuationSchedule
from streamfleet.task.record_deserializer import RecordDeserializer
from streamfleet.task.record_queue import RecordQueue
from streamfleet.task.store_engines import StoreEngines
from streamfleet.task.task_context import TaskContext
from streamfleet.topology.nodes import ProcessorTopology, SinkNode, SourceNode

if TYPE_CHECKING:
    from streamfleet.config import StreamsConfig

Compile = Callable[[ProcessorTopology, TaskEnvironment], TaskProgram]


class StreamTask:
    """`inputs` says which source reads each partition; see `inputs_of`. `state_id` names the task's rows on disk, `topic_ids` are
    the present ids of its changelog topics.
    """

    def __init__(
        self,
        task_id: TaskId,
        topology: ProcessorTopology,
        inputs: Mapping[TopicPartition, SourceNode],
        config: StreamsConfig,
        *,
        clock: Clock,
        producer: Producer,
        engines: StoreEngines,
        metrics: Metrics,
        lag_of: LagOf,
        global_stores: Mapping[str, StateStore] | None = None,
        state_id: str | None = None,
        topic_ids: Mapping[str, str] | None = None,
        snapshots: Path | None = None,
        caches: StoreCaches | None = None,
        compile: Compile = make_program,
    ) -> None:
        self.task_id = task_id
        self.phase = TaskPhase.CREATED
        self._topology = topology
        self._clock = clock
        self._engines = engines
        changelogs = {entry.name: entry.changelog for entry in topology.stores if entry.changelog is not None}
        self._context = TaskContext(
            task_id,
            config,
            clock=clock,
            producer=producer,
            engines=engines,
            metrics=metrics,
            changelogs=changelogs,
            global_stores=global_stores or {},
            state_id=state_id or str(task_id),
            caches=caches,
        )
        self._topic_ids = topic_ids
        self._snapshots = snapshots
        self._program = compile(topology, self._context)
        queues = {partition: self._queue(partition, source) for partition, source in inputs.items()}
        self._group = PartitionGroup(queues, config.max_task_idle_ms, lag_of)
        self._state: TaskState | None = None
        self._next_offsets: dict[TopicPartition, int] = {}
        self._consumed: set[TopicPartition] = set()
        self._has_uncommitted_work = False
        self.is_torn = False
        """An error has cut it off in the middle of records, a punctuation or a commit. What it did since its last commit is not
        whole, and cannot be taken up where it was left: it has to be discarded.
        """
        self._behind_caches: frozenset[str] | None = None

    def _queue(self, partition: TopicPartition, source: SourceNode) -> RecordQueue:
        deserializer = RecordDeserializer(source, self._context, self._context.handlers.deserialization)
        extractor = (
            source.timestamp_extractor or self._context.config.default_timestamp_extractor or FailOnInvalidTimestamp()
        )
        return RecordQueue(partition, source.name, deserializer, extractor, self._context)

    # life cycle

    def initialize(self) -> None:
        """Open the stores. Restoring them is the owner's affair."""
        self._transition_to(TaskPhase.RESTORING)
        self._state = TaskState(self._context, self._topology.stores, self._topic_ids, self._snapshots)
        self._context.stores = self._state.stores

    def restore_positions(self) -> dict[TopicPartition, int | None]:
        assert self._state is not None
        return restoration.restore_positions(self._topology.stores, self._state, self.task_id.partition)

    def lost_rows(self, former: StoreEngine) -> int:
        """How many rows of a former database of this task were not restored."""
        assert self._state is not None
        return self._state.lost_rows(former)

    def offset_sum_on_disk(self) -> int:
        assert self._state is not None
        return restoration.offset_sum_on_disk(self._topology.stores, self._state)

    @property
    def changelogs(self) -> dict[str, TopicPartition]:
        """The changelog partitions that this task writes, by topic."""
        return {
            entry.changelog: TopicPartition(entry.changelog, self.task_id.partition)
            for entry in self._topology.stores
            if entry.changelog is not None and not entry.source_is_changelog
        }

    @property
    def changelog_stores(self) -> dict[str, str]:
        return restoration.changelog_stores(self._topology.stores)

    @property
    def source_changelogs(self) -> frozenset[str]:
        return restoration.source_changelogs(self._topology.stores)

    def restore(self, partition: TopicPartition, records: Iterable[RawRecord], last_offset: int) -> None:
        require(self.task_id, self.phase, TaskPhase.RESTORING, action="restore")
        assert self._state is not None
        restoration.apply_changelog(self._topology.stores, self._state, partition.topic, records, last_offset)

    def complete_restoration(self, committed: Mapping[TopicPartition, CommittedOffset] | None = None) -> None:
        """Go on where the committed offsets say, with the time they carry."""
        require(self.task_id, self.phase, TaskPhase.RESTORING, action="complete its restoration")
        for partition, offset in (committed or {}).items():
            self._next_offsets[partition] = offset.offset
            self._group.set_partition_time(partition, offset.partition_time)
            for key, value in offset.processor_metadata.items():
                self._context.metadata[key] = max(value, self._context.metadata.get(key, value))
        self._context.stream_time = self._group.stream_time_ms
        assert self._state is not None
        self._state.committed.position = self.position()  # before anybody can ask a running task
        self._transition_to(TaskPhase.RUNNING)
        self.is_torn = True
        self._program.init()
        self.is_torn = False
        self._has_uncommitted_work |= self.uncommitted_bytes > 0  # what operators put into their stores to begin with
        self._context.record_context = None

    def suspend(self) -> None:
        """Close the processors and forget what is buffered. Commit before: what caches hold back is forwarded only
        then.
        """
        was_running = self.phase is TaskPhase.RUNNING
        self._transition_to(TaskPhase.SUSPENDED)
        self._group.clear()
        for queue in self._context.punctuations.values():
            queue.clear()
        self._context.stream_time = NO_TIMESTAMP
        self._context.metadata.clear()
        self._context.forget_shared()
        if was_running:
            self._program.close()

    def resume(self) -> None:
        """Back to restoring; the stores have stayed open."""
        self._transition_to(TaskPhase.RESTORING)

    def discard(self) -> None:
        """Forget every store change since the last commit: the transaction that held them was aborted."""
        require(self.task_id, self.phase, TaskPhase.SUSPENDED, action="discard its changes")
        if self._state is not None:
            self._state.discard()
        self.is_torn = False
        self._clear_commit_requests()

    def close(self) -> None:
        """Close the stores. A suspended task with uncommitted work is refused: commit or discard it first."""
        self.detach().close()

    def detach(self) -> StoreEngines:
        """Close the stores and give their engines away, open as they are, for a StandbyTask to go on with. See `close`."""
        if self._has_uncommitted_work:
            raise StreamsError(
                f"task {self.task_id} has uncommitted work",
                hint="commit before suspending it, or discard() what it did",
            )
        self._transition_to(TaskPhase.CLOSED)
        if self._state is not None:
            self._state.close()
        return self._engines

    def _transition_to(self, phase: TaskPhase) -> None:
        self.phase = checked_transition(self.task_id, self.phase, phase)

    # records

    def add_records(self, partition: TopicPartition, records: Iterable[RawRecord]) -> int:
        """Buffer records of an input partition; returns how many it has now (for back-pressure). The first is read here, and may
        have to be left out. After an error the task is torn: nobody gives it these records again.
        """
        self.is_torn = True
        count = self._group.add(partition, records)
        self.is_torn = False
        return count

    def advance(self, partition: TopicPartition, position: int) -> None:
        """The partition was read up to there. What was passed over on the way is committed too, or its lag would never be 0."""
        before = self._next_offsets.get(partition)
        if before is not None and before < position and not self._group.buffered(partition):
            self._next_offsets[partition] = position
            self._consumed.add(partition)
            self._has_uncommitted_work = True

    def skip_to(self, partition: TopicPartition, offset: int) -> None:
        """The input goes on there, behind a gap. That is committed even if nothing follows, or the gap would be found again."""
        self._next_offsets[partition] = offset
        self._consumed.add(partition)
        self._has_uncommitted_work = True

    def buffered_records(self, partition: TopicPartition) -> int:
        return self._group.buffered(partition)

    @property
    def all_buffered_records(self) -> int:
        return len(self._group)

    @property
    def has_records(self) -> bool:
        return self._group.has_records

    def is_processable(self) -> bool:
        """Whether `process` would take a record now, or waits for an empty partition."""
        return self.phase is TaskPhase.RUNNING and self._group.is_ready(self._clock.monotonic_ms())

    def process(self, limit: int = 1) -> int:
        """Process the next records, if there are some that may be taken now; how many there were. Records of one input that follow
        each other run as one batch. After an error the task is torn: records that were taken are not processed.
        """
        require(self.task_id, self.phase, TaskPhase.RUNNING, action="process records")
        group, processed = self._group, 0
        self.is_torn = True
        while processed < limit and group.is_ready(self._clock.monotonic_ms()):
            taken = group.take(limit - processed)
            if taken is None:
                break
            queue, batch = taken
            if batch:
                self._program.process_batch(queue.source, batch)
                self._context.stream_time = group.stream_time_ms
            self._next_offsets[queue.partition] = queue.taken_offset + 1
            self._consumed.add(queue.partition)
            self._has_uncommitted_work = True
            processed += len(batch) or 1
        self.is_torn = False
        return processed

    def may_send_to(self, topic: str) -> bool:
        """Whether one of its sinks writes to that topic; one that chooses the topic of every record may."""
        sinks = (node for node in self._topology.nodes if isinstance(node, SinkNode))
        return any(not isinstance(sink.topic, str) or sink.topic == topic for sink in sinks)

    def handle_delivery_failure(self, record: ProducerRecord, error: Exception) -> None:
        """A record that the producer had taken did not reach its topic: the production handler decides."""
        self.is_torn = True
        if isinstance(error, TaskInterruptedError):
            raise error  # the broker is at fault, not this record
        # Which input record led to it is not known any more: it is not the last one.
        timestamp = self._clock.now_ms() if record.timestamp is None else record.timestamp
        self._context.record_context = RecordContext("", -1, -1, timestamp)
        self._context.sender.handle_send_error(f"topic {record.topic}", record, error)
        self.is_torn = False

    # time

    def punctuate_stream_time(self) -> bool:
        """Call what is due by stream time; True if something was."""
        stream_time_ms = self._group.stream_time_ms
        return stream_time_ms != NO_TIMESTAMP and self._punctuate(PunctuationType.STREAM_TIME, stream_time_ms)

    def punctuate_wall_clock(self) -> bool:
        """Call what is due by the clock; True if something was."""
        return self._punctuate(PunctuationType.WALL_CLOCK_TIME, self._clock.now_ms())

    def _punctuate(self, punctuation_type: PunctuationType, now_ms: int) -> bool:
        require(self.task_id, self.phase, TaskPhase.RUNNING, action="punctuate")
        self.is_torn = True
        fired = self._context.punctuations[punctuation_type].punctuate(now_ms, self._fire)
        self.is_torn = False
        self._has_uncommitted_work |= fired
        return fired

    def _fire(self, schedule: PunctuationSchedule, now_ms: int) -> None:
        # Without topic: there is no input record, but stores and results take their time from here.
        self._context.record_context = RecordContext("", -1, -1, now_ms)
        self._program.punctuate(schedule.operator, schedule.callback, now_ms)

    # commit

    @property
    def commit_requested(self) -> bool:
        """A processor has asked for a commit."""
        return self._context.commit_requested

    @property
    def commit_needed(self) -> bool:
        """Something was processed or punctuated since the last commit."""
        return self._has_uncommitted_work

    def prepare_commit(self) -> dict[TopicPartition, CommittedOffset]:
        """Forward what caches hold back, log what stores have not logged, and name the offsets to commit."""
        require(self.task_id, self.phase, TaskPhase.RUNNING, action="commit")
        if not self._has_uncommitted_work:
            return {}
        assert self._state is not None
        self.is_torn = True
        self._state.flush_caches()
        self._state.log_changes()
        self.is_torn = False
        # Processor metadata is read back from any partition, so a change of it is committed to all of them.
        partitions = self._group.partitions if self._context.metadata_changed else self._consumed
        return {p: self._committed(p) for p in partitions if p in self._next_offsets}

    def _committed(self, partition: TopicPartition) -> CommittedOffset:
        head = self._group.head_offset(partition)
        return CommittedOffset(
            self._next_offsets[partition] if head is None else head,
            self._group.partition_time(partition),
            dict(self._context.metadata),
        )

    def post_commit(self, changelog_offsets: Mapping[str, int] | None = None) -> None:
        """The commit is durable: write the stores, together with the offsets their changelogs have reached."""
        require(self.task_id, self.phase, TaskPhase.RUNNING, action="commit")
        assert self._state is not None
        self._state.commit(changelog_offsets or {}, self.position())
        self._clear_commit_requests()

    def _clear_commit_requests(self) -> None:
        self._has_uncommitted_work = False
        self._consumed.clear()
        self._context.commit_requested = False
        self._context.metadata_changed = False

    # state

    def position(self) -> dict[TopicPartition, int]:
        """Offset of the last record of each input that is part of the state: all up to it are, none after it."""
        return {partition: offset - 1 for partition, offset in self._next_offsets.items() if offset > 0}

    def position_of(self, store: str) -> Mapping[TopicPartition, int]:
        """As far as a store surely is: with the last commit, if results on their way to it may be held back by a cache."""
        if self._behind_caches is None:
            self._behind_caches = stores_behind_caches(self._topology)
        if store not in self._behind_caches or self._state is None:
            return self.position()
        return self._state.committed.position or {}

    @property
    def committed_stores(self) -> CommittedStores | None:
        """The stores as of the last commit, for any thread; None before they are open."""
        return None if self._state is None else self._state.committed

    @property
    def stores(self) -> Mapping[str, StateStore]:
        return self._context.stores

    @property
    def stream_time_ms(self) -> int:
        return self._group.stream_time_ms

    @property
    def uncommitted_bytes(self) -> int:
        return 0 if self._state is None else self._state.uncommitted_bytes


def inputs_of(topology: ProcessorTopology, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, SourceNode]:
    """Which source of the topology reads each of the partitions."""
    return {partition: _source_of(topology, partition.topic) for partition in partitions}


def _source_of(topology: ProcessorTopology, topic: str) -> SourceNode:
    for source in topology.sources:
        if topic in source.topics or (source.pattern is not None and source.pattern.fullmatch(topic)):
            return source
    raise StreamsError(
        f"no source of the topology reads topic {topic}",
        hint="all instances of an app must run the same topology; deploy the same version everywhere",
    )
