"""TopologyTestDriver: runs a whole topology in this process, one record at a time, without broker and threads.

One StreamTask holds all SubTopologies, every topic has one partition, and a commit follows every record. What the
topology sends to a topic that it reads itself (repartition topics, and any other) comes back as input before the call
returns. Stores are the real ones, in a temporary directory. Input and output topics are in modules beside this one.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from streamfleet.config import StreamsConfig
from streamfleet.errors import ConfigError, StoreUnavailableError, StreamsError
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.metrics import Metrics
from streamfleet.processor.api import Duration
from streamfleet.processor.handlers import LogAndContinueDeserialization
from streamfleet.records import Headers, RawRecord
from streamfleet.serdes.api import Serde
from streamfleet.state.api import StateStore
from streamfleet.task.global_task import GlobalTask
from streamfleet.task.store_engines import StoreEngines
from streamfleet.task.stream_task import StreamTask
from streamfleet.testing.input_topic import TestInputTopic
from streamfleet.testing.manual_clock import ManualClock
from streamfleet.testing.output_topic import TestOutputTopic
from streamfleet.testing.recording_producer import ProducedRecord, RecordingProducer
from streamfleet.topology.nodes import ProcessorTopology, SourceNode
from streamfleet.topology.topology import Topology

TASK_ID = TaskId(0, 0)
DEFAULT_APPLICATION_ID = "topology-test-driver"


class TopologyTestDriver:
    """Use it as a context manager, or close it: it holds databases and a temporary directory."""

    def __init__(self, topology: Topology, config: StreamsConfig | None = None, now: int = 0) -> None:
        self._config = _driver_config(config or topology.config)
        self.clock = ManualClock(now)
        self._metrics = Metrics()
        self._producer = RecordingProducer()
        self._offsets: Counter[TopicPartition] = Counter()
        self._undrained: list[ProducedRecord] = []
        self._unread: defaultdict[str, deque[ProducedRecord]] = defaultdict(deque)
        self._directory = tempfile.TemporaryDirectory(prefix="streamfleet-test-")
        root = Path(self._directory.name)
        self._engines, self._global_engines = StoreEngines(root / str(TASK_ID)), StoreEngines(root / "global")
        self._global_task: GlobalTask | None = None
        self._task: StreamTask | None = None
        self._is_closed = False
        self._topology = topology.processor_topology(self._config.application_id, epochs=self._config.store_epochs)
        self._inputs = _inputs(self._topology)
        # A source topic that restores a store is read, not written: its offset is that of the input.
        self._changelogs = {e.changelog for e in self._topology.stores if e.changelog and not e.source_is_changelog}
        try:
            self._start()
        except BaseException:
            self._engines.close()
            self._global_engines.close()
            self._directory.cleanup()
            raise

    def _start(self) -> None:
        if self._topology.global_stores:
            self._global_task = GlobalTask(
                self._topology.global_stores,
                self._config,
                clock=self.clock,
                engines=self._global_engines,
                metrics=self._metrics,
                # Java's driver leaves out what a global store cannot read, whatever the configuration says.
                deserialization=LogAndContinueDeserialization(),
            )
            self._global_task.initialize()
        if self._inputs:
            self._task = StreamTask(
                TASK_ID,
                self._topology,
                self._inputs,
                self._config,
                clock=self.clock,
                producer=self._producer,
                engines=self._engines,
                metrics=self._metrics,
                lag_of=lambda _: 0,
                global_stores=self._global_task.stores if self._global_task else {},
            )
            self._task.initialize()
            self._task.complete_restoration()

    # topics

    def input_topic(
        self,
        name: str,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        *,
        start: int | None = None,
        auto_advance: Duration = 0,
    ) -> TestInputTopic[Any, Any]:
        """A topic to pipe records into. Records without timestamp get `start` (default: the wall clock now) and on
        from there.
        """
        self._check_input(name)
        return TestInputTopic(
            name,
            self._serde(key_serde, "key", name),
            self._serde(value_serde, "value", name),
            self.pipe_raw,
            self.clock.now_ms() if start is None else start,
            auto_advance,
        )

    def output_topic(
        self, name: str, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> TestOutputTopic[Any, Any]:
        """A topic to read results from; changelogs and repartition topics are topics too."""
        return TestOutputTopic(
            name,
            self._serde(key_serde, "key", name),
            self._serde(value_serde, "value", name),
            self._unread[name],
            lambda: sorted(topic for topic, records in self._unread.items() if records),
        )

    def _serde(self, given: Serde[Any] | None, part: str, topic: str) -> Serde[Any]:
        default = self._config.default_key_serde if part == "key" else self._config.default_value_serde
        serde = given or default
        if serde is None:
            raise ConfigError(
                f"test topic {topic} has no {part} serde", hint=f"pass {part}_serde, or set default.{part}.serde"
            )
        return serde

    # input

    def pipe_raw(
        self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers = ()
    ) -> None:
        """Process one record given as bytes, and all that follows from it."""
        self._check_open()
        self._check_input(topic)
        if timestamp < 0:
            raise ValueError(f"the timestamp is {timestamp}; a producer cannot send a negative one")
        record = ProducedRecord(topic, 0, key, value, timestamp, tuple((name, data) for name, data in headers))
        if self._enqueue(record):
            self._run()
        self._update_global(record)

    def advance_wall_clock(self, duration: Duration) -> None:
        """Move the clock, call the punctuators that are due, and process records that have waited long enough."""
        self._check_open()
        self.clock.advance(duration)
        if self._task is not None:
            self._task.punctuate_wall_clock()
            self._commit(self._task)
            self._run()

    def _check_open(self) -> None:
        if self._is_closed:
            raise StreamsError("the test driver is closed", hint="make a new one: its state is gone")

    def _check_input(self, topic: str) -> None:
        is_global = self._global_task is not None and topic in self._global_task.topics
        if not is_global and self._partition_of(topic) is None:
            raise ValueError(f"the topology does not read topic {topic!r}; it reads {', '.join(self._input_names())}")

    def _input_names(self) -> Iterable[str]:
        names = [partition.topic for partition in self._inputs]
        return sorted(names + list(self._global_task.topics if self._global_task else ())) or ["none"]

    def _partition_of(self, topic: str) -> TopicPartition | None:
        for partition, source in self._inputs.items():
            if partition.topic == topic or (source.pattern is not None and source.pattern.fullmatch(topic)):
                return partition
        return None

    # the loop

    def _run(self) -> None:
        """Process until nothing can be processed any more, with a commit after every record."""
        task = self._task
        assert task is not None
        self._capture()
        while task.has_records and task.is_processable():
            task.process()
            task.punctuate_stream_time()
            self._commit(task)
            self._capture()

    def _commit(self, task: StreamTask) -> None:
        task.prepare_commit()
        offsets = self._producer.end_offsets()
        task.post_commit({topic: offsets[topic] for topic in self._changelogs if topic in offsets})

    def _capture(self) -> None:
        """Take what was sent, and give back to the topology what it reads itself."""
        for record in self._take():
            self._enqueue(record)
            self._update_global(record)

    def _take(self) -> list[ProducedRecord]:
        records = self._producer.take()
        self._undrained += records
        for record in records:
            self._unread[record.topic].append(record)
        return records

    def _enqueue(self, record: ProducedRecord) -> bool:
        partition = self._partition_of(record.topic)
        if partition is None or self._task is None:
            return False
        self._task.add_records(partition, [self._read(partition, record)])
        return True

    def _update_global(self, record: ProducedRecord) -> None:
        task = self._global_task
        if task is not None and record.topic in task.topics:
            task.update(self._read(TopicPartition(record.topic, 0), record))
            task.flush()

    def _read(self, partition: TopicPartition, record: ProducedRecord) -> RawRecord:
        offset = self._offsets[partition]
        self._offsets[partition] += 1
        timestamp = self.clock.now_ms() if record.timestamp is None else record.timestamp
        return RawRecord(record.topic, 0, offset, timestamp, record.key, record.value, record.headers)

    # results

    def drain(self) -> list[ProducedRecord]:
        """Everything produced since the last call, internal topics included, in the order sent; also after a failed
        step.
        """
        self._take()
        drained, self._undrained = self._undrained, []
        return drained

    def produced_topics(self) -> list[str]:
        """Names of all topics that something was produced to so far."""
        return sorted(self._producer.end_offsets())

    def store(self, name: str) -> Any:
        """A store of the topology, also a global one, to look into or to fill before a test."""
        stores = self.stores()
        if name not in stores:
            names = ", ".join(sorted(stores)) or "none"
            raise StoreUnavailableError(f"there is no store {name!r}", hint=f"the topology has: {names}")
        return stores[name]

    def stores(self) -> dict[str, StateStore]:
        local = self._task.stores if self._task is not None else {}
        shared = self._global_task.stores if self._global_task is not None else {}
        return {**local, **shared}

    def metrics(self) -> Metrics:
        return self._metrics

    # end

    def close(self) -> None:
        """Close the processors and stores and remove the state. What was produced stays readable."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self._task is not None:
                self._close_task(self._task)
            if self._global_task is not None:
                self._global_task.close()
        finally:
            self._directory.cleanup()

    def _close_task(self, task: StreamTask) -> None:
        try:
            task.suspend()
        finally:
            task.discard()  # only after a failed step there is something to discard
            task.close()
            self._take()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


def _driver_config(config: StreamsConfig | None) -> StreamsConfig:
    """Results that production throttles by wall clock come at once here, unless the configuration says otherwise."""
    config = config or StreamsConfig(application_id=DEFAULT_APPLICATION_ID)
    if config.windowed_emit_interval_ms is None:
        config = config.with_(windowed_emit_interval_ms=0)
    if config.outer_join_emit_interval_ms is None:
        config = config.with_(outer_join_emit_interval_ms=0)
    return config


def _inputs(topology: ProcessorTopology) -> dict[TopicPartition, SourceNode]:
    """One input per topic; all topics that a pattern matches share one, named like the pattern."""
    inputs: dict[TopicPartition, SourceNode] = {}
    for source in topology.sources:
        names = source.topics if source.pattern is None else (source.pattern.pattern,)
        inputs.update({TopicPartition(name, 0): source for name in names})
    return inputs
