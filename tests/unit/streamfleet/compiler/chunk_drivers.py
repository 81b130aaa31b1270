"""Test drivers that work as a StreamThread does: several records between two commits, each sub-topology in a task of its own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.unit.streamfleet.compiler.random_topologies import Input

import streamfleet as sf
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.processor.api import Duration
from streamfleet.state.api import StateStore
from streamfleet.task.store_engines import StoreEngines
from streamfleet.task.stream_task import StreamTask
from streamfleet.testing import TopologyTestDriver
from streamfleet.testing.driver import _inputs
from streamfleet.testing.recording_producer import ProducedRecord


class ChunkDriver(TopologyTestDriver):
    """Hands over several records before the task is stepped and committed."""

    def pipe_chunk(self, chunk: Iterable[Input]) -> None:
        for each in chunk:
            key = None if each.key is None else each.key.encode()
            record = ProducedRecord(each.topic, 0, key, each.value, each.timestamp, each.headers)
            if self._partition_of(each.topic) is not None:
                self._enqueue(record)
            self._update_global(record)
        self._run_chunk()

    def known_topics(self) -> set[str]:
        return {partition.topic for partition in self._inputs} | set(
            self._global_task.topics if self._global_task else ()
        )

    def _run_chunk(self) -> None:
        assert self._task is not None
        self._step(self._task)

    def _step(self, task: StreamTask) -> bool:
        has_processed = False
        while task.has_records and task.is_processable():
            has_processed = True
            task.process(100)
            task.punctuate_stream_time()
            self._commit(task)
            self._capture()
        return has_processed


class ApartDriver(ChunkDriver):
    """A task per sub-topology. What one sends to a repartition topic is read by another, and by nobody else."""

    def __init__(self, topology: sf.Topology, config: sf.StreamsConfig) -> None:
        self._whole = topology
        self._tasks: dict[int, StreamTask] = {}
        self._readers: dict[TopicPartition, StreamTask] = {}
        super().__init__(topology, config)

    def _start(self) -> None:
        inputs, self._inputs = self._inputs, {}
        super()._start()  # the global task alone
        self._inputs = inputs
        for part in self._whole.sub_topologies():
            if part.global_store is None:
                self._tasks[part.id] = self._started(part.id)

    def _started(self, number: int) -> StreamTask:
        program = self._whole.processor_topology(self._config.application_id, number)
        inputs = _inputs(program)
        task = StreamTask(
            TaskId(number, 0),
            program,
            inputs,
            self._config,
            clock=self.clock,
            producer=self._producer,
            engines=StoreEngines(Path(self._directory.name) / f"{number}_0"),
            metrics=self._metrics,
            lag_of=lambda _: 0,
            global_stores=self._global_task.stores if self._global_task else {},
        )
        task.initialize()
        task.complete_restoration()
        self._readers.update(dict.fromkeys(inputs, task))
        return task

    def _run_chunk(self) -> None:
        while any(self._step(task) for task in self._tasks.values()):
            pass

    def _enqueue(self, record: ProducedRecord) -> bool:
        partition = self._partition_of(record.topic)
        if partition is None:
            return False
        self._readers[partition].add_records(partition, [self._read(partition, record)])
        return True

    def _commit(self, task: StreamTask) -> None:
        task.prepare_commit()
        offsets = self._producer.end_offsets()
        task.post_commit({topic: offsets[topic] for topic in task.changelogs if topic in offsets})

    def advance_wall_clock(self, duration: Duration) -> None:
        self.clock.advance(duration)
        for task in self._tasks.values():
            task.punctuate_wall_clock()
            self._commit(task)
            self._capture()
        self._run_chunk()

    def stores(self) -> dict[str, StateStore]:
        shared = self._global_task.stores if self._global_task is not None else {}
        return {name: store for task in self._tasks.values() for name, store in task.stores.items()} | dict(shared)

    def close(self) -> None:
        tasks, self._tasks = self._tasks, {}
        first: Exception | None = None
        for task in tasks.values():
            try:
                self._close_task(task)
            except Exception as error:
                first = first or error
        super().close()
        if first is not None:
            raise first
