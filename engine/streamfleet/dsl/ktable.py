"""KTable: the newest value of each key, and the operators that make tables and streams of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from streamfleet.dsl.foreign_key_join import TableJoined, join_by_foreign_key
from streamfleet.dsl.functions import OfValue, checked_function, checked_partitioner, joiner_with_key, with_key
from streamfleet.dsl.graph import GraphNode, ProcessorGraphNode, SuppressGraphNode
from streamfleet.dsl.grouped_table import KGroupedTable
from streamfleet.dsl.join_nodes import TableJoinGraphNode
from streamfleet.dsl.materialized import Materialized, StoreSpec, chosen_materialized
from streamfleet.dsl.operators.stateless import MapValuesOperator
from streamfleet.dsl.operators.suppress import Suppression, SuppressOperator
from streamfleet.dsl.operators.table_group import TableRepartitionMapOperator
from streamfleet.dsl.operators.table_join import JoinSide, TableJoinMergeOperator, TableJoinOperator
from streamfleet.dsl.operators.table_map import TableFilterOperator, TableMapValuesOperator, TableTransformOperator
from streamfleet.dsl.operators.table_view import TableOperator, TableView
from streamfleet.dsl.scope import BuilderScope, StreamLike
from streamfleet.dsl.suppressed import Suppressed
from streamfleet.errors import OptionError, TopologyError
from streamfleet.processor.api import ValueTransformer
from streamfleet.serdes.api import Serde
from streamfleet.state.change_buffer import ChangeBufferBuilder
from streamfleet.topology.nodes import StreamPartitioner
from streamfleet.topology.suppliers import check_supplier, stores_of

if TYPE_CHECKING:
    from streamfleet.dsl.kstream import KStream

K = TypeVar("K")
V = TypeVar("V")
K1 = TypeVar("K1")
V1 = TypeVar("V1")
VO = TypeVar("VO")


class KTable(StreamLike[K, V]):
    """A table. It is kept in a store if one was named, or if a join, a grouping or another operator must read it."""

    def __init__(
        self,
        scope: BuilderScope,
        node: GraphNode,
        name: str,
        sources: frozenset[str],
        key_serde: Serde[Any] | None,
        value_serde: Serde[Any] | None,
        operator: TableOperator,
        queryable_store_name: str | None,
    ) -> None:
        super().__init__(scope, node, name, sources, key_serde, value_serde)
        self._operator = operator
        self.queryable_store_name = queryable_store_name
        """The name under which the table can be queried; None if it has no store, or one with a generated name."""

    # row by row

    def filter(
        self,
        predicate: Callable[[K, V], Any],
        *,
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable[K, V]:
        """Keep the rows for which `predicate(key, value)` is true; the others are deleted."""
        return self._filter("filter", predicate, name, store, materialized, negate=False)

    def filter_not(
        self,
        predicate: Callable[[K, V], Any],
        *,
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable[K, V]:
        """Delete the rows for which `predicate(key, value)` is true."""
        return self._filter("filter_not", predicate, name, store, materialized, negate=True)

    def map_values(
        self,
        mapper: Callable[..., V1],
        *,
        with_key: bool = False,
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable[K, V1]:
        """Replace each value by `mapper(value)`, or by `mapper(key, value)` with `with_key=True`. Not called for deletes."""
        function = _mapper("map_values", mapper, takes_key=with_key)
        options = chosen_materialized("map_values", store, materialized)
        spec = self._own_store(options, "KTABLE-MAPVALUES-")
        operator = TableMapValuesOperator(self, function, None if spec is None else spec.name)
        return self._derive(operator, options, spec, name, "KTABLE-MAPVALUES-")

    def transform_values(
        self,
        supplier: Callable[[], ValueTransformer[K, V, V1]],
        *,
        stores: Sequence[str] = (),
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable[K, V1]:
        """Replace each value by that of a ValueTransformer of your own, connected to the named stores; also for deletes."""
        check_supplier("transform_values", supplier)
        options = chosen_materialized("transform_values", store, materialized)
        spec = self._own_store(options, None)
        operator = TableTransformOperator(self, supplier, None if spec is None else spec.name)
        brought = tuple(stores_of("transform_values", supplier))
        prefix = "KTABLE-TRANSFORMVALUES-"
        return self._derive(operator, options, spec, name, prefix, builders=brought, stores=tuple(stores))

    # to streams and groups

    def to_stream(self, select_key: Callable[[K, V], K1] | None = None, *, name: str | None = None) -> KStream[Any, V]:
        """The updates of the table as a stream, deletes as None. `select_key(key, value)` gives them new keys."""
        from streamfleet.dsl.kstream import KStream  # streams know tables, not the other way round, but for this step

        node_name = self._scope.names.node(name, "KTABLE-TOSTREAM-")
        node = ProcessorGraphNode(node_name, MapValuesOperator(OfValue(attrgetter("new"))))
        self._scope.graph.add(self._node, node)
        serdes = self._key_serde, self._value_serde
        stream: KStream[Any, V] = KStream(self._scope, node, node_name, self._sources, *serdes, needs_repartition=False)
        return stream if select_key is None else stream.select_key(select_key)

    def group_by(
        self,
        selector: Callable[[K, V], tuple[K1, V1]],
        *,
        name: str | None = None,
        key_serde: Serde[K1] | None = None,
        value_serde: Serde[V1] | None = None,
    ) -> KGroupedTable[K1, V1]:
        """Group the rows by a new key: `selector(key, value)` gives the group and the value it is counted with."""
        function = checked_function("group_by", selector, "selector", ("key", "value"))
        node_name = self._scope.names.node(name, "KTABLE-SELECT-")
        node = ProcessorGraphNode(node_name, TableRepartitionMapOperator(function))
        self._scope.graph.add(self._node, node)
        self.enable_sending_old_values(force=True)
        return KGroupedTable(self._scope, node, node_name, self._sources, key_serde, value_serde, repartition_name=name)

    def suppress(self, suppressed: Suppressed) -> KTable[K, V]:
        """Hold updates back: until their window has closed, or for some time after the first of them. See Suppressed."""
        if not isinstance(suppressed, Suppressed):
            raise OptionError(
                f"suppress needs a Suppressed, but was given {suppressed!r}",
                hint="Suppressed.until_window_closes(...) or Suppressed.until_time_limit(...)",
            )
        if self._node.is_versioned:
            raise TopologyError(
                "suppress was asked of a versioned table",
                hint="suppress before the table is kept in a versioned store, or keep it in a plain one",
            )
        names, logging = self._scope.names, suppressed.buffer.logging
        node_name = suppressed.name or names.generate("KTABLE-SUPPRESS-")
        is_final = suppressed.wait_ms is None
        wait_ms = self._node.window_grace_ms() if suppressed.wait_ms is None else suppressed.wait_ms
        if suppressed.name is not None:
            store = f"{suppressed.name}-store"
        else:
            store = names.generate("KTABLE-SUPPRESS-STATE-STORE-")
            if logging is not False:
                names.unnamed["changelog topic"].append(f"{store}-changelog")
        operator = SuppressOperator(self, Suppression(wait_ms, is_final, suppressed.buffer, store))
        builder = ChangeBufferBuilder(
            name=store, key_serde=self._key_serde, value_serde=self._value_serde, logging=logging
        )
        node = SuppressGraphNode(node_name, operator, builders=(builder,))
        self._scope.graph.add(self._node, node)
        serdes = self._key_serde, self._value_serde
        return KTable(self._scope, node, node_name, self._sources, *serdes, operator, None)

    # joins

    def join(
        self,
        other: KTable[Any, VO],
        joiner: Callable[..., V1],
        *,
        foreign_key: Callable[..., Any] | None = None,
        foreign_key_with_key: bool | None = None,
        with_key: bool = False,
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
        partitioner: StreamPartitioner | None = None,
        other_partitioner: StreamPartitioner | None = None,
    ) -> KTable[K, V1]:
        """A row for every key that is in both tables, made by `joiner(left, right)`.

        With `foreign_key=function(value)` a row of this table is joined with the row of the other one that the function names, or
        with none if it says None. `with_key=True` gives both functions the key as first argument. The partitioners are for
        foreign-key joins of tables that are not partitioned by the hash of their keys.
        """
        if foreign_key is not None:
            options = TableJoined(
                name=name,
                materialized=chosen_materialized("join", store, materialized),
                partitioner=partitioner,
                other_partitioner=other_partitioner,
            )
            extractor = _extractor(
                "join", foreign_key, with_key if foreign_key_with_key is None else foreign_key_with_key
            )
            return self._join_foreign("join", other, extractor, joiner, with_key, options, is_left=False)
        _no_options_of_foreign_keys("join", partitioner, other_partitioner, foreign_key_with_key)
        sides = (JoinSide.NEEDS_BOTH, JoinSide.NEEDS_BOTH)
        return self._join("join", other, joiner, sides, with_key, name, store, materialized)

    def left_join(
        self,
        other: KTable[Any, VO],
        joiner: Callable[..., V1],
        *,
        foreign_key: Callable[..., Any] | None = None,
        foreign_key_with_key: bool | None = None,
        with_key: bool = False,
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
        partitioner: StreamPartitioner | None = None,
        other_partitioner: StreamPartitioner | None = None,
    ) -> KTable[K, V1]:
        """A row for every key of this table; `right` is None where the other has none. `foreign_key` as in `join`."""
        if foreign_key is not None:
            options = TableJoined(
                name=name,
                materialized=chosen_materialized("left_join", store, materialized),
                partitioner=partitioner,
                other_partitioner=other_partitioner,
            )
            extractor = _extractor(
                "left_join", foreign_key, with_key if foreign_key_with_key is None else foreign_key_with_key
            )
            return self._join_foreign("left_join", other, extractor, joiner, with_key, options, is_left=True)
        _no_options_of_foreign_keys("left_join", partitioner, other_partitioner, foreign_key_with_key)
        sides = (JoinSide.NEEDS_THIS, JoinSide.NEEDS_OTHER)
        return self._join("left_join", other, joiner, sides, with_key, name, store, materialized)

    def outer_join(
        self,
        other: KTable[K, VO],
        joiner: Callable[..., V1],
        *,
        with_key: bool = False,
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable[K, V1]:
        """Join by key: a row for every key of either table; the missing side is None."""
        sides = (JoinSide.NEEDS_ONE, JoinSide.NEEDS_ONE)
        return self._join("outer_join", other, joiner, sides, with_key, name, store, materialized)

    # what operators ask of a table

    def view(self) -> TableView:
        """How to read this table by key."""
        return self._operator.view()

    def enable_sending_old_values(self, *, force: bool) -> bool:
        """Have updates carry the value they replace; see TableOperator."""
        return self._operator.send_old_values or self._operator.enable_sending_old_values(force=force)

    # how the above are done

    def _filter(
        self,
        operator_name: str,
        predicate: Any,
        name: str | None,
        store: str | None,
        materialized: Materialized | None,
        *,
        negate: bool,
    ) -> KTable[K, V]:
        function = checked_function(operator_name, predicate, "predicate", ("key", "value"))
        options = chosen_materialized(operator_name, store, materialized)
        spec = self._own_store(options, "KTABLE-FILTER-")
        if spec is not None:
            spec.value_serde = spec.value_serde or self._value_serde
        operator = TableFilterOperator(self, function, negate, None if spec is None else spec.name)
        table = self._derive(operator, options, spec, name, "KTABLE-FILTER-")
        table._value_serde = table._value_serde or self._value_serde
        return table

    def _own_store(self, options: Materialized | None, burned_prefix: str | None) -> StoreSpec | None:
        """The store a derived table is kept in: only if it was named. Elsewhere than in transform_values, options without a
        name still use up a number.
        """
        if options is None:
            return None
        if options.name is None:
            if burned_prefix is not None:
                self._scope.names.burn_store(burned_prefix)
            return None
        return StoreSpec(options, self._scope.names, "", key_serde=self._key_serde)

    def _derive(
        self,
        operator: TableOperator,
        options: Materialized | None,
        spec: StoreSpec | None,
        name: str | None,
        prefix: str,
        **connected: Any,
    ) -> KTable[K, Any]:
        node_name = self._scope.names.node(name, prefix)
        node = ProcessorGraphNode(node_name, operator, spec=spec, **connected)
        if options is not None and spec is None:
            node.is_versioned = False
        self._scope.graph.add(self._node, node)
        # The serdes of the options hold for what is read from this table, also where it is not kept.
        key_serde = self._key_serde if options is None else options.key_serde or self._key_serde
        value_serde = None if options is None else options.value_serde
        queryable = None if spec is None else spec.queryable_name
        return KTable(self._scope, node, node_name, self._sources, key_serde, value_serde, operator, queryable)

    def _join(
        self,
        operator_name: str,
        other: KTable[K, VO],
        joiner: Callable[..., Any],
        sides: tuple[JoinSide, JoinSide],
        takes_key: bool,
        name: str | None,
        store: str | None,
        materialized: Materialized | None,
    ) -> KTable[K, Any]:
        if not isinstance(other, KTable):
            raise OptionError(f"{operator_name} of a KTable needs another KTable, but was given {other!r}")
        arguments = ("key", "left", "right") if takes_key else ("left", "right")
        function = joiner_with_key(checked_function(operator_name, joiner, "joiner", arguments), takes_key=takes_key)
        spec = self._join_store(operator_name, store, materialized)
        names = self._scope.names
        merge_name = names.node(name, "KTABLE-MERGE-")
        sources = self._copartition_with(other)
        if sides[0] is not JoinSide.NEEDS_BOTH:
            self.enable_sending_old_values(force=True)
        if sides[0] is JoinSide.NEEDS_ONE:
            other.enable_sending_old_values(force=True)
        this_join = TableJoinOperator(self, other, function, sides[0])
        other_join = TableJoinOperator(other, self, lambda key, right, left: function(key, left, right), sides[1])
        merge = TableJoinMergeOperator(this_join, other_join, None if spec is None else spec.name)
        this_name = names.suffixed(name, "-join-this", "KTABLE-JOINTHIS-")
        other_name = names.suffixed(name, "-join-other", "KTABLE-JOINOTHER-")
        node = TableJoinGraphNode(
            merge_name,
            merge,
            spec,
            (this_name, this_join, self._name, other.view().stores),
            (other_name, other_join, other._name, self.view().stores),
        )
        self._scope.graph.add(self._node, node)
        self._scope.graph.add(other._node, node)
        key_serde = self._key_serde if spec is None else spec.key_serde
        value_serde = None if spec is None else spec.value_serde
        queryable = None if spec is None else spec.name
        return KTable(self._scope, node, merge_name, sources, key_serde, value_serde, merge, queryable)

    def _join_foreign(
        self,
        operator_name: str,
        other: KTable[Any, Any],
        extractor: Callable[[Any, Any], Any],
        joiner: Callable[..., Any],
        takes_key: bool,
        options: TableJoined,
        *,
        is_left: bool,
    ) -> KTable[K, Any]:
        if not isinstance(other, KTable):
            raise OptionError(f"{operator_name} of a KTable needs another KTable, but was given {other!r}")
        checked_partitioner(operator_name, options.partitioner)
        checked_partitioner(operator_name, options.other_partitioner, "other_partitioner")
        of_both = ("key", "left", "right") if takes_key else ("left", "right")
        function = joiner_with_key(checked_function(operator_name, joiner, "joiner", of_both), takes_key=takes_key)
        return join_by_foreign_key(self, other, extractor, function, options, is_left=is_left)

    def _join_store(self, operator: str, store: str | None, materialized: Materialized | None) -> StoreSpec | None:
        """A join that was given options is kept, under a generated name if they name none."""
        options = chosen_materialized(operator, store, materialized)
        if options is None:
            return None
        return StoreSpec(options, self._scope.names, "KTABLE-MERGE-", key_serde=self._key_serde)


def _extractor(operator: str, foreign_key: Callable[..., Any], takes_key: bool) -> Callable[[Any, Any], Any]:
    arguments = ("key", "value") if takes_key else ("value",)
    return with_key(checked_function(operator, foreign_key, "foreign_key", arguments), takes_key=takes_key)


def _no_options_of_foreign_keys(operator: str, *options: object) -> None:
    if any(option is not None for option in options):
        raise OptionError(
            f"{operator}: partitioners and foreign_key_with_key are for foreign-key joins",
            hint="add foreign_key=..., or leave them out",
        )


def _mapper(operator: str, mapper: Any, *, takes_key: bool) -> Callable[[Any, Any], Any]:
    arguments = ("key", "value") if takes_key else ("value",)
    return with_key(checked_function(operator, mapper, "mapper", arguments), takes_key=takes_key)
