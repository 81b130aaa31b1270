"""Writes a ProcessorTopology as Python text: one function per source that loops over a batch, one `forward` per processor.

Called by CompiledProgram, and by `streamfleet topology --generated`. Operators without state stand in the text (inline.py says
which): a filter is an `if`, a map an assignment, a flat map an inner loop. All other processors are calls; their `forward` is a
function of its own that has their children in it. A node that several others lead to, or that is nested too deep, gets a function
as well.

Errors. Python enters a `try` for nothing, so there is one wherever the interpreter would go on behind a failed operator: around the
record, around each child but the last, and inside a flat map's loop. Which operator failed is read off the line that raised
(`GeneratedSource.places`), so nothing is written down on the way. What is done about it: generated_failures.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamfleet.compiler.generated_source import GeneratedSource, Place
from streamfleet.compiler.inline import Inlined, UserFunction, inlined, takes_parts
from streamfleet.dsl.operators.stateless import (
    BranchOperator,
    FilterOperator,
    FlatMapOperator,
    FlatMapValuesOperator,
    MapOperator,
    MapValuesOperator,
    PeekOperator,
    SelectKeyOperator,
)
from streamfleet.topology.nodes import Node, ProcessorNode, ProcessorTopology, SinkNode, SourceNode

MAX_INDENT = 12
MAX_BLOCKS = 8
"""Python allows 20 loops and tries in each other."""
RUNTIME_NAMES = ("environment", "failed", "Record", "as_pair")
CHANGED_CONTEXT = (
    "before is not None and (before.timestamp != record.timestamp"
    " or before.headers is not record.headers and before.headers != record.headers)"
)
CHANGED_PARTS = "before.timestamp != timestamp or before.headers is not headers and before.headers != headers"


@dataclass(frozen=True)
class Values:
    """The variables that hold the record where the text is written."""

    key: str
    value: str
    origin: str
    record: str | None = None

    @property
    def as_record(self) -> str:
        return self.record or f"Record({self.as_parts})"

    @property
    def as_parts(self) -> str:
        return f"{self.key}, {self.value}, {self.origin}.timestamp, {self.origin}.headers"

    def at(self, operator: str, above: Place | None) -> Place:
        return Place(operator, self.key, self.value, self.origin, self.record, above)


@dataclass(frozen=True)
class Spot:
    """Where the text is written. `leave` ends the record here, None where siblings follow; `in_region`: an `except` of the caller
    catches what is raised, and nothing stands between here and its end.
    """

    indent: int
    blocks: int = 0
    leave: str | None = None
    in_region: bool = False

    def deeper(self, *, blocks: int = 0) -> Spot:
        return replace(self, indent=self.indent + 1, blocks=self.blocks + blocks)

    @property
    def is_too_deep(self) -> bool:
        return self.indent > MAX_INDENT or self.blocks > MAX_BLOCKS


def sends_by_parts(node: SinkNode) -> bool:
    """Whether a sink needs no Record: its topic is known, and nobody chooses partitions by the record."""
    return isinstance(node.topic, str) and node.partitioner is None


class CodeGenerator:
    """Of one ProcessorTopology. The text depends on nothing but the graph: tasks of one sub-topology share it."""

    def __init__(self, topology: ProcessorTopology) -> None:
        self._nodes: dict[str, Node] = {node.name: node for node in topology.nodes}
        self._children = {name: tuple(dict.fromkeys(topology.children.get(name, ()))) for name in self._nodes}
        self._callers = Counter(child for children in self._children.values() for child in children)
        self._numbers = {name: number for number, name in enumerate(self._nodes)}
        self.inlined: dict[str, Inlined] = {
            node.name: operator
            for node in topology.nodes
            if isinstance(node, ProcessorNode) and (operator := inlined(node, self._children[node.name])) is not None
        }
        self.called = tuple(n for n in topology.nodes if isinstance(n, ProcessorNode) and n.name not in self.inlined)
        self._taking_parts = frozenset(node.name for node in self.called if takes_parts(node))
        self._lines: list[str] = []
        self._places: dict[int, Place] = {}
        self._outlined: list[str] = []
        self._names: dict[str, None] = dict.fromkeys(RUNTIME_NAMES)
        self.functions: dict[str, UserFunction] = {}
        """What the text calls functions of users, by the names it calls them by."""

    def generate(self) -> GeneratedSource:
        body = Spot(1)
        for node in self._nodes.values():
            if isinstance(node, SourceNode):
                self._write_source(node, body)
        for processor in self.called:
            self._write_forward(processor.name, body)
            if processor.name in self._taking_parts:
                self._write_forward_parts(processor.name, body)
        for name in self._outlined:  # grows while it is read
            self._write_node(name, body)
        made = [f"source_{self.identifier(n.name)}" for n in self._nodes.values() if isinstance(n, SourceNode)]
        made += [f"forward_{self.identifier(n.name)}" for n in self.called]
        made += [f"forward_parts_{self.identifier(n.name)}" for n in self.called if n.name in self._taking_parts]
        self._line(body, f"return {{{', '.join(f'{name!r}: {name}' for name in made)}}}")
        text = "\n".join([f"def bind({', '.join(self._names)}):", *self._lines, ""])
        # The line of `bind` itself comes first.
        return GeneratedSource(text, {number + 1: at for number, at in self._places.items()}, tuple(self._names))

    def identifier(self, name: str) -> str:
        """A node's name as part of a Python name; the number keeps apart what looks alike then."""
        return f"{self._numbers[name]}_{re.sub(r'[^A-Za-z0-9]+', '_', name)}"

    # functions

    def _write_source(self, node: SourceNode, spot: Spot) -> None:
        self._line(spot, f"def source_{self.identifier(node.name)}(batch):")
        self._line(spot.deeper(), "for origin, key, value in batch:")
        inner = Spot(spot.indent + 2, 1, "continue")
        self._line(inner, "environment.record_context = origin")
        if self.called:  # else nobody can ask within a batch, and the task itself moves it on behind one
            self._line(inner, "if origin.timestamp > environment.stream_time:")
            self._line(inner.deeper(), "environment.stream_time = origin.timestamp")
        self._write_children(self._children[node.name], Values("key", "value", "origin"), None, inner)

    def _write_forward(self, name: str, spot: Spot) -> None:
        """The `forward` of a processor: the record context follows the record, and comes back behind it."""
        children = self._children[name]
        self._line(spot, f"def forward_{self.identifier(name)}(record, child=None):")
        inner = spot.deeper()
        self._line(inner, f"if child is not None and child not in {self._name('children', name)}:")
        self._line(inner.deeper(), f"{self._name('no_child', name)}(child)")
        if not children:
            return
        # Most records go on with the time and headers they came with: those need no `finally`.
        self._line(inner, "before = environment.record_context")
        self._line(inner, f"if {CHANGED_CONTEXT}:")
        changed = inner.deeper()
        self._line(changed, "environment.record_context = before.derive(record.timestamp, record.headers)")
        self._line(changed, "try:")
        self._line(changed.deeper(), f"return forward_{self.identifier(name)}(record, child)")
        self._line(changed, "finally:")
        self._line(changed.deeper(), "environment.record_context = before")
        self._write_forwarded(children, replace(inner, leave="return"))

    def _write_forward_parts(self, name: str, spot: Spot) -> None:
        """The same without a Record, to all children; the record context of the input record serves as origin, if it fits."""
        function = f"forward_parts_{self.identifier(name)}"
        self._line(spot, f"def {function}(key, value, timestamp, headers):")
        inner = spot.deeper()
        if not self._children[name]:
            self._line(inner, "pass")
            return
        self._line(inner, "before = environment.record_context")
        self._line(inner, "if before is None:")
        self._line(inner.deeper(), "before = Record(key, value, timestamp, headers)")
        self._line(inner, f"elif {CHANGED_PARTS}:")
        changed = inner.deeper()
        self._line(changed, "environment.record_context = before.derive(timestamp, headers)")
        self._line(changed, "try:")
        self._line(changed.deeper(), f"return {function}(key, value, timestamp, headers)")
        self._line(changed, "finally:")
        self._line(changed.deeper(), "environment.record_context = before")
        self._write_children(
            self._children[name], Values("key", "value", "before"), None, replace(inner, leave="return")
        )

    def _write_forwarded(self, children: Sequence[str], spot: Spot) -> None:
        before = len(self._lines)
        if any(not self._takes_record(child) for child in children):
            self._line(spot, "key, value = record.key, record.value")
        values = Values("key", "value", "record", "record")
        if len(children) == 1:
            self._write_children(children, values, None, spot)
        for child in children if len(children) > 1 else ():
            self._line(spot, f"if child is None or child == {child!r}:")
            self._write_children((child,), values, None, replace(spot.deeper(), leave=None))
        self._pass_if_empty(spot, before)

    def _write_node(self, name: str, spot: Spot) -> None:
        """A node that is called from several places, or from too deep in another function."""
        self._line(spot, f"def node_{self.identifier(name)}(key, value, origin):")
        values = Values("key", "value", "origin")
        self._write_region(name, values, None, replace(spot.deeper(), leave="return"))

    def _takes_record(self, name: str) -> bool:
        is_called = isinstance(self._nodes[name], ProcessorNode) and name not in self.inlined
        return is_called and name not in self._taking_parts and not self._is_outlined(name)

    def _is_outlined(self, name: str) -> bool:
        """Only what stands in the text: a call of a processor may as well be written wherever it is made."""
        return name in self.inlined and self._callers[name] > 1

    # children

    def _write_children(self, children: Sequence[str], values: Values, parent: Place | None, spot: Spot) -> None:
        if values.record is None and sum(map(self._takes_record, children)) > 1:
            # A name of its own: what is written for a child may make a record, too, and its siblings come after it.
            record = f"record_{len(self._lines)}"
            self._line(spot, f"{record} = {values.as_record}")
            values = replace(values, record=record)
        for child in children:
            at = spot if child == children[-1] else replace(spot, leave=None, in_region=False)
            self._write_child(child, values, parent, at)

    def _write_child(self, name: str, values: Values, parent: Place | None, spot: Spot) -> None:
        node = self._nodes[name]
        if isinstance(node, SinkNode):
            self._write_sink(node, values, parent, spot)
        elif self._is_outlined(name) or (name in self.inlined and spot.is_too_deep):
            if name not in self._outlined:
                self._outlined.append(name)
            # It catches its own errors; what it lets pass is an error of whoever called it, as in the interpreter.
            call = f"node_{self.identifier(name)}({values.key}, {values.value}, {values.origin})"
            self._line(spot, call, parent)
        elif spot.in_region:
            self._write_body(name, values, values.at(name, parent), spot)
        else:
            self._write_region(name, values, parent, spot)

    def _write_region(self, name: str, values: Values, parent: Place | None, spot: Spot) -> None:
        self._line(spot, "try:")
        before = len(self._lines)
        inner = replace(spot.deeper(blocks=1), in_region=True)
        self._write_body(name, values, values.at(name, None), inner)
        self._pass_if_empty(inner, before)
        self._line(spot, "except Exception as error:")
        self._line(spot.deeper(), "failed(error)", parent)

    def _write_sink(self, node: SinkNode, values: Values, parent: Place | None, spot: Spot) -> None:
        send = self._name("send", node.name)
        arguments = values.as_parts if sends_by_parts(node) else values.as_record
        self._line(spot, f"{send}({arguments})", parent)

    # operators

    def _write_body(self, name: str, values: Values, place: Place, spot: Spot) -> None:
        operator = self.inlined.get(name)
        if operator is None:
            given = values.as_parts if name in self._taking_parts else values.as_record
            self._line(spot, f"{self._name('process', name)}({given})", place)
            return
        self._line(spot, f"# {name}")
        if isinstance(operator, FilterOperator):
            self._write_filter(name, operator, values, place, spot)
        elif isinstance(operator, BranchOperator):
            self._write_branch(name, operator, values, place, spot)
        elif isinstance(operator, FlatMapOperator | FlatMapValuesOperator):
            self._write_flat_map(name, operator, values, place, spot)
        else:
            changed = self._write_step(name, operator, values, place, spot)
            if not (isinstance(operator, PeekOperator) and not operator.forwards):
                self._write_children(self._children[name], changed, place, spot)

    def _write_step(self, name: str, operator: Inlined, values: Values, place: Place, spot: Spot) -> Values:
        """One record in, one record out: the variables that hold it."""
        number = self._numbers[name]
        if isinstance(operator, PeekOperator):
            self._line(spot, self._call(name, operator.action, values), place)
            return values
        if isinstance(operator, SelectKeyOperator):
            self._line(spot, f"key_{number} = {self._call(name, operator.function, values)}", place)
            return replace(values, key=f"key_{number}", record=None)
        if isinstance(operator, MapValuesOperator):
            self._line(spot, f"value_{number} = {self._call(name, operator.function, values)}", place)
            return replace(values, value=f"value_{number}", record=None)
        if isinstance(operator, MapOperator):
            self._line(spot, f"pair = {self._call(name, operator.function, values)}", place)
            return self._write_pair(name, "map", values, place, spot)
        return values

    def _write_pair(self, name: str, operator: str, values: Values, place: Place, spot: Spot) -> Values:
        number = self._numbers[name]
        self._line(spot, "if type(pair) is not tuple or len(pair) != 2:", place)
        self._line(spot.deeper(), f"pair = as_pair(pair, {operator!r})", place)
        self._line(spot, f"key_{number}, value_{number} = pair", place)
        return replace(values, key=f"key_{number}", value=f"value_{number}", record=None)

    def _write_filter(self, name: str, operator: FilterOperator, values: Values, place: Place, spot: Spot) -> None:
        call = self._call(name, operator.predicate, values)
        children = self._children[name]
        if spot.leave is not None:
            self._line(spot, f"if {call}:" if operator.negate else f"if not {call}:", place)
            self._line(spot.deeper(), spot.leave)
            self._write_children(children, values, place, spot)
            return
        self._line(spot, f"if not {call}:" if operator.negate else f"if {call}:", place)
        before = len(self._lines)
        self._write_children(children, values, place, spot.deeper())
        self._pass_if_empty(spot.deeper(), before)

    def _write_branch(self, name: str, operator: BranchOperator, values: Values, place: Place, spot: Spot) -> None:
        branches, default = operator.branches()
        for number, (predicate, child) in enumerate(branches):
            word = "elif" if number else "if"
            self._line(spot, f"{word} {self._call(name, predicate, values, number)}:", place)
            self._write_block(child, values, place, spot.deeper())
        if default is not None and branches:
            self._line(spot, "else:")
            self._write_block(default, values, place, spot.deeper())
        elif default is not None:
            self._write_children((default,), values, place, spot)

    def _write_block(self, child: str, values: Values, place: Place, spot: Spot) -> None:
        before = len(self._lines)
        self._write_children((child,), values, place, spot)
        self._pass_if_empty(spot, before)

    def _write_flat_map(
        self, name: str, operator: FlatMapOperator | FlatMapValuesOperator, values: Values, place: Place, spot: Spot
    ) -> None:
        makes_pairs = isinstance(operator, FlatMapOperator)
        number = self._numbers[name]
        item = "pair" if makes_pairs else f"value_{number}"
        self._line(spot, f"for {item} in {self._call(name, operator.function, values)}:", place)
        inner = replace(spot.deeper(blocks=1), leave="continue", in_region=False)
        before = len(self._lines)
        if makes_pairs:
            changed = self._write_pair(name, "flat_map", values, place, inner)
        else:
            changed = replace(values, value=item, record=None)
        self._write_children(self._children[name], changed, place, inner)
        self._pass_if_empty(inner, before)

    # text

    def _call(self, name: str, function: object, values: Values, number: int = 0) -> str:
        """A call of a user's function."""
        given = UserFunction.of(function)  # type: ignore[arg-type]  # operators check their functions when they are made
        called = self._name("f" if number == 0 else f"f{number}", name)
        self.functions[called] = given
        return f"{called}({values.key}, {values.value})" if given.takes_key else f"{called}({values.value})"

    def _name(self, what: str, node: str) -> str:
        name = f"{what}_{self.identifier(node)}"
        self._names[name] = None
        return name

    def _line(self, spot: Spot, text: str, place: Place | None = None) -> None:
        self._lines.append("    " * spot.indent + text)
        if place is not None:
            self._places[len(self._lines)] = place

    def _pass_if_empty(self, spot: Spot, before: int) -> None:
        if all(line.lstrip().startswith("#") for line in self._lines[before:]):
            self._line(spot, "pass")
