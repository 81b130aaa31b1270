"""What the parts of a task are given: an environment that counts, a producer that remembers, text serdes."""

from __future__ import annotations

from typing import Any

import pytest

from streamfleet.config import StreamsConfig
from streamfleet.ids import TaskId
from streamfleet.metrics import Metrics
from streamfleet.records import ProducerRecord, RawRecord, RecordContext
from streamfleet.task.handlers import ErrorHandlers
from streamfleet.task.record_collector import RecordCollector


class Text:
    """UTF-8, and nothing but text: `!` cannot be written, `?` cannot be read."""

    def serialize(self, topic, value):
        if not isinstance(value, str):
            raise TypeError(f"expected text, got {type(value).__name__}")
        if "!" in value:
            raise ValueError(f"refused {value}")
        return value.encode()

    def deserialize(self, topic, data):
        text = data.decode()
        if "?" in text:
            raise ValueError(f"refused {text}")
        return text


class MemoryProducer:
    def __init__(self) -> None:
        self.sent: list[ProducerRecord] = []
        self.refused_topics: set[str] = set()
        self.partition_counts: dict[str, int] = {}

    def send(self, record):
        if record.topic in self.refused_topics:
            raise RuntimeError(f"{record.topic} is full")
        self.sent.append(record)

    def partition_count(self, topic):
        return self.partition_counts.get(topic)


class PartEnvironment:
    """As much of a TaskEnvironment as queues and the record collector use."""

    def __init__(self, config: StreamsConfig, producer: MemoryProducer) -> None:
        self.config = config
        self.task_id = TaskId(0, 0)
        self.metrics = Metrics()
        self.record_context: RecordContext | None = RecordContext("in", 3, 42, 7, b"raw-k", b"raw-v")
        self.handlers = ErrorHandlers.of(config)
        self.sender: Any = RecordCollector(self, producer, self.handlers.production)  # type: ignore[arg-type]

    def drop(self, name, reason):
        self.metrics.record_dropped(name, reason)

    @property
    def dropped(self):
        return dict(self.metrics.dropped_records)


@pytest.fixture
def text():
    return Text()


@pytest.fixture
def config(text):
    return StreamsConfig(application_id="app", default_key_serde=text, default_value_serde=text)


@pytest.fixture
def producer():
    return MemoryProducer()


@pytest.fixture
def environment_with(config, producer):
    def build(**settings):
        return PartEnvironment(config.with_(**settings), producer)

    return build


@pytest.fixture
def raw():
    def build(value: str | None, timestamp: int = 0, offset: int = 0, topic: str = "in", key: str | None = "k"):
        as_bytes = lambda text: None if text is None else text.encode()
        return RawRecord(topic, 0, offset, timestamp, as_bytes(key), as_bytes(value))

    return build
