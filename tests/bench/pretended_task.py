"""A StreamTask without a broker, as a StreamThread has it but for the clients: for micro.py and micro_state.py."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import streamfleet as sf
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.metrics import Metrics
from streamfleet.records import ProducerRecord
from streamfleet.state.rocksdb_engine import RocksDBOptions
from streamfleet.task.store_engines import StoreEngines
from streamfleet.task.stream_task import StreamTask
from streamfleet.testing import ManualClock

BATCH = 1000
"""Records that a StreamThread hands over at once."""


class Silent:
    """A Producer that keeps nothing: what sending costs is librdkafka's affair, and the same for all."""

    def send(self, record: ProducerRecord) -> None: ...

    def partition_count(self, topic: str) -> int:
        return 1


@contextmanager
def running(
    topology: sf.Topology,
    cache_max_bytes: int = 0,
    rocksdb_options: RocksDBOptions | None = None,
    directory: Path | None = None,
) -> Iterator[StreamTask]:
    """With its stores on RocksDB (in `directory`, or in one that is deleted), and partition 0 of every topic that it reads."""
    config = sf.StreamsConfig(application_id="micro", statestore_cache_max_bytes=cache_max_bytes)
    processor_topology = topology.processor_topology("micro")
    inputs = {TopicPartition(topic, 0): node for node in processor_topology.sources for topic in node.topics}
    with tempfile.TemporaryDirectory(prefix="streamfleet-micro-") as deleted:
        task = StreamTask(
            TaskId(0, 0),
            processor_topology,
            inputs,
            config,
            clock=ManualClock(1),
            producer=Silent(),
            engines=StoreEngines(directory or Path(deleted), rocksdb_options),
            metrics=Metrics(),
            lag_of=lambda _: 0,
        )
        task.initialize()
        task.complete_restoration()
        try:
            yield task
        finally:
            commit(task)
            task.suspend()
            task.close()


def commit(task: StreamTask) -> None:
    task.prepare_commit()
    task.post_commit()
