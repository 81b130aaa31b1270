"""The plain interpreter: one runtime object per node, a record is a chain of `process` calls.

Called by the tasks. Turns a ProcessorTopology and a TaskEnvironment into a TaskProgram. The graph is wired from the
sinks upwards, so that every node gets its children as a finished tuple of bound methods. Contexts are in
node_context.py, the answer to a raised error in failures.py, serializing and sending in the task's record collector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from streamfleet.compiler.failures import ProcessingFailures
from streamfleet.compiler.life_cycle import close_all, init_all, no_processor
from streamfleet.compiler.node_context import FixedKeyNodeContext, NodeContext, Process
from streamfleet.compiler.program import InputRecord, TaskEnvironment
from streamfleet.errors import ConfigError, ProductionError, SinkFunctionError
from streamfleet.processor.api import FixedKeyProcessor, Processor, Punctuator
from streamfleet.records import FixedKeyRecord, Record, RecordContext
from streamfleet.serdes.api import Serde, resolved, resolved_value
from streamfleet.topology.nodes import Node, ProcessorNode, ProcessorTopology, SinkNode, SourceNode


def serde_of(node: SourceNode | SinkNode, part: Literal["key", "value"], environment: TaskEnvironment) -> Serde[Any]:
    """The serde a source or sink was given, or the default one of the configuration."""
    config = environment.config
    if part == "key":
        serde = resolved(node.key_serde, config.default_key_serde)
    else:
        serde = resolved_value(node.value_serde, config.default_key_serde, config.default_value_serde)
    if serde is None:
        kind = "source" if isinstance(node, SourceNode) else "sink"
        raise ConfigError(
            f"{kind} {node.name} has no {part} serde", hint=f"give it {part}_serde=... or set default.{part}.serde"
        )
    return serde


class SourceRuntime:
    """Hands records to its children. What came before (deserializing, timestamps) is done by the task's queues."""

    __slots__ = ("_children", "name")

    def __init__(self, name: str, children: Mapping[str, Process]) -> None:
        self.name = name
        self._children = tuple(children.values())

    def process(self, record: Record[Any, Any]) -> None:
        for process in self._children:
            process(record)


class ProcessorRuntime:
    """Runs a Processor."""

    __slots__ = ("_failures", "_process", "context", "name", "processor")

    def __init__(
        self, name: str, processor: Processor[Any, Any, Any, Any], context: NodeContext, failures: ProcessingFailures
    ) -> None:
        self.name = name
        self.processor = processor
        self.context = context
        self._process = processor.process
        self._failures = failures

    def init(self) -> None:
        self.processor.init(self.context)

    def process(self, record: Record[Any, Any]) -> None:
        try:
            self._process(record)
        except Exception as error:
            self._failures.handle(self.name, record, error)

    def close(self) -> None:
        self.processor.close()


class FixedKeyProcessorRuntime:
    """Runs a FixedKeyProcessor; tells its context which key must be kept."""

    __slots__ = ("_failures", "_fixed", "context", "name", "processor")

    def __init__(
        self, name: str, processor: FixedKeyProcessor[Any, Any, Any], context: NodeContext, failures: ProcessingFailures
    ) -> None:
        self.name = name
        self.processor = processor
        self.context = context
        self._fixed = FixedKeyNodeContext(context)
        self._failures = failures

    def init(self) -> None:
        self.processor.init(self._fixed)

    def process(self, record: Record[Any, Any]) -> None:
        before = self._fixed.key_under_way
        self._fixed.key_under_way = record.key
        try:
            self.processor.process(FixedKeyRecord(record.key, record.value, record.timestamp, record.headers))
        except Exception as error:
            self._failures.handle(self.name, record, error)
        finally:
            # Not UNKNOWN_KEY: a flushing cache upstream may have sent this record in the middle of another one.
            self._fixed.key_under_way = before

    def close(self) -> None:
        self.processor.close()


class SinkRuntime:
    """Finds the topic and hands the record to the record collector."""

    __slots__ = ("_environment", "_key_serde", "_partitioner", "_send", "_topic", "_value_serde", "name")

    def __init__(self, node: SinkNode, environment: TaskEnvironment) -> None:
        self.name = node.name
        self._topic = node.topic
        self._partitioner = node.partitioner
        self._key_serde = serde_of(node, "key", environment)
        self._value_serde = serde_of(node, "value", environment)
        self._environment = environment
        self._send = environment.sender.send

    def process(self, record: Record[Any, Any]) -> None:
        topic = self._topic if isinstance(self._topic, str) else self._extract_topic(record)
        self._send(self.name, topic, record, self._key_serde, self._value_serde, self._partitioner)

    def _extract_topic(self, record: Record[Any, Any]) -> str:
        assert not isinstance(self._topic, str)
        context = self._environment.record_context or RecordContext("", -1, -1, record.timestamp)
        try:
            topic = self._topic(record.key, record.value, context.derive(record.timestamp, record.headers))
        except Exception as error:
            fact = f"the topic of a record could not be found: {error!r}"
            raise SinkFunctionError(fact, operator=self.name) from error
        if not topic:
            raise ProductionError(
                f"the topic of a record is {topic!r}", operator=self.name, hint="the topic function must return a name"
            )
        return topic


RunningProcessor = ProcessorRuntime | FixedKeyProcessorRuntime


class Interpreter:
    """TaskProgram over runtime objects."""

    def __init__(self, topology: ProcessorTopology, environment: TaskEnvironment) -> None:
        self._environment = environment
        self._failures = ProcessingFailures(environment)
        self._sources: dict[str, SourceRuntime] = {}
        self._processors: list[RunningProcessor] = []
        self._wire(topology)

    def _wire(self, topology: ProcessorTopology) -> None:
        wired: dict[str, Process] = {}
        # Parents stand before their children, so backwards every child is there when its parent needs it.
        for node in reversed(topology.nodes):
            children = {name: wired[name] for name in topology.children.get(node.name, ())}
            wired[node.name] = self._runtime(node, children).process
        self._processors.reverse()

    def _runtime(
        self, node: Node, children: Mapping[str, Process]
    ) -> SourceRuntime | SinkRuntime | ProcessorRuntime | FixedKeyProcessorRuntime:
        if isinstance(node, SourceNode):
            self._sources[node.name] = SourceRuntime(node.name, children)
            return self._sources[node.name]
        if isinstance(node, SinkNode):
            return SinkRuntime(node, self._environment)
        runtime = self._processor_runtime(node, children)
        self._processors.append(runtime)
        return runtime

    def _processor_runtime(self, node: ProcessorNode, children: Mapping[str, Process]) -> RunningProcessor:
        context = NodeContext(self._environment, node.name, node.stores, children)
        processor = node.supplier()
        if isinstance(processor, FixedKeyProcessor):
            return FixedKeyProcessorRuntime(node.name, processor, context, self._failures)
        if isinstance(processor, Processor):
            return ProcessorRuntime(node.name, processor, context, self._failures)
        raise no_processor(node.name, processor)

    def init(self) -> None:
        init_all(self._processors)

    def process(self, source: str, record: Record[Any, Any]) -> None:
        self._sources[source].process(record)

    def process_batch(self, source: str, batch: Sequence[InputRecord]) -> None:
        environment, process = self._environment, self._sources[source].process
        for context, key, value in batch:
            environment.record_context = context
            environment.stream_time = max(environment.stream_time, context.timestamp)
            process(Record(key, value, context.timestamp, context.headers))

    def punctuate(self, operator: str, callback: Punctuator, timestamp: int) -> None:
        try:
            callback(timestamp)
        except Exception as error:
            self._failures.handle(operator, None, error)

    def close(self) -> None:
        close_all(self._processors)
