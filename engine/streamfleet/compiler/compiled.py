"""CompiledProgram: the TaskProgram that runs generated code. Made by `execution.py`; the default everywhere.

Turns a ProcessorTopology and a TaskEnvironment into functions: code_generator.py writes the text, here it is bound to the
processors, sinks and functions of one task. What a record does on its way must be what it does in interpreter.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from streamfleet.compiler.code_generator import CodeGenerator, sends_by_parts
from streamfleet.compiler.failures import ProcessingFailures
from streamfleet.compiler.generated_failures import GeneratedFailures
from streamfleet.compiler.interpreter import SinkRuntime, serde_of
from streamfleet.compiler.life_cycle import close_all, init_all, no_processor
from streamfleet.compiler.node_context import FixedKeyNodeContext, NodeContext, ProcessorPhase
from streamfleet.compiler.program import InputRecord, TaskEnvironment
from streamfleet.dsl.operators.stateless import as_pair
from streamfleet.dsl.operators.table_view import PartsProcessor
from streamfleet.processor.api import FixedKeyProcessor, Processor, Punctuator
from streamfleet.records import FixedKeyRecord, Headers, Record
from streamfleet.topology.nodes import ProcessorNode, ProcessorTopology, SinkNode

AnyProcessor = Processor[Any, Any, Any, Any]
Forward = Callable[..., None]


class CompiledNodeContext(NodeContext):
    """Its `forward` is the generated function itself, so that a call of it passes through nothing else."""

    __slots__ = ("_generated", "_generated_parts", "forward", "forward_parts")

    def bind(self, forward: Forward, forward_parts: Forward | None) -> None:
        """`forward_parts` None: there is none, because the processor takes whole records."""
        self._generated = forward
        self._generated_parts = forward_parts or self._forward_whole

    def _forward_whole(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        self._generated(Record(key, value, timestamp, headers))

    def enter(self, phase: ProcessorPhase) -> None:
        super().enter(phase)
        is_running = phase is ProcessorPhase.RUNNING
        self.forward = self._generated if is_running else self._refuse  # type: ignore[method-assign]
        self.forward_parts = self._generated_parts if is_running else self._refuse  # type: ignore[method-assign, assignment]

    def _refuse(self, *_: object) -> NoReturn:
        self._refuse_forward()

    def no_child(self, name: str) -> None:
        self._child(name)


class CalledProcessor:
    """A processor with its context."""

    def __init__(self, name: str, processor: AnyProcessor, context: CompiledNodeContext) -> None:
        self.name = name
        self.context = context
        self.process: Forward = processor.process_parts if isinstance(processor, PartsProcessor) else processor.process
        self.close = processor.close
        self._processor = processor

    def init(self) -> None:
        self._processor.init(self.context)


class CalledFixedKeyProcessor:
    """A FixedKeyProcessor with its contexts: tells it which key must be kept."""

    def __init__(self, name: str, processor: FixedKeyProcessor[Any, Any, Any], context: CompiledNodeContext) -> None:
        self.name = name
        self.context = context
        self.close = processor.close
        self._processor = processor
        self._fixed = FixedKeyNodeContext(context)

    def init(self) -> None:
        self._processor.init(self._fixed)

    def process(self, record: Record[Any, Any]) -> None:
        before = self._fixed.key_under_way
        self._fixed.key_under_way = record.key
        try:
            self._processor.process(FixedKeyRecord(record.key, record.value, record.timestamp, record.headers))
        finally:
            self._fixed.key_under_way = before


Called = CalledProcessor | CalledFixedKeyProcessor


class CompiledProgram:
    """TaskProgram over generated functions."""

    def __init__(self, topology: ProcessorTopology, environment: TaskEnvironment) -> None:
        self._environment = environment
        self._failures = ProcessingFailures(environment)
        generator = CodeGenerator(topology)
        self.source = generator.generate()
        self._processors = [self._called(node, topology) for node in generator.called]
        objects: dict[str, Any] = {
            "environment": environment,
            "failed": GeneratedFailures(self._failures, self.source.places),
            "Record": Record,
            "as_pair": as_pair,
        }
        objects |= {name: given.function for name, given in generator.functions.items()}
        for node in topology.nodes:
            if isinstance(node, SinkNode):
                objects[f"send_{generator.identifier(node.name)}"] = _send(node, environment)
        for called in self._processors:
            identifier = generator.identifier(called.name)
            objects[f"process_{identifier}"] = called.process
            objects[f"children_{identifier}"] = frozenset(topology.children.get(called.name, ()))
            objects[f"no_child_{identifier}"] = called.context.no_child
        functions = self.source.bind(objects)
        for called in self._processors:
            identifier = generator.identifier(called.name)
            called.context.bind(functions[f"forward_{identifier}"], functions.get(f"forward_parts_{identifier}"))
        self._sources = {node.name: functions[f"source_{generator.identifier(node.name)}"] for node in topology.sources}

    def _called(self, node: ProcessorNode, topology: ProcessorTopology) -> Called:
        # Children are named for messages only: the generated function is what reaches them.
        children = dict.fromkeys(topology.children.get(node.name, ()), _unreachable)
        context = CompiledNodeContext(self._environment, node.name, node.stores, children)
        processor = node.supplier()
        if isinstance(processor, FixedKeyProcessor):
            return CalledFixedKeyProcessor(node.name, processor, context)
        if isinstance(processor, Processor):
            return CalledProcessor(node.name, processor, context)
        raise no_processor(node.name, processor)

    def init(self) -> None:
        init_all(self._processors)

    def process(self, source: str, record: Record[Any, Any]) -> None:
        context = self._environment.record_context
        assert context is not None, "a record is processed without record context"
        self._sources[source](((context, record.key, record.value),))

    def process_batch(self, source: str, batch: Sequence[InputRecord]) -> None:
        self._sources[source](batch)

    def punctuate(self, operator: str, callback: Punctuator, timestamp: int) -> None:
        try:
            callback(timestamp)
        except Exception as error:
            self._failures.handle(operator, None, error)

    def close(self) -> None:
        close_all(self._processors)


def _send(node: SinkNode, environment: TaskEnvironment) -> Callable[..., None]:
    if sends_by_parts(node):
        assert isinstance(node.topic, str)
        key_serde, value_serde = serde_of(node, "key", environment), serde_of(node, "value", environment)
        return environment.sender.to_topic(node.name, node.topic, key_serde, value_serde)
    return SinkRuntime(node, environment).process


def _unreachable(_record: Record[Any, Any]) -> NoReturn:
    raise AssertionError("children are reached through generated code")
