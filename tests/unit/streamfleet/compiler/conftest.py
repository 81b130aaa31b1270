"""An environment that remembers what a program did with it, and processors to build small graphs from."""

from __future__ import annotations

from typing import Any

import pytest

from streamfleet.compiler.interpreter import Interpreter
from streamfleet.config import StreamsConfig
from streamfleet.ids import TaskId
from streamfleet.processor.api import FixedKeyProcessor, Processor
from streamfleet.processor.handlers import LogAndFailProcessing
from streamfleet.records import Record, RecordContext
from streamfleet.topology.nodes import ProcessorNode, ProcessorTopology, SinkNode, SourceNode


class PlainText:
    def serialize(self, topic, value):
        return value.encode()

    def deserialize(self, topic, data):
        return data.decode()


class Sender:
    def __init__(self):
        self.sent = []
        self.dead_letters = []
        self.error = None

    def to_topic(self, operator, topic, key_serde, value_serde):
        def send(key, value, timestamp, headers):
            self.send(operator, topic, Record(key, value, timestamp, headers), key_serde, value_serde, None)

        return send

    def send(self, operator, topic, record, key_serde, value_serde, partitioner):
        if self.error is not None:
            raise self.error
        self.sent.append((operator, topic, record))

    def send_dead_letters(self, operator, records):
        self.dead_letters.extend(records)


class FakeEnvironment:
    """TaskEnvironment without a task."""

    def __init__(self, **settings: Any) -> None:
        self.config = StreamsConfig(
            application_id="app", default_key_serde=PlainText(), default_value_serde=PlainText()
        ).with_(**settings)
        self.application_id = "app"
        self.task_id = TaskId(0, 3)
        self.stream_time = 100
        self.record_context: RecordContext | None = RecordContext("in", 3, 42, 7, b"raw-k", b"raw-v", (("h", b"1"),))
        self.processing_handler: Any = LogAndFailProcessing()
        self.sender = Sender()
        self.stores: dict[str, Any] = {}
        self.global_stores: dict[str, Any] = {}
        self.scheduled: list[tuple[Any, ...]] = []
        self.dropped: list[tuple[str, str]] = []
        self.commits = 0
        self.metadata: dict[str, int] = {}
        self.shared_objects: dict[object, Any] = {}

    def stream_time_ms(self):
        return self.stream_time

    def system_time_ms(self):
        return 200

    def store(self, name):
        return self.stores.get(name)

    def global_store(self, name):
        return self.global_stores.get(name)

    def schedule(self, *arguments):
        self.scheduled.append(arguments)

    def request_commit(self):
        self.commits += 1

    def drop(self, name, reason):
        self.dropped.append((name, reason))

    def processor_metadata(self, key):
        return self.metadata.get(key)

    def shared(self, key, make):
        return self.shared_objects.setdefault(key, make())

    def set_processor_metadata(self, key, value):
        self.metadata[key] = value


class Calling(Processor):
    """Runs a function f(context, record) for every record, and keeps what it saw."""

    def __init__(self, process, on_init=None, on_close=None):
        self._process = process
        self._on_init = on_init
        self._on_close = on_close

    def init(self, context):
        super().init(context)
        if self._on_init is not None:
            self._on_init(context)

    def process(self, record):
        self._process(self.context, record)

    def close(self):
        if self._on_close is not None:
            self._on_close(self.context)


class CallingFixedKey(FixedKeyProcessor):
    def __init__(self, process):
        self._process = process

    def process(self, record):
        self._process(self.context, record)


class Graph:
    """Builds ProcessorTopology values: graph.source("s"), graph.processor("p", f, "s"), graph.sink("k", "out", "p")."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []

    def source(self, name, *topics):
        self.nodes.append(SourceNode(name, topics or ("in",)))
        return self

    def processor(self, name, process, *parents, stores=(), on_init=None, on_close=None):
        self.nodes.append(ProcessorNode(name, lambda: Calling(process, on_init, on_close), parents, stores))
        return self

    def fixed_key(self, name, process, *parents):
        self.nodes.append(ProcessorNode(name, lambda: CallingFixedKey(process), parents))
        return self

    def supplied(self, name, supplier, *parents):
        self.nodes.append(ProcessorNode(name, supplier, parents))
        return self

    def sink(self, name, topic, *parents):
        self.nodes.append(SinkNode(name, topic, parents))
        return self

    def build(self) -> ProcessorTopology:
        children = {
            node.name: tuple(
                child.name
                for child in self.nodes
                if not isinstance(child, SourceNode)
                for parent in child.parents
                if parent == node.name
            )
            for node in self.nodes
        }
        return ProcessorTopology(tuple(self.nodes), children, (), ())


@pytest.fixture
def environment():
    return FakeEnvironment()


@pytest.fixture
def graph():
    return Graph()


@pytest.fixture
def start(environment):
    def start_program(graph: Graph) -> Interpreter:
        program = Interpreter(graph.build(), environment)
        program.init()
        return program

    return start_program
