"""The logical graph between the DSL's calls and the Topology.

A GraphNode stands for one operator (or a small group such as filter + sink + source of a repartition) and knows how to write itself
into a Topology. Nodes are written in the order in which they were added last, parents first. Rewriting the graph before it is
written is the place of the optimiser.
"""

from __future__ import annotations

import heapq
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from streamfleet.config import StreamsConfig
from streamfleet.dsl.materialized import StoreSpec
from streamfleet.dsl.operators.stateless import FilterOperator
from streamfleet.dsl.windowed_partitioner import partitioner_for
from streamfleet.errors import OptionError, TopologyError
from streamfleet.processor.api import Processor
from streamfleet.processor.timestamps import FailOnInvalidTimestamp
from streamfleet.serdes.api import Serde
from streamfleet.state.api import StateStore, StoreBuilder
from streamfleet.state.record_buffer import RecordBufferBuilder
from streamfleet.topology.nodes import (
    ProcessorNode,
    SinkNode,
    SourceNode,
    StreamPartitioner,
    TopicNameExtractor,
)
from streamfleet.topology.topology import Topology


class Operator(Protocol):
    """Makes the processors of one node."""

    def __call__(self) -> Processor[Any, Any, Any, Any]: ...


class OwnedStore(Protocol):
    """A store that an operator brings along; its builder is made when the app's defaults are known."""

    name: str

    def builder(self, config: StreamsConfig | None) -> StoreBuilder[StateStore]: ...


class GraphNode(ABC):
    """`name` is the topology node that children attach to."""

    relaxes_null_keys = False
    """True for a join that wants records with a null key (left joins): then no repartition above it may drop them."""
    grace_ms: int | None = None
    """Of the windows of a windowed aggregation: how long after its end a window still changes."""
    is_versioned: bool | None = None
    """Whether it is a table with history; None: as what it is made of."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parents: list[GraphNode] = []
        self.children: list[GraphNode] = []
        self.priority = 0

    def add_child(self, child: GraphNode) -> None:
        if child not in self.children:
            self.children.append(child)
            child.parents.append(self)

    def remove_child(self, child: GraphNode) -> None:
        self.children.remove(child)
        child.parents.remove(self)

    @property
    def has_versions(self) -> bool:
        """Whether updates that come out of here may be out of order, and say so."""
        if self.is_versioned is not None:
            return self.is_versioned
        return bool(self.parents) and all(parent.has_versions for parent in self.parents)

    def settle_versions(self) -> None:
        """Tell the operator whether its input has versions: then it must look at the order of updates."""

    def window_grace_ms(self, path: str = "") -> int:
        """The longest grace of the windowed aggregations above; every path upwards must lead to one."""
        if self.grace_ms is not None:
            return self.grace_ms
        path = f"{self.name} -> {path}" if path else self.name
        if not self.parents:
            raise TopologyError(
                f"there are no windows that could close: {path}",
                hint="suppress until_window_closes only behind a windowed aggregation; else use until_time_limit",
            )
        return max(parent.window_grace_ms(path) for parent in self.parents)

    @property
    def parent_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(parent.name for parent in self.parents))

    @abstractmethod
    def write(self, topology: Topology, config: StreamsConfig | None) -> None: ...


class RootNode(GraphNode):
    def write(self, topology: Topology, config: StreamsConfig | None) -> None:
        """There is nothing to write."""


class SourceGraphNode(GraphNode):
    """Topics read as a stream."""

    def __init__(self, source: SourceNode) -> None:
        super().__init__(source.name)
        self.source = source

    def write(self, topology: Topology, config: StreamsConfig | None) -> None:
        _add_source(topology, self.source)


class TableSourceGraphNode(GraphNode):
    """A topic read as a table: a source and the processor that keeps it, with a store only if somebody needs one."""

    def __init__(self, name: str, source: SourceNode, operator: Operator, spec: StoreSpec) -> None:
        super().__init__(name)
        self.source = source
        self.operator = operator
        self.spec = spec
        self.is_versioned = spec.is_versioned

    def write(self, topology: Topology, config: StreamsConfig | None) -> None:
        _add_source(topology, self.source)
        topology.add_operator(self.name, self.operator, self.source.name)
        if self.spec.is_materialized:
            topology.add_state_store(self.spec.builder(config), self.name)


class GlobalStoreGraphNode(GraphNode):
    """A global table or global store."""

    def __init__(
        self,
        source: SourceNode,
        processor: str,
        operator: Any,
        make_builder: Callable[[StreamsConfig | None], StoreBuilder[StateStore]],
    ) -> None:
        super().__init__(processor)
        self.source = source
        self.operator = operator
        self.make_builder = make_builder

    def write(self, topology: Topology, config: StreamsConfig | None) -> None:
        builder = self.make_builder(config)
        processor = ProcessorNode(self.name, self.operator, (self.source.name,), (builder.name,))
        topology.add_global_operator(builder, self.source, processor)


class StateStoreGraphNode(GraphNode):
    """A store that was added on its own; processors connect to it by name."""

    def __init__(self, builder: StoreBuilder[StateStore]) -> None:
        super().__init__(builder.name)
        self.builder = builder

    def write(self, topology: Topology, config: StreamsConfig | None) -> None:
        topology.add_state_store(self.builder)


class ProcessorGraphNode(GraphNode):
    """One processor with its own store, if it has one, stores it brings along, and the names of other stores it uses."""

    def __init__(
        self,
        name: str,
        operator: Operator,
        *,
        spec: StoreSpec | None = None,
        own_stores: Sequence[OwnedStore] = (),
        builders: Sequence[StoreBuilder[StateStore]] = (),
        stores: Sequence[str] = (),
    ) -> None:
        super().__init__(name)
        self.operator = operator
        self.spec = spec
        if spec is not None:
            self.is_versioned = spec.is_versioned
        self.own_stores = own_stores
        self.builders = builders
        self.stores = stores

    def settle_versions(self) -> None:
        if hasattr(self.operator, "uses_versions"):
            self.operator.uses_versions = any(parent.has_versions for parent in self.parents)

    def write(self, topology: Topology, config: StreamsConfig | None) -> None:
        topology.add_operator(self.name, self.operator, *self.parent_names)
        if self.spec is not None and self.spec.is_materialized:
            topology.add_state_store(self.spec.builder(config), self.name)
        for store in self.own_stores:
            topology.add_state_store(store.builder(config), self.name)
        for builder in self.builders:
            topology.add_state_store(builder, self.name)
        if self.stores:
            topology.connect_processor_and_state_stores(self.name, *self.stores)


class StreamTableJoinGraphNode(ProcessorGraphNode):
    """A stream joined with a table or global table; with grace, over a buffer of its own, if the table has enough history."""

    def __init__(
        self,
        name: str,
        operator: Operator,
        stores: Sequence[str],
        *,
        left: bool,
        buffer: RecordBufferBuilder | None = None,
    ) -> None:
        super().__init__(name, operator, stores=stores, builders=() if buffer is None else (buffer,))
        self.relaxes_null_keys = left
        self.buffer = buffer

    def write(self, topology: Topology, config: StreamsConfig | None) -> None:
        super().write(topology, config)
        if self.buffer is None:
            return
        for store in self.stores:
            history_ms = getattr(topology.stores[store], "history_retention_ms", None)
            if history_ms is None:
                raise not_versioned(self.name)
            if history_ms < self.buffer.grace_ms:
                raise OptionError(
                    f"join {self.name} waits {self.buffer.grace_ms} ms, but versioned store {store} remembers only {history_ms} ms",
                    hint="raise the store's history_retention, or shorten the grace",
                )


def not_versioned(name: str) -> OptionError:
    return OptionError(
        f"join {name} has a grace period, but its table has no history",
        hint="keep the table in a versioned store: materialized=Materialized(Stores.versioned_key_value(...))",
    )


class TableJoinGraphNode(GraphNode):
    """Two tables joined: a processor for the updates of each side, and one that merges their results."""

    def __init__(
        self,
        merge: str,
        merge_operator: Operator,
        spec: StoreSpec | None,
        this_side: tuple[str, Operator, str, Sequence[str]],
        other_side: tuple[str, Operator, str, Sequence[str]],
    ) -> None:
        """A side is: node name, operator, parent node name, stores read on the opposite side."""
        super().__init__(merge)
        self.merge_operator = merge_operator
        self.spec = spec
        self.is_versioned = spec is not None and spec.is_versioned
        self.sides = (this_side, other_side)

    def settle_versions(self) -> None:
        versioned = {parent.name for parent in self.parents if parent.has_versions}
        for _, operator, parent, _ in self.sides:
            operator.uses_versions = parent in versioned  # type: ignore[attr-defined]  # a TableJoinOperator

    def write(self, topology: Topology, config: StreamsConfig | None) -> None:
        for name, operator, parent, _ in self.sides:
            topology.add_operator(name, operator, parent)
        topology.add_operator(self.name, self.merge_operator, *(name for name, *_ in self.sides))
        if self.spec is not None:
            topology.add_state_store(self.spec.builder(config), self.name)
        for name, _, _, stores in self.sides:
            topology.connect_processor_and_state_stores(name, *stores)


class StreamJoinGraphNode(GraphNode):
    """Two streams joined: a processor for the records of each side, and one that merges their results. The processors that keep
    the records are nodes of their own, added before this one.
    """

    def __init__(
        self,
        merge: str,
        merge_operator: Operator,
        this_side: tuple[str, Operator, str, str],
        other_side: tuple[str, Operator, str, str],
        waiting: OwnedStore | None,
        self_join: Operator,
        *,
        is_relaxed: bool,
    ) -> None:
        """A side is: node name, operator, name of the node that keeps its records, store of the opposite side."""
        super().__init__(merge)
        self.merge_operator = merge_operator
        self.sides = (this_side, other_side)
        self.waiting = waiting
        self.self_join = self_join
        self.is_self_join = False
        """Set by the optimizer: both sides are the same stream."""
        self.relaxes_null_keys = is_relaxed

    def write(self, topology: Topology, config: StreamsConfig | None) -> None:
        if self.is_self_join:
            _, _, windowed, _ = self.sides[0]
            topology.add_operator(self.name, self.self_join, windowed)
            topology.connect_processor_and_state_stores(self.name, self.sides[1][3])
            return
        for name, operator, windowed, _ in self.sides:
            topology.add_operator(name, operator, windowed)
        topology.add_operator(self.name, self.merge_operator, *(name for name, *_ in self.sides))
        for name, _, _, opposite in self.sides:
            topology.connect_processor_and_state_stores(name, opposite)
        if self.waiting is not None:
            topology.add_state_store(self.waiting.builder(config), *(name for name, *_ in self.sides))


class SuppressGraphNode(ProcessorGraphNode):
    """Updates held back. What is held back could not say any more whether it is out of order."""

    is_versioned = False

    def settle_versions(self) -> None:
        if all(parent.has_versions for parent in self.parents):
            raise TopologyError(
                f"operator {self.name} suppresses a versioned table",
                hint="suppress before the table is kept in a versioned store, or keep it in a plain one",
            )


class SinkGraphNode(GraphNode):
    """Results written to a topic."""

    def __init__(
        self,
        name: str,
        topic: str | TopicNameExtractor,
        key_serde: Serde[Any] | None,
        value_serde: Serde[Any] | None,
        partitioner: StreamPartitioner | None,
    ) -> None:
        super().__init__(name)
        self.sink = SinkNode(name, topic, (), key_serde, value_serde, partitioner)

    def write(self, topology: Topology, config: StreamsConfig | None) -> None:
        topology.add_sink(
            self.name,
            self.sink.topic,
            *self.parent_names,
            key_serde=self.sink.key_serde,
            value_serde=self.sink.value_serde,
            partitioner=self.sink.partitioner or partitioner_for(self.sink.key_serde),
        )


class RepartitionGraphNode(GraphNode):
    """A stream sent through an internal topic: filter, sink, source. Children attach to the source.

    Records with a null key have no partition to go to and are dropped, silently as in the original, unless a join below wants them.
    """

    keeps_null_keys = False

    def __init__(
        self,
        topic: str,
        names: tuple[str, str, str],
        key_serde: Serde[Any] | None,
        value_serde: Serde[Any] | None,
        partitioner: StreamPartitioner | None = None,
        partitions: int | None = None,
    ) -> None:
        self.filter_name, self.sink_name, source_name = names
        super().__init__(source_name)
        self.topic = topic
        self.key_serde = key_serde
        self.value_serde = value_serde
        self.partitioner = partitioner
        self.partitions = partitions

    def write(self, topology: Topology, config: StreamsConfig | None) -> None:
        topology.add_repartition_topic(self.topic, self.partitions)
        keep = _any_key if self.keeps_null_keys else _has_key
        topology.add_operator(self.filter_name, FilterOperator(keep, negate=False), *self.parent_names)
        topology.add_sink(
            self.sink_name,
            self.topic,
            self.filter_name,
            key_serde=self.key_serde,
            value_serde=self.value_serde,
            partitioner=self.partitioner,
        )
        _add_internal_source(topology, self.name, self.topic, self.key_serde, self.value_serde)


class TableRepartitionGraphNode(GraphNode):
    """Changes of a table, or what is made of them, sent through an internal topic: sink, source. Children attach to the source."""

    def __init__(
        self,
        topic: str,
        sink: str,
        source: str,
        key_serde: Serde[Any] | None,
        value_serde: Serde[Any],
        partitioner: StreamPartitioner | None = None,
    ) -> None:
        super().__init__(source)
        self.topic = topic
        self.sink_name = sink
        self.key_serde = key_serde
        self.value_serde = value_serde
        self.partitioner = partitioner

    def write(self, topology: Topology, config: StreamsConfig | None) -> None:
        topology.add_repartition_topic(self.topic)
        topology.add_sink(
            self.sink_name,
            self.topic,
            *self.parent_names,
            key_serde=self.key_serde,
            value_serde=self.value_serde,
            partitioner=self.partitioner,
        )
        _add_internal_source(topology, self.name, self.topic, self.key_serde, self.value_serde)


class StreamsGraph:
    """All GraphNodes of a builder, and the groups of sources that must be co-partitioned."""

    def __init__(self) -> None:
        self.root: GraphNode = RootNode("root")
        self._priorities = itertools.count(1)
        self._copartitioned: list[frozenset[str]] = []
        self._merged: dict[str, str] = {}

    def add(self, parent: GraphNode, child: GraphNode) -> None:
        """Adding a node again, below another parent, moves it behind everything added so far."""
        parent.add_child(child)
        child.priority = next(self._priorities)

    def copartition(self, sources: frozenset[str]) -> None:
        self._copartitioned.append(sources)

    def write(self, topology: Topology, config: StreamsConfig | None) -> None:
        """May be called again: every call writes everything."""
        self._merge_equal_sources()
        self._settle_null_keys()
        for node in self._nodes():
            node.settle_versions()
        self._write_nodes(topology, config)
        for group in self._copartitioned:
            topology.copartition({self._merged.get(name, name) for name in group})

    def _nodes(self) -> Iterator[GraphNode]:
        seen: set[int] = set()
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            if id(node) not in seen:
                seen.add(id(node))
                waiting += node.children
                yield node

    def _write_nodes(self, topology: Topology, config: StreamsConfig | None) -> None:
        order = itertools.count()
        written: set[int] = set()
        queue: list[tuple[int, int, GraphNode]] = [(0, next(order), self.root)]
        while queue:
            _, _, node = heapq.heappop(queue)
            if id(node) in written or not all(id(parent) in written for parent in node.parents):
                continue
            node.write(topology, config)
            written.add(id(node))
            for child in node.children:
                heapq.heappush(queue, (child.priority, next(order), child))

    def _merge_equal_sources(self) -> None:
        """Streams of the same topics share one source node, so that a topic is read once."""
        kept: dict[Any, SourceGraphNode] = {}
        for node in list(self.root.children):
            if not isinstance(node, SourceGraphNode):
                continue
            same = self._equal_source(kept, node.source)
            if same is None:
                kept.update(dict.fromkeys([node.source.pattern] if node.source.pattern else node.source.topics, node))
                continue
            if same.source.offset_reset != node.source.offset_reset:
                raise TopologyError(
                    f"sources {same.name} and {node.name} read the same topics, but with different offset resets",
                    hint="use one offset_reset for a topic, or read it once",
                )
            for child in list(node.children):
                node.remove_child(child)
                same.add_child(child)
            self.root.remove_child(node)
            self._merged[node.name] = same.name

    @staticmethod
    def _equal_source(kept: dict[Any, SourceGraphNode], source: SourceNode) -> SourceGraphNode | None:
        if source.pattern is not None:
            return kept.get(source.pattern)
        for topic in source.topics:
            other = kept.get(topic)
            if other is None:
                continue
            if set(other.source.topics) != set(source.topics):
                raise TopologyError(
                    f"sources {other.name} and {source.name} read overlapping but not equal sets of topics",
                    hint=f"read {topic} in one stream only, and use that stream twice",
                )
            return other
        return None

    def _settle_null_keys(self) -> None:
        seen: dict[int, bool] = {}

        def leads_to_relaxed_join(node: GraphNode) -> bool:
            if id(node) not in seen:
                seen[id(node)] = False
                below = [child.relaxes_null_keys | leads_to_relaxed_join(child) for child in node.children]
                seen[id(node)] = any(below)
            if isinstance(node, RepartitionGraphNode):
                node.keeps_null_keys = seen[id(node)]
            return seen[id(node)]

        leads_to_relaxed_join(self.root)


def _has_key(key: Any, _value: Any) -> bool:
    return key is not None


def _any_key(_key: Any, _value: Any) -> bool:
    return True


def _add_source(topology: Topology, source: SourceNode) -> None:
    topology.add_source(
        source.name,
        source.pattern or source.topics,
        key_serde=source.key_serde,
        value_serde=source.value_serde,
        timestamp_extractor=source.timestamp_extractor,
        offset_reset=source.offset_reset,
    )


def _add_internal_source(
    topology: Topology, name: str, topic: str, key_serde: Serde[Any] | None, value_serde: Serde[Any] | None
) -> None:
    """Internal topics carry timestamps the app itself has made: a negative one there is always a fault."""
    topology.add_source(
        name,
        topic,
        key_serde=key_serde,
        value_serde=value_serde,
        timestamp_extractor=FailOnInvalidTimestamp(),
    )
