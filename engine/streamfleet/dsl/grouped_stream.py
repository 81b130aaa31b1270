"""KGroupedStream: a stream whose equal keys meet, ready to be counted, reduced or aggregated, whole or by windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from streamfleet.dsl.cogrouped_stream import CogroupedKStream
from streamfleet.dsl.functions import checked_function
from streamfleet.dsl.graph import GraphNode, ProcessorGraphNode, RepartitionGraphNode
from streamfleet.dsl.ktable import KTable
from streamfleet.dsl.materialized import Materialized, StoreSpec, chosen_materialized
from streamfleet.dsl.operators.aggregate import StreamAggregateOperator, count_one, nothing, reducing, zero
from streamfleet.dsl.operators.table_view import TableOperator
from streamfleet.dsl.repartition import repartition_node
from streamfleet.dsl.scope import BuilderScope, StreamLike
from streamfleet.dsl.windowed_stream import SessionWindowedKStream, TimeWindowedKStream
from streamfleet.dsl.windows import SessionWindows, SlidingWindows, Windows
from streamfleet.errors import OptionError
from streamfleet.serdes import long
from streamfleet.serdes.api import Serde

K = TypeVar("K")
V = TypeVar("V")
VA = TypeVar("VA")

AGGREGATE = "KSTREAM-AGGREGATE-"
REDUCE = "KSTREAM-REDUCE-"


class KGroupedStream(StreamLike[K, V]):
    """A grouped stream. Records with a null key or value are dropped (and counted), except that windows take null values."""

    def __init__(
        self,
        scope: BuilderScope,
        node: GraphNode,
        name: str,
        sources: frozenset[str],
        key_serde: Serde[Any] | None,
        value_serde: Serde[Any] | None,
        *,
        needs_repartition: bool,
        repartition_name: str | None,
    ) -> None:
        super().__init__(scope, node, name, sources, key_serde, value_serde)
        self._needs_repartition = needs_repartition
        self._repartition_name = repartition_name
        self._repartition: RepartitionGraphNode | None = None

    def count(
        self, *, name: str | None = None, store: str | None = None, materialized: Materialized | None = None
    ) -> KTable[K, int]:
        """The number of records of each key."""
        options = self._count_options(store, materialized)
        spec = StoreSpec(options, self._scope.names, AGGREGATE, key_serde=self._key_serde, value_serde=long())
        return self._aggregate(StreamAggregateOperator(spec.name, zero, count_one), spec, name, AGGREGATE)

    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable[K, V]:
        """Combine the values of each key by `reducer(aggregate, value)`; the first value is the first aggregate."""
        function = checked_function("reduce", reducer, "reducer", ("aggregate", "value"))
        options = chosen_materialized("reduce", store, materialized)
        spec = StoreSpec(options, self._scope.names, REDUCE, key_serde=self._key_serde, value_serde=self._value_serde)
        return self._aggregate(StreamAggregateOperator(spec.name, nothing, reducing(function)), spec, name, REDUCE)

    def aggregate(
        self,
        initializer: Callable[[], VA],
        aggregator: Callable[[K, V, VA], VA | None],
        *,
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable[K, VA]:
        """Combine the values of each key by `aggregator(key, value, aggregate)`, starting with `initializer()`; None deletes."""
        checked_function("aggregate", initializer, "initializer", ())
        checked_function("aggregate", aggregator, "aggregator", ("key", "value", "aggregate"))
        options = chosen_materialized("aggregate", store, materialized)
        spec = StoreSpec(options, self._scope.names, AGGREGATE, key_serde=self._key_serde)
        return self._aggregate(StreamAggregateOperator(spec.name, initializer, aggregator), spec, name, AGGREGATE)

    def cogroup(self, aggregator: Callable[[K, V, VA], VA | None]) -> CogroupedKStream[K, VA]:
        """Aggregate this stream together with others: `aggregator(key, value, aggregate)` takes the values of this one."""
        checked_function("cogroup", aggregator, "aggregator", ("key", "value", "aggregate"))
        return CogroupedKStream({self: aggregator})

    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedKStream[K, V]: ...

    @overload
    def windowed_by(self, windows: Windows | SlidingWindows) -> TimeWindowedKStream[K, V]: ...

    def windowed_by(
        self, windows: Windows | SlidingWindows | SessionWindows
    ) -> SessionWindowedKStream[K, V] | TimeWindowedKStream[K, V]:
        """Group by windows of time as well."""
        if isinstance(windows, SessionWindows):
            return SessionWindowedKStream(self, windows)
        if isinstance(windows, Windows | SlidingWindows):
            return TimeWindowedKStream(self, windows)
        raise OptionError(
            f"windowed_by was given {windows!r}, which is not a kind of windows",
            hint="pass TimeWindows, SlidingWindows, SessionWindows or UnlimitedWindows",
        )

    def _count_options(self, store: str | None, materialized: Materialized | None) -> Materialized | None:
        """A count with options but without a store name uses up one number more than needed: so it does in the original."""
        options = chosen_materialized("count", store, materialized)
        if options is not None and options.name is None:
            self._scope.names.burn_store(AGGREGATE)
        return options

    def _aggregate(self, operator: TableOperator, spec: StoreSpec, name: str | None, prefix: str) -> KTable[K, Any]:
        node_name = self._scope.names.node(name, prefix)
        return self._add_aggregation(operator, spec, node_name, spec.key_serde)

    def _add_aggregation(
        self,
        operator: TableOperator,
        spec: StoreSpec,
        node_name: str,
        key_serde: Serde[Any] | None,
        grace_ms: int | None = None,
    ) -> KTable[Any, Any]:
        """Add the node, behind a repartition if equal keys do not meet yet."""
        node = ProcessorGraphNode(node_name, operator, spec=spec)
        node.grace_ms = grace_ms
        parent, sources = self._node, self._sources
        if self._needs_repartition:
            parent = self._repartition_for(spec)
            sources = frozenset({parent.name})
            self._scope.graph.add(self._node, parent)
        self._scope.graph.add(parent, node)
        return KTable(self._scope, node, node_name, sources, key_serde, spec.value_serde, operator, spec.queryable_name)

    def _repartition_for(self, spec: StoreSpec, suffix: str = "") -> RepartitionGraphNode:
        """Aggregations of one grouping share its repartition topic if that has a name; else each has its own, named after the
        aggregation's store with a suffix.
        """
        node = repartition_node(
            self._scope,
            self._repartition_name or spec.name + suffix,
            self._key_serde,
            self._value_serde,
            named_by_user=self._repartition_name is not None or spec.is_named,
        )
        if self._repartition is None or self._repartition_name is None:
            self._repartition = node
        return self._repartition
