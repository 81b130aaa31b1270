"""The logical graph between the DSL's calls and the Topology.

A GraphNode stands for one operator (or a small group such as filter + sink + source of a repartition) and knows how to write itself
into a Topology. Nodes are written in the order in which they were added last, parents first. Rewriting the graph before it is
written is the place of the optimiser.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from streamfleet.config import StreamsConfig
from streamfleet.dsl.materialized import StoreSpec
from streamfleet.dsl.operators.stateless import FilterOperator
from streamfleet.dsl.windowed_partitioner import partitioner_for
from streamfleet.errors import TopologyError
from streamfleet.processor.api import Processor
from streamfleet.processor.timestamps import FailOnInvalidTimestamp
from streamfleet.serdes.api import Serde
from streamfleet.state.api import StateStore, StoreBuilder
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
    changes_key = False
    changes_value = False
    merges_streams = False
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
        self.reuses_source_topic = False
        """Set by the optimizer: the topic itself restores the store."""

    def write(self, topology: Topology, config: StreamsConfig | None) -> None:
        _add_source(topology, self.source)
        topology.add_operator(self.name, self.operator, self.source.name)
        if self.spec.is_materialized:
            topology.add_state_store(self.spec.builder(config), self.name)
            if self.reuses_source_topic:
                topology.use_source_as_changelog(self.spec.name, self.source.topics[0])


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


class OwnProcessorGraphNode(ProcessorGraphNode):
    """A processor of the user's own: what it does to keys and values is not known."""


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
    can_be_merged = True
    """False for one that the user asked for."""

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
