"""A StreamTask that is killed between two commits and comes back: with the rows its disk kept, or from the changelogs alone."""

from __future__ import annotations

from pathlib import Path

import streamfleet as sf
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.metrics import Metrics
from streamfleet.records import RawRecord
from streamfleet.task.store_engines import StoreEngines
from streamfleet.task.stream_task import StreamTask, inputs_of
from streamfleet.testing.manual_clock import ManualClock
from streamfleet.topology.nodes import SourceNode

TEXT = sf.serdes.string()


class Sent:
    def __init__(self):
        self.records = []

    def send(self, record):
        self.records.append(record)

    def partition_count(self, topic):
        return 1


class CrashingApp:
    """One sub-topology on one partition. What an open transaction had sent is lost in a crash, as with exactly once."""

    def __init__(self, build, directory: Path, **settings):
        self.config = sf.StreamsConfig(
            application_id="app", default_key_serde=TEXT, default_value_serde=TEXT, **settings
        )
        builder = sf.StreamsBuilder(self.config)
        build(builder)
        self._whole = builder.build().processor_topology("app", 0)
        sources = [node for node in self._whole.nodes if isinstance(node, SourceNode)]
        self._inputs = [TopicPartition(topic, 0) for node in sources for topic in node.topics]
        self._directory = directory
        self._producer = Sent()
        self._committed: dict[TopicPartition, object] = {}
        self._lives = 0
        self.done = 0
        """Input records that are part of the last commit."""
        self._processed = 0
        self._start()

    @property
    def results(self):
        """What readers of committed records see: (key, value, timestamp)."""
        sent = self._producer.records
        return [(r.key, r.value, r.timestamp) for r in sent if not r.topic.endswith("-changelog")]

    def process(self, topic, key, value, timestamp):
        at, offset = TopicPartition(topic, 0), self._processed
        encoded = [text and text.encode() for text in (key, value)]
        self._task.add_records(at, [RawRecord(topic, 0, offset, timestamp, *encoded)])
        assert self._task.process()
        self._processed += 1

    def commit(self):
        self._committed |= self._task.prepare_commit()
        self._saved = list(self._producer.records)
        self._task.post_commit({topic: len(records) - 1 for topic, records in self._logs().items() if records})
        self.done = self._processed

    def crash(self, *, disk_is_lost: bool):
        self._task.suspend()
        self._task.discard()
        self._task.close()
        self._producer.records[:] = self._saved
        self._processed = self.done
        self._lives += disk_is_lost
        self._start()

    def close(self):
        self._task.suspend()
        self._task.discard()
        self._task.close()

    def _start(self):
        self._task = StreamTask(
            TaskId(0, 0),
            self._whole,
            inputs_of(self._whole, self._inputs),
            self.config,
            clock=ManualClock(0),
            producer=self._producer,
            engines=StoreEngines(self._directory / f"life-{self._lives}"),
            metrics=Metrics(),
            lag_of=lambda partition: 0,
            state_id="0_0",
        )
        self._task.initialize()
        logs = self._logs()
        for at, position in self._task.restore_positions().items():
            records = logs.get(at.topic, [])[position or 0 :]
            if records:
                self._task.restore(at, records, records[-1].offset)
        self._task.complete_restoration(self._committed)
        self._saved = list(self._producer.records)

    def _logs(self):
        logs = {changelog: [] for changelog in self._task.changelogs}
        for sent in self._producer.records:
            if sent.topic in logs:
                log = logs[sent.topic]
                timestamp = 0 if sent.timestamp is None else sent.timestamp
                log.append(RawRecord(sent.topic, 0, len(log), timestamp, sent.key, sent.value, sent.headers))
        return logs
