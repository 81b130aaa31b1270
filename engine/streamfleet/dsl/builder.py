"""StreamsBuilder: where a topology begins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Literal, TypeVar

from streamfleet.config import StreamsConfig
from streamfleet.dsl.global_ktable import GlobalKTable
from streamfleet.dsl.graph import GlobalStoreGraphNode, SourceGraphNode, StateStoreGraphNode, TableSourceGraphNode
from streamfleet.dsl.kstream import KStream
from streamfleet.dsl.ktable import KTable
from streamfleet.dsl.materialized import Materialized, StoreSpec, chosen_materialized
from streamfleet.dsl.names import check_all_named
from streamfleet.dsl.operators.table_source import TableSourceOperator
from streamfleet.dsl.optimizer import optimize
from streamfleet.dsl.scope import BuilderScope
from streamfleet.durations import Duration, duration_ms
from streamfleet.errors import OptionError, TopologyError
from streamfleet.processor.api import ProcessorSupplier
from streamfleet.processor.timestamps import TimestampExtractor
from streamfleet.serdes.api import Serde
from streamfleet.state.api import StateStore, StoreBuilder
from streamfleet.state.versioned_store import VersionedStoreBuilder
from streamfleet.topology.nodes import OffsetReset, SourceNode
from streamfleet.topology.suppliers import check_supplier
from streamfleet.topology.topology import Topology

K = TypeVar("K")
V = TypeVar("V")

_RESETS: tuple[Literal["earliest", "latest", "none"], ...] = ("earliest", "latest", "none")
Reset = str | Duration
"""`earliest`, `latest`, `none`, or how long before now to begin."""


class StreamsBuilder:
    """Sources are added here, operators on what the calls return; `build()` gives the Topology.

    `config`, here or in `build`, decides what operators leave open: where stores keep their rows, whether names are demanded.
    """

    def __init__(self, config: StreamsConfig | None = None) -> None:
        self._config = config
        self._scope = BuilderScope()

    def stream(
        self,
        topics: str | Sequence[str] | re.Pattern[str],
        *,
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: Reset | None = None,
        name: str | None = None,
    ) -> KStream[K, V]:
        """Read one topic, several, or all that match a compiled pattern, as a stream."""
        node_name = self._scope.names.node(name, "KSTREAM-SOURCE-")
        source = _source_node(
            node_name, topics, key_serde, value_serde, timestamp_extractor, _checked_reset("stream", offset_reset)
        )
        node = SourceGraphNode(source)
        self._scope.graph.add(self._scope.graph.root, node)
        return KStream(
            self._scope, node, node_name, frozenset({node_name}), key_serde, value_serde, needs_repartition=False
        )

    def table(
        self,
        topic: str,
        *,
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: Reset | None = None,
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable[K, V]:
        """Read a topic as a table: the newest value of each key; None deletes."""
        options = chosen_materialized("table", store, materialized)
        spec = self._table_store(topic, options, key_serde, value_serde)
        source_name = self._scope.names.suffixed(name, "-source", "KSTREAM-SOURCE-")
        node_name = self._scope.names.node(name, "KTABLE-SOURCE-")
        source = _source_node(
            source_name,
            topic,
            spec.key_serde,
            spec.value_serde,
            timestamp_extractor,
            _checked_reset("table", offset_reset),
        )
        operator = TableSourceOperator(spec, materialize=spec.is_named)
        node = TableSourceGraphNode(node_name, source, operator, spec)
        self._scope.graph.add(self._scope.graph.root, node)
        serdes = spec.key_serde, spec.value_serde
        sources = frozenset({source_name})
        return KTable(self._scope, node, node_name, sources, *serdes, operator, spec.queryable_name)

    def global_table(
        self,
        topic: str,
        *,
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
    ) -> GlobalKTable[K, V]:
        """Read all partitions of a topic, in every process, as a table that any stream can be joined with."""
        options = chosen_materialized("global_table", store, materialized) or Materialized()
        if isinstance(options.supplier, VersionedStoreBuilder):
            raise TopologyError(
                f"global table of {topic} cannot be kept in versioned store {options.supplier.name}",
                hint="use Stores.key_value: a global table has only its newest values",
            )
        unlogged = Materialized(
            options.supplier or options.name,
            key_serde=options.key_serde,
            value_serde=options.value_serde,
            kind=options.kind,
            caching=options.caching,
            logging=False,
        )
        spec = self._table_store(topic, unlogged, key_serde, value_serde)
        source_name = self._scope.names.suffixed(name, "-source", "KSTREAM-SOURCE-")
        node_name = self._scope.names.node(name, "KTABLE-SOURCE-")
        source = _source_node(source_name, topic, spec.key_serde, spec.value_serde, timestamp_extractor, None)
        operator = TableSourceOperator(spec, materialize=True)
        self._scope.graph.add(self._scope.graph.root, GlobalStoreGraphNode(source, node_name, operator, spec.builder))
        return GlobalKTable(spec.name, spec.queryable_name)

    def add_state_store(self, store: StoreBuilder[StateStore]) -> StreamsBuilder:
        """Add a store that processors connect to by its name."""
        self._scope.graph.add(self._scope.graph.root, StateStoreGraphNode(store))
        return self

    def add_global_store(
        self,
        store: StoreBuilder[StateStore],
        topic: str,
        supplier: ProcessorSupplier,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        name: str | None = None,
    ) -> StreamsBuilder:
        """Add a store of which every process holds all partitions; processors of `supplier` keep it up to date."""
        source_name = self._scope.names.suffixed(name, "-source", "KSTREAM-SOURCE-")
        node_name = self._scope.names.node(name, "KTABLE-SOURCE-")
        check_supplier(f"add_global_store ({node_name})", supplier)
        source = _source_node(source_name, topic, key_serde, value_serde, timestamp_extractor, None)
        node = GlobalStoreGraphNode(source, node_name, supplier, lambda _config: store)
        self._scope.graph.add(self._scope.graph.root, node)
        return self

    def build(self, config: StreamsConfig | None = None) -> Topology:
        """Check the whole and make the Topology. May be called again, also after more was added."""
        chosen = config or self._config
        topology = Topology(chosen)
        self._scope.graph.merge_equal_sources()
        if chosen is not None:
            optimize(self._scope, chosen)
        self._scope.graph.write(topology, chosen)
        if chosen is not None and chosen.ensure_explicit_internal_resource_naming:
            check_all_named(self._scope.names.unnamed)
        return topology

    def _table_store(
        self,
        topic: str,
        options: Materialized | None,
        key_serde: Serde[Any] | None,
        value_serde: Serde[Any] | None,
    ) -> StoreSpec:
        """The serdes of the source are those of the store: one table, one encoding."""
        if not isinstance(topic, str):
            raise OptionError(f"a table is read from one topic, but was given {topic!r}")
        spec = StoreSpec(options, self._scope.names, f"{topic}-", key_serde=key_serde, value_serde=value_serde)
        spec.key_serde = key_serde or spec.key_serde
        spec.value_serde = value_serde or spec.value_serde
        return spec


def _source_node(
    name: str,
    topics: str | Sequence[str] | re.Pattern[str],
    key_serde: Serde[Any] | None,
    value_serde: Serde[Any] | None,
    timestamp_extractor: TimestampExtractor | None,
    offset_reset: OffsetReset | None,
) -> SourceNode:
    pattern = topics if isinstance(topics, re.Pattern) else None
    names = () if isinstance(topics, re.Pattern) else (topics,) if isinstance(topics, str) else tuple(topics)
    if pattern is None and not names:
        raise OptionError(f"source {name} reads no topic", hint="name at least one topic, or give a compiled pattern")
    return SourceNode(name, names, pattern, key_serde, value_serde, timestamp_extractor, offset_reset)


def _checked_reset(operator: str, reset: Reset | None) -> OffsetReset | None:
    if reset is None:
        return None
    if not isinstance(reset, str):
        return timedelta(milliseconds=duration_ms(reset, f"offset_reset of {operator}"))
    for policy in _RESETS:
        if reset == policy:
            return policy
    raise OptionError(
        f"{operator}: offset_reset cannot be {reset!r}", hint="use earliest, latest, none, or a duration before now"
    )
