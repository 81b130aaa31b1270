"""Topology: the graph an app declares, built by Processor API calls; the DSL writes itself through the same calls.

It only registers and checks. How nodes fall into SubTopologies is in sub_topologies.py, internal topics and partition counts in
plan.py, text in description.py, the lock in lock.py, the drawing in picture.py. What runs it is a ProcessorTopology.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from streamfleet.config import StreamsConfig
from streamfleet.errors import ConfigError, TopologyError
from streamfleet.processor.api import ProcessorSupplier
from streamfleet.processor.timestamps import TimestampExtractor
from streamfleet.serdes.api import Serde
from streamfleet.state.api import StateStore, StoreBuilder
from streamfleet.state.changelog_names import changelog_name
from streamfleet.topology import lock, picture
from streamfleet.topology.description import TopologyDescription
from streamfleet.topology.nodes import (
    GlobalStoreEntry,
    Node,
    OffsetReset,
    ProcessorNode,
    ProcessorTopology,
    SinkNode,
    SourceNode,
    StoreEntry,
    StreamPartitioner,
    TopicNameExtractor,
)
from streamfleet.topology.plan import TopologyPlan, make_plan
from streamfleet.topology.sub_topologies import SubTopology, describe, find_sub_topologies
from streamfleet.topology.suppliers import check_supplier, stores_brought_by_wrapper, stores_of, wrapped_supplier

NO_EPOCHS: Mapping[str, int] = MappingProxyType({})

AnyStoreBuilder = StoreBuilder[StateStore]


class Topology:
    """The DAG of nodes an app declares; built once, instantiated per task."""

    def __init__(self, config: StreamsConfig | None = None) -> None:
        self._config = config
        self._nodes: dict[str, Node] = {}
        self._order: list[
            str
        ] = []  # nodes and feeds of global stores, as they were added: it numbers the SubTopologies
        self._stores: dict[str, AnyStoreBuilder] = {}
        self._global_stores: dict[str, GlobalStoreEntry] = {}
        self._source_changelogs: dict[str, str] = {}
        self._repartition_topics: dict[str, int | None] = {}
        self._copartitioned: list[frozenset[str]] = []

    # what a developer calls

    def add_source(
        self,
        name: str,
        topics: str | Sequence[str] | re.Pattern[str],
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: OffsetReset | int | None = None,
    ) -> Topology:
        """Read topics, or every topic whose name matches a pattern."""
        self._check_new(name)
        pattern = topics if isinstance(topics, re.Pattern) else None
        names = () if isinstance(topics, re.Pattern) else (topics,) if isinstance(topics, str) else tuple(topics)
        if pattern is None and not names:
            raise TopologyError(f"source {name} reads no topic", hint="name at least one topic, or give a pattern")
        self._check_unread(name, names, pattern)
        reset = timedelta(milliseconds=offset_reset) if isinstance(offset_reset, int) else offset_reset
        self._add(SourceNode(name, names, pattern, key_serde, value_serde, timestamp_extractor, reset))
        return self

    def add_processor(self, name: str, supplier: ProcessorSupplier, *parents: str) -> Topology:
        """Add a processor below its parents; `supplier` makes a new one for every task."""
        check_supplier(name, supplier)
        self.add_operator(name, supplier, *parents)
        for builder in stores_of(name, supplier):
            self.add_state_store(builder, name)
        return self

    def add_sink(
        self,
        name: str,
        topic: str | TopicNameExtractor,
        *parents: str,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        partitioner: StreamPartitioner | None = None,
    ) -> Topology:
        """Write to a topic, or to the one a function names for each record."""
        self._check_new(name)
        self._check_parents(name, parents)
        self._add(SinkNode(name, topic, parents, key_serde, value_serde, partitioner))
        return self

    def add_state_store(self, builder: AnyStoreBuilder, *processors: str) -> Topology:
        """Add a store and connect processors to it. Adding the same builder again only connects."""
        known = self._stores.get(builder.name)
        if (known is not None and known is not builder) or builder.name in self._global_stores:
            raise TopologyError(
                f"a different state store has already been added with the name {builder.name}",
                hint="give one of them another name",
            )
        self._stores[builder.name] = builder
        for processor in processors:
            self.connect_processor_and_state_stores(processor, builder.name)
        return self

    def connect_processor_and_state_stores(self, processor: str, *stores: str) -> Topology:
        """Let a processor use stores. Processors that share a store run in the same SubTopology."""
        if not stores:
            raise TopologyError(f"no state store named to connect to processor {processor}")
        for store in stores:
            self._connect(processor, store)
        return self

    def add_global_store(
        self,
        builder: AnyStoreBuilder,
        source_name: str,
        topic: str,
        processor_name: str,
        supplier: ProcessorSupplier,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
    ) -> Topology:
        """Add a store that holds all partitions of a topic in every process; every processor may read it. The topic is its
        changelog: what its builder says of logging does not matter.
        """
        check_supplier(processor_name, supplier)
        return self.add_global_operator(
            builder,
            SourceNode(source_name, (topic,), None, key_serde, value_serde, timestamp_extractor),
            ProcessorNode(processor_name, supplier, (source_name,), (builder.name,)),
        )

    def add_read_only_state_store(
        self,
        builder: AnyStoreBuilder,
        source_name: str,
        topic: str,
        processor_name: str,
        supplier: ProcessorSupplier,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
    ) -> Topology:
        """Add a store whose input topic is its changelog: it has none of its own, whatever its builder says of logging."""
        self.add_source(
            source_name,
            topic,
            key_serde=key_serde,
            value_serde=value_serde,
            timestamp_extractor=timestamp_extractor,
        )
        self.add_processor(processor_name, supplier, source_name)
        self.add_state_store(builder, processor_name)
        self.use_source_as_changelog(builder.name, topic)
        return self

    def describe(self) -> TopologyDescription:
        """The nodes by SubTopology; `str()` of it is the Java original's text."""
        return describe(self.sub_topologies())

    def to_json(self) -> str:
        """The topology as the lock file keeps it: stable, sorted, fit for a diff."""
        return lock.to_json(self)

    def short_hash(self) -> str:
        """Names this version of the topology, as members of a group and metrics tell it."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    def to_svg(self, *, title: str | None = None) -> str:
        """The topology as a picture."""
        return picture.to_svg(self.describe(), title=title)

    def plan(self, partitions: Mapping[str, int], config: StreamsConfig | None = None) -> TopologyPlan:
        """SubTopologies with their tasks, internal topics with configs and partition counts; needs no broker.

        `partitions` gives the partition count of every input topic.
        """
        return make_plan(self, self._config_or(config), partitions)

    # what the DSL and the layers above call

    @property
    def config(self) -> StreamsConfig | None:
        return self._config

    @property
    def nodes(self) -> Mapping[str, Node]:
        """All nodes but those of global stores, in the order in which they were added."""
        return self._nodes

    @property
    def stores(self) -> Mapping[str, AnyStoreBuilder]:
        return self._stores

    @property
    def global_stores(self) -> Mapping[str, GlobalStoreEntry]:
        return self._global_stores

    @property
    def repartition_topics(self) -> Mapping[str, int | None]:
        """Names without the application id, with the partition count that was asked for, if any."""
        return self._repartition_topics

    @property
    def copartitioned(self) -> Sequence[frozenset[str]]:
        """Groups of source nodes whose topics must have the same number of partitions."""
        return self._copartitioned

    @property
    def source_changelogs(self) -> Mapping[str, str]:
        """Stores that an input topic restores."""
        return self._source_changelogs

    def add_operator(self, name: str, supplier: ProcessorSupplier, *parents: str) -> None:
        """add_processor for suppliers that are known to be right."""
        self._check_new(name)
        self._check_parents(name, parents)
        wrapped = self._wrapped(name, supplier)
        self._add(ProcessorNode(name, wrapped, parents))
        for builder in stores_brought_by_wrapper(name, supplier, wrapped):
            self.add_state_store(builder, name)

    def add_global_operator(self, builder: AnyStoreBuilder, source: SourceNode, processor: ProcessorNode) -> Topology:
        """add_global_store for suppliers that are known to be right."""
        self._check_new(source.name)
        self._check_new(processor.name)
        if source.name == processor.name:
            raise TopologyError(f"source and processor of global store {builder.name} are both named {source.name}")
        if builder.name in self._stores or builder.name in self._global_stores:
            raise TopologyError(
                f"a different state store has already been added with the name {builder.name}",
                hint="give one of them another name",
            )
        self._check_unread(source.name, source.topics, None)
        wrapped = self._wrapped(processor.name, processor.supplier)
        self._global_stores[builder.name] = GlobalStoreEntry(builder, source, replace(processor, supplier=wrapped))
        self._order.append(source.name)
        return self

    def _wrapped(self, name: str, supplier: ProcessorSupplier) -> ProcessorSupplier:
        wrapper = None if self._config is None else self._config.processor_wrapper
        return supplier if wrapper is None else wrapped_supplier(name, supplier, wrapper)

    def add_repartition_topic(self, name: str, partitions: int | None = None) -> None:
        """Declare a topic that the app creates by itself between two SubTopologies; `name` is without the application id."""
        self._repartition_topics[name] = partitions

    def copartition(self, sources: Iterable[str]) -> None:
        """Declare that the topics of these source nodes must have the same number of partitions."""
        self._copartitioned.append(frozenset(sources))

    def use_source_as_changelog(self, store: str, topic: str) -> None:
        self._source_changelogs[store] = topic

    def sub_topologies(self) -> tuple[SubTopology, ...]:
        return find_sub_topologies(self._order, self._nodes, self._global_stores)

    def topic_name(self, topic: str, application_id: str) -> str:
        """The real name of a topic: internal ones carry the application id in front."""
        return f"{application_id}-{topic}" if topic in self._repartition_topics else topic

    def changelog_topic(self, store: str, application_id: str, epochs: Mapping[str, int] = NO_EPOCHS) -> str | None:
        """The topic that restores a store; None if nothing does."""
        if store in self._source_changelogs:
            return self._source_changelogs[store]
        if not self._stores[store].logging_enabled:
            return None
        return changelog_name(application_id, store, epochs.get(store, 0))

    def processor_topology(
        self, application_id: str, sub_topology: int | None = None, epochs: Mapping[str, int] = NO_EPOCHS
    ) -> ProcessorTopology:
        """What a task of a SubTopology runs; None takes all of them together, as the test driver does. `epochs` are those of
        stores whose changelog is not the first one.
        """
        if sub_topology is None:
            chosen = list(self._nodes.values())
        else:
            wanted = {node.name for node in self._sub_topology(sub_topology).nodes}
            chosen = [node for node in self._nodes.values() if node.name in wanted]
        nodes = tuple(self._with_real_names(node, application_id) for node in chosen)
        return ProcessorTopology(
            nodes=nodes,
            children=_children(nodes),
            stores=tuple(self._store_entries(nodes, application_id, epochs)),
            global_stores=tuple(self._global_stores.values()),
        )

    def _add(self, node: Node) -> None:
        self._nodes[node.name] = node
        self._order.append(node.name)

    def _sub_topology(self, number: int) -> SubTopology:
        for candidate in self.sub_topologies():
            if candidate.id == number:
                return candidate
        raise TopologyError(f"there is no sub-topology {number}")

    def _with_real_names(self, node: Node, application_id: str) -> Node:
        if isinstance(node, SourceNode):
            return replace(node, topics=tuple(self.topic_name(topic, application_id) for topic in node.topics))
        if isinstance(node, SinkNode) and isinstance(node.topic, str):
            return replace(node, topic=self.topic_name(node.topic, application_id))
        return node

    def _store_entries(
        self, nodes: Iterable[Node], application_id: str, epochs: Mapping[str, int]
    ) -> Iterable[StoreEntry]:
        used = (store for node in nodes if isinstance(node, ProcessorNode) for store in node.stores)
        for store in dict.fromkeys(used):
            builder, changelog = self._stores[store], self.changelog_topic(store, application_id, epochs)
            yield StoreEntry(builder, changelog, source_is_changelog=store in self._source_changelogs)

    def _connect(self, processor: str, store: str) -> None:
        if store in self._global_stores:
            raise TopologyError(
                f"global state store {store} cannot be connected to processor {processor}",
                hint="leave it out: every processor may use every global store",
            )
        if store not in self._stores:
            raise TopologyError(
                f"state store {store} is not added yet", hint=f"add it before connecting it to processor {processor}"
            )
        node = self._nodes.get(processor)
        if node is None:
            raise TopologyError(
                f"processor {processor} is not added yet", hint=f"add it before connecting store {store}"
            )
        if not isinstance(node, ProcessorNode):
            raise TopologyError(f"state store {store} cannot be connected to {processor}, a source or sink")
        if store not in node.stores:
            self._nodes[processor] = replace(node, stores=(*node.stores, store))

    def _check_new(self, name: str) -> None:
        taken = {entry.source.name for entry in self._global_stores.values()}
        taken |= {entry.processor.name for entry in self._global_stores.values()}
        if name in self._nodes or name in taken:
            raise TopologyError(f"processor {name} is already added", hint="give every node a name of its own")

    def _check_parents(self, name: str, parents: Sequence[str]) -> None:
        if not parents:
            raise TopologyError(f"node {name} has no parent", hint="name the nodes it receives records from")
        for parent in parents:
            if parent == name:
                raise TopologyError(f"node {name} cannot be its own parent")
            if parent not in self._nodes:
                raise TopologyError(
                    f"parent node {parent} of {name} is unknown", hint="add parents before their children"
                )
            if isinstance(self._nodes[parent], SinkNode):
                raise TopologyError(f"sink {parent} cannot be the parent of {name}", hint="nothing comes out of a sink")

    def _check_unread(self, name: str, topics: Iterable[str], pattern: re.Pattern[str] | None) -> None:
        sources = [node for node in self._nodes.values() if isinstance(node, SourceNode)]
        global_sources = [entry.source for entry in self._global_stores.values()]
        for source in sources + global_sources:
            for topic in topics:
                if topic in source.topics or (source.pattern is not None and source.pattern.fullmatch(topic)):
                    raise TopologyError(
                        f"topic {topic} of source {name} has already been registered by source {source.name}",
                        hint="read a topic once and use the result twice",
                    )
        if pattern is None:
            return
        # A topic that feeds a global store may match: a topic can be read both ways, and the original asks only in the other order.
        for source in sources:
            if any(pattern.fullmatch(topic) for topic in source.topics):
                raise TopologyError(
                    f"pattern {pattern.pattern} of source {name} matches a topic of source {source.name}"
                )

    def _config_or(self, config: StreamsConfig | None) -> StreamsConfig:
        chosen = config or self._config
        if chosen is None:
            raise ConfigError("the application id is not known", hint="pass config=StreamsConfig(application_id=...)")
        return chosen


def _children(nodes: Sequence[Node]) -> dict[str, tuple[str, ...]]:
    children: dict[str, list[str]] = {node.name: [] for node in nodes}
    for node in nodes:
        for parent in () if isinstance(node, SourceNode) else node.parents:
            children[parent].append(node.name)
    return {name: tuple(names) for name, names in children.items()}
