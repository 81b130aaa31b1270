"""KGroupedTable: a table whose rows are grouped anew, ready to be counted, reduced or aggregated.

A group changes when a row comes, goes or moves, so every aggregation needs a way to add a value and one to take it out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from streamfleet.dsl.functions import checked_function
from streamfleet.dsl.graph import GraphNode, ProcessorGraphNode, TableRepartitionGraphNode
from streamfleet.dsl.materialized import Materialized, StoreSpec, chosen_materialized
from streamfleet.dsl.operators.aggregate import count_one, zero
from streamfleet.dsl.operators.table_group import TableAggregateOperator
from streamfleet.dsl.repartition import SUFFIX
from streamfleet.dsl.scope import BuilderScope, StreamLike
from streamfleet.serdes import long
from streamfleet.serdes.api import Serde
from streamfleet.serdes.change import change

if TYPE_CHECKING:
    from streamfleet.dsl.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
VA = TypeVar("VA")

_AGGREGATE = "KTABLE-AGGREGATE-"
_REDUCE = "KTABLE-REDUCE-"


class KGroupedTable(StreamLike[K, V]):
    """A table whose rows are grouped anew. An aggregation adds a row that comes to its group, and takes out one that leaves it."""

    def __init__(
        self,
        scope: BuilderScope,
        node: GraphNode,
        name: str,
        sources: frozenset[str],
        key_serde: Serde[Any] | None,
        value_serde: Serde[Any] | None,
        *,
        repartition_name: str | None,
    ) -> None:
        super().__init__(scope, node, name, sources, key_serde, value_serde)
        self._repartition_name = repartition_name
        self._repartition: TableRepartitionGraphNode | None = None

    def count(
        self, *, name: str | None = None, store: str | None = None, materialized: Materialized | None = None
    ) -> KTable[K, int]:
        """The number of rows of each group."""
        options = chosen_materialized("count", store, materialized)
        spec = StoreSpec(options, self._scope.names, _AGGREGATE, key_serde=self._key_serde, value_serde=long())
        return self._aggregate(TableAggregateOperator(spec.name, zero, count_one, _count_off), spec, name, _AGGREGATE)

    def reduce(
        self,
        adder: Callable[[V, V], V],
        subtractor: Callable[[V, V], V | None],
        *,
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable[K, V]:
        """Combine the values of each group by `adder(aggregate, value)`, and take one out by `subtractor(aggregate, value)`."""
        add = checked_function("reduce", adder, "adder", ("aggregate", "value"))
        subtract = checked_function("reduce", subtractor, "subtractor", ("aggregate", "value"))
        options = chosen_materialized("reduce", store, materialized)
        spec = StoreSpec(
            options, self._scope.names, _AGGREGATE, key_serde=self._key_serde, value_serde=self._value_serde
        )
        operator = TableAggregateOperator(spec.name, None, _without_key(add), _without_key(subtract))
        return self._aggregate(operator, spec, name, _REDUCE)

    def aggregate(
        self,
        initializer: Callable[[], VA],
        adder: Callable[[K, V, VA], VA | None],
        subtractor: Callable[[K, V, VA], VA | None],
        *,
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable[K, VA]:
        """Combine the values of each group by `adder(key, value, aggregate)`; `subtractor` takes one out, None deletes."""
        checked_function("aggregate", initializer, "initializer", ())
        checked_function("aggregate", adder, "adder", ("key", "value", "aggregate"))
        checked_function("aggregate", subtractor, "subtractor", ("key", "value", "aggregate"))
        options = chosen_materialized("aggregate", store, materialized)
        spec = StoreSpec(options, self._scope.names, _AGGREGATE, key_serde=self._key_serde)
        return self._aggregate(
            TableAggregateOperator(spec.name, initializer, adder, subtractor), spec, name, _AGGREGATE
        )

    def _aggregate(
        self, operator: TableAggregateOperator, spec: StoreSpec, name: str | None, prefix: str
    ) -> KTable[K, Any]:
        from streamfleet.dsl.ktable import KTable  # tables make groups, and groups make tables

        names = self._scope.names
        sink_name = names.suffixed(name, "-sink", "KSTREAM-SINK-")
        source_name = names.suffixed(name, "-source", "KSTREAM-SOURCE-")
        node_name = names.node(name, prefix)
        if self._repartition is None or self._repartition_name is None:
            topic = (self._repartition_name or spec.name) + SUFFIX
            serdes = self._key_serde, change(self._value_serde)
            self._repartition = TableRepartitionGraphNode(topic, sink_name, source_name, *serdes)
        self._scope.graph.add(self._node, self._repartition)
        node = ProcessorGraphNode(node_name, operator, spec=spec)
        self._scope.graph.add(self._repartition, node)
        sources = frozenset({self._repartition.name})
        return KTable(
            self._scope, node, node_name, sources, spec.key_serde, spec.value_serde, operator, spec.queryable_name
        )


def _count_off(_key: Any, _value: Any, count: int) -> int:
    return count - 1


def _without_key(reducer: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    return lambda _key, value, aggregate: reducer(aggregate, value)
