"""KStream: an endless stream of records, and the operators a developer chains on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TextIO, TypeVar, overload

from streamfleet.dsl.branched import BranchedKStream
from streamfleet.dsl.functions import checked_function, checked_partitioner, joiner_with_key, with_key
from streamfleet.dsl.global_ktable import GlobalKTable
from streamfleet.dsl.graph import (
    GraphNode,
    Operator,
    OwnProcessorGraphNode,
    ProcessorGraphNode,
    RepartitionGraphNode,
    SinkGraphNode,
)
from streamfleet.dsl.grouped_stream import KGroupedStream
from streamfleet.dsl.joining_store import StoreKind
from streamfleet.dsl.ktable import KTable
from streamfleet.dsl.materialized import Materialized, StoreSpec, chosen_materialized
from streamfleet.dsl.names import checked_name
from streamfleet.dsl.operators import stateless
from streamfleet.dsl.operators.table_source import TableSourceOperator
from streamfleet.dsl.repartition import repartition_node
from streamfleet.dsl.scope import BuilderScope, StreamLike
from streamfleet.dsl.stream_join import join_streams
from streamfleet.dsl.stream_table_join import join_global_table, join_table
from streamfleet.dsl.windows import JoinWindows
from streamfleet.durations import Duration
from streamfleet.errors import OptionError
from streamfleet.processor.api import ProcessorSupplier
from streamfleet.serdes.api import Serde
from streamfleet.state.builders import Logging, WindowStoreBuilder
from streamfleet.topology.nodes import StreamPartitioner, TopicNameExtractor
from streamfleet.topology.suppliers import check_supplier, stores_of

K = TypeVar("K")
V = TypeVar("V")
K1 = TypeVar("K1")
V1 = TypeVar("V1")
VT = TypeVar("VT")
KG = TypeVar("KG")

_KEY_VALUE = ("key", "value")


class KStream(StreamLike[K, V]):
    """A stream of records. Operators return new streams; `name=` names the node, and with it nothing else.

    Operators that may change the key mark the stream: the next one that needs equal keys in one partition (grouping, joins,
    to_table) then sends it through a repartition topic.
    """

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
    ) -> None:
        super().__init__(scope, node, name, sources, key_serde, value_serde)
        self._needs_repartition = needs_repartition
        self._join_repartition: RepartitionGraphNode | None = None

    # record by record

    def filter(self, predicate: Callable[[K, V], Any], *, name: str | None = None) -> KStream[K, V]:
        """Keep the records for which `predicate(key, value)` is true."""
        return self._filter("filter", predicate, name, negate=False)

    def filter_not(self, predicate: Callable[[K, V], Any], *, name: str | None = None) -> KStream[K, V]:
        """Drop the records for which `predicate(key, value)` is true."""
        return self._filter("filter_not", predicate, name, negate=True)

    def map(self, mapper: Callable[[K, V], tuple[K1, V1]], *, name: str | None = None) -> KStream[K1, V1]:
        """Replace each record by the pair `mapper(key, value)`."""
        function = checked_function("map", mapper, "mapper", _KEY_VALUE)
        return self._chain(stateless.MapOperator(function), name, "KSTREAM-MAP-", new_key=True, new_value=True)

    def flat_map(
        self, mapper: Callable[[K, V], Iterable[tuple[K1, V1]]], *, name: str | None = None
    ) -> KStream[K1, V1]:
        """Replace each record by any number of pairs."""
        function = checked_function("flat_map", mapper, "mapper", _KEY_VALUE)
        return self._chain(stateless.FlatMapOperator(function), name, "KSTREAM-FLATMAP-", new_key=True, new_value=True)

    def select_key(self, selector: Callable[[K, V], K1], *, name: str | None = None) -> KStream[K1, V]:
        """Replace the key of each record."""
        function = checked_function("select_key", selector, "selector", _KEY_VALUE)
        return self._chain(stateless.SelectKeyOperator(function), name, "KSTREAM-KEY-SELECT-", new_key=True)

    def map_values(
        self, mapper: Callable[..., V1], *, with_key: bool = False, name: str | None = None
    ) -> KStream[K, V1]:
        """Replace the value of each record by `mapper(value)`, or by `mapper(key, value)` with `with_key=True`."""
        function = _value_function("map_values", mapper, takes_key=with_key)
        return self._chain(stateless.MapValuesOperator(function), name, "KSTREAM-MAPVALUES-", new_value=True)

    def flat_map_values(
        self, mapper: Callable[..., Iterable[V1]], *, with_key: bool = False, name: str | None = None
    ) -> KStream[K, V1]:
        """Replace each record by any number of records with the same key."""
        function = _value_function("flat_map_values", mapper, takes_key=with_key)
        return self._chain(stateless.FlatMapValuesOperator(function), name, "KSTREAM-FLATMAPVALUES-", new_value=True)

    def peek(self, action: Callable[[K, V], Any], *, name: str | None = None) -> KStream[K, V]:
        """Call `action(key, value)` for each record and pass it on."""
        function = checked_function("peek", action, "action", _KEY_VALUE)
        return self._chain(stateless.PeekOperator(function, forwards=True), name, "KSTREAM-PEEK-")

    def foreach(self, action: Callable[[K, V], Any], *, name: str | None = None) -> None:
        """Call `action(key, value)` for each record; the stream ends here."""
        function = checked_function("foreach", action, "action", _KEY_VALUE)
        self._chain(stateless.PeekOperator(function, forwards=False), name, "KSTREAM-FOREACH-")

    def print(
        self,
        *,
        label: str | None = None,
        mapper: Callable[[K, V], object] | None = None,
        name: str | None = None,
        file: TextIO | None = None,
    ) -> None:
        """Write each record as `[label]: key, value`, to standard output or a file; the stream ends here. With
        `mapper(key, value)`: as `[label]: ` and what it returns.
        """
        function = None if mapper is None else checked_function("print", mapper, "mapper", _KEY_VALUE)
        self._chain(stateless.PrintOperator(label or self._name, file, function), name, "KSTREAM-PRINTER-")

    def merge(self, other: KStream[K, V], *, name: str | None = None) -> KStream[K, V]:
        """Both streams in one, in no particular order."""
        if not isinstance(other, KStream):
            raise OptionError(f"merge needs another KStream, but was given {other!r}")
        node_name = self._scope.names.node(name, "KSTREAM-MERGE-")
        node = ProcessorGraphNode(node_name, stateless.PassThroughOperator())
        node.merges_streams = True
        self._scope.graph.add(self._node, node)
        self._scope.graph.add(other._node, node)
        needs_repartition = self._needs_repartition or other._needs_repartition
        sources = self._sources | other._sources
        return KStream(self._scope, node, node_name, sources, None, None, needs_repartition=needs_repartition)

    def split(self, *, name: str | None = None) -> BranchedKStream[K, V]:
        """Send each record to the first branch whose predicate is true; see BranchedKStream."""
        return BranchedKStream(self, name)

    # to topics and tables

    def repartition(
        self,
        *,
        name: str | None = None,
        partitions: int | None = None,
        partitioner: StreamPartitioner | None = None,
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
    ) -> KStream[K, V]:
        """Send the stream through an internal topic, with a number of partitions of your choice. Null keys are dropped. The
        partitioner is one as of `to`.
        """
        checked_partitioner("repartition", partitioner)
        if partitions is not None and (isinstance(partitions, bool) or not isinstance(partitions, int)):
            raise OptionError(f"repartition: partitions must be a whole number, got {partitions!r}")
        prefix = self._scope.names.generate("KSTREAM-REPARTITION-") if name is None else name
        key_serde, value_serde = key_serde or self._key_serde, value_serde or self._value_serde
        node = repartition_node(
            self._scope,
            prefix,
            key_serde,
            value_serde,
            named_by_user=name is not None,
            partitioner=partitioner,
            partitions=partitions,
        )
        node.can_be_merged = False
        return self._repartitioned(node, key_serde, value_serde)

    def to(
        self,
        topic: str | TopicNameExtractor,
        *,
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
        partitioner: StreamPartitioner | None = None,
        name: str | None = None,
    ) -> None:
        """Write to a topic, or to the one that `topic(key, value, record_context)` names. The topic must exist.

        `partitioner(topic, key, value, num_partitions)` gives a list of partitions: one, several, or none to leave the record
        out; or None for the default, the hash of the key.
        """
        if not isinstance(topic, str):
            checked_function("to", topic, "topic function", ("key", "value", "record_context"))
        checked_partitioner("to", partitioner)
        node_name = self._scope.names.node(name, "KSTREAM-SINK-")
        serdes = key_serde or self._key_serde, value_serde or self._value_serde
        self._scope.graph.add(self._node, SinkGraphNode(node_name, topic, *serdes, partitioner))

    def to_table(
        self,
        *,
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
    ) -> KTable[K, V]:
        """Read the stream as a table: the newest value of each key; None deletes."""
        options = chosen_materialized("to_table", store, materialized)
        node_name = self._scope.names.node(name, "KSTREAM-TOTABLE-")
        spec = StoreSpec(
            options,
            self._scope.names,
            "KSTREAM-TOTABLE-",
            key_serde=key_serde or self._key_serde,
            value_serde=value_serde or self._value_serde,
        )
        parent, sources = self._node, self._sources
        if self._needs_repartition:
            parent = repartition_node(
                self._scope, node_name, spec.key_serde, spec.value_serde, named_by_user=name is not None
            )
            self._scope.graph.add(self._node, parent)
            sources = frozenset({parent.name})
        operator = TableSourceOperator(spec, materialize=spec.is_named)
        node = ProcessorGraphNode(node_name, operator, spec=spec)
        self._scope.graph.add(parent, node)
        return KTable(
            self._scope, node, node_name, sources, spec.key_serde, spec.value_serde, operator, spec.queryable_name
        )

    # groups

    def group_by_key(
        self,
        *,
        name: str | None = None,
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
    ) -> KGroupedStream[K, V]:
        """Group by the present key. `name` names the repartition topic, if one is needed."""
        return KGroupedStream(
            self._scope,
            self._node,
            self._name,
            self._sources,
            key_serde or self._key_serde,
            value_serde or self._value_serde,
            needs_repartition=self._needs_repartition,
            repartition_name=name,
        )

    def group_by(
        self,
        selector: Callable[[K, V], K1],
        *,
        name: str | None = None,
        key_serde: Serde[K1] | None = None,
        value_serde: Serde[V] | None = None,
    ) -> KGroupedStream[K1, V]:
        """Group by a new key. `name` names the key selection and the repartition topic."""
        function = checked_function("group_by", selector, "selector", _KEY_VALUE)
        selected = self._chain(stateless.SelectKeyOperator(function), name, "KSTREAM-KEY-SELECT-", new_key=True)
        return KGroupedStream(
            self._scope,
            selected._node,
            selected._name,
            self._sources,
            key_serde,
            value_serde or self._value_serde,
            needs_repartition=True,
            repartition_name=name,
        )

    # joins

    @overload
    def join(
        self,
        other: KTable[K, VT],
        joiner: Callable[..., V1],
        *,
        with_key: bool = False,
        name: str | None = None,
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
        other_value_serde: Serde[VT] | None = None,
        grace: Duration | None = None,
    ) -> KStream[K, V1]: ...

    @overload
    def join(
        self,
        other: GlobalKTable[KG, VT],
        joiner: Callable[..., V1],
        *,
        key_selector: Callable[[K, V], KG],
        with_key: bool = False,
        with_both_keys: bool = False,
        name: str | None = None,
    ) -> KStream[K, V1]: ...

    @overload
    def join(
        self,
        other: KStream[K, VT],
        joiner: Callable[..., V1],
        *,
        window: JoinWindows,
        with_key: bool = False,
        name: str | None = None,
        store_name: str | None = None,
        this_store: WindowStoreBuilder[Any, Any] | None = None,
        other_store: WindowStoreBuilder[Any, Any] | None = None,
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
        other_value_serde: Serde[VT] | None = None,
        kind: StoreKind | None = None,
        logging: Logging = True,
    ) -> KStream[K, V1]: ...

    def join(self, other: Any, joiner: Callable[..., Any], **options: Any) -> KStream[K, Any]:
        """Join each record with the row of its key in a table, or with the records of another stream that are near in time.
        Records without partner give nothing.

        With a GlobalKTable, `key_selector(key, value)` says which row. A table in a versioned store is asked for what it held at
        the record's time; with `grace` records wait that long for late updates of the table. With a stream, `window` says what is
        near. `joiner(left, right)` makes the result, or `joiner(key, left, right)` with `with_key=True`; with a GlobalKTable also
        `joiner(key, table_key, left, right)` with `with_both_keys=True`.
        """
        return self._join("join", other, joiner, options, left=False)

    @overload
    def left_join(
        self,
        other: KTable[K, VT],
        joiner: Callable[..., V1],
        *,
        with_key: bool = False,
        name: str | None = None,
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
        other_value_serde: Serde[VT] | None = None,
        grace: Duration | None = None,
    ) -> KStream[K, V1]: ...

    @overload
    def left_join(
        self,
        other: GlobalKTable[KG, VT],
        joiner: Callable[..., V1],
        *,
        key_selector: Callable[[K, V], KG],
        with_key: bool = False,
        with_both_keys: bool = False,
        name: str | None = None,
    ) -> KStream[K, V1]: ...

    @overload
    def left_join(
        self,
        other: KStream[K, VT],
        joiner: Callable[..., V1],
        *,
        window: JoinWindows,
        with_key: bool = False,
        name: str | None = None,
        store_name: str | None = None,
        this_store: WindowStoreBuilder[Any, Any] | None = None,
        other_store: WindowStoreBuilder[Any, Any] | None = None,
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
        other_value_serde: Serde[VT] | None = None,
        kind: StoreKind | None = None,
        logging: Logging = True,
    ) -> KStream[K, V1]: ...

    def left_join(self, other: Any, joiner: Callable[..., Any], **options: Any) -> KStream[K, Any]:
        """As `join`, but records without partner (or without a key) are joined with None; with a stream, when the window has
        closed.
        """
        return self._join("left_join", other, joiner, options, left=True)

    def outer_join(
        self,
        other: KStream[K, VT],
        joiner: Callable[..., V1],
        *,
        window: JoinWindows,
        with_key: bool = False,
        name: str | None = None,
        store_name: str | None = None,
        this_store: WindowStoreBuilder[Any, Any] | None = None,
        other_store: WindowStoreBuilder[Any, Any] | None = None,
        key_serde: Serde[K] | None = None,
        value_serde: Serde[V] | None = None,
        other_value_serde: Serde[VT] | None = None,
        kind: StoreKind | None = None,
        logging: Logging = True,
    ) -> KStream[K, V1]:
        """As `left_join` with a stream, and records of the other stream without partner are joined with None as well."""
        if not isinstance(other, KStream):
            raise OptionError(
                f"outer_join of a KStream needs another KStream, but was given {other!r}",
                hint="a table has no records that wait for a partner: use left_join, or an outer_join of two tables",
            )
        function = _joiner("outer_join", joiner, takes_key=with_key)
        options = {
            "window": window,
            "name": name,
            "store_name": store_name,
            "this_store": this_store,
            "other_store": other_store,
            "key_serde": key_serde,
            "value_serde": value_serde,
            "other_value_serde": other_value_serde,
            "kind": kind,
            "logging": logging,
        }
        return join_streams("outer_join", self, other, function, options, left_outer=True, right_outer=True)

    # the Processor API

    def process(
        self, supplier: ProcessorSupplier, *, stores: Sequence[str] = (), name: str | None = None
    ) -> KStream[Any, Any]:
        """Hand each record to a Processor of your own, connected to the named stores. It may change the key."""
        return self._process("process", supplier, stores, name, "KSTREAM-PROCESSOR-", new_key=True)

    def process_values(
        self, supplier: ProcessorSupplier, *, stores: Sequence[str] = (), name: str | None = None
    ) -> KStream[K, Any]:
        """Hand each record to a FixedKeyProcessor of your own: no repartition is needed after it."""
        return self._process("process_values", supplier, stores, name, "KSTREAM-PROCESSVALUES-", new_key=False)

    # how the above are done

    def _filter(self, operator: str, predicate: Any, name: str | None, *, negate: bool) -> KStream[K, V]:
        function = checked_function(operator, predicate, "predicate", _KEY_VALUE)
        return self._chain(stateless.FilterOperator(function, negate), name, "KSTREAM-FILTER-")

    def _chain(
        self, operator: Operator, name: str | None, prefix: str, *, new_key: bool = False, new_value: bool = False
    ) -> KStream[Any, Any]:
        """Add a processor behind this stream. Serdes last as long as what they are for is unchanged."""
        node_name = self._scope.names.node(name, prefix)
        return self._then(ProcessorGraphNode(node_name, operator), new_key=new_key, new_value=new_value)

    def _then(
        self, node: GraphNode, *, new_key: bool = False, new_value: bool = False, below: GraphNode | None = None
    ) -> KStream[Any, Any]:
        """A stream like this one, out of a node that is added behind it (or behind `below`)."""
        node.changes_key, node.changes_value = new_key, new_value and not new_key
        self._scope.graph.add(below or self._node, node)
        return KStream(
            self._scope,
            node,
            node.name,
            self._sources,
            None if new_key else self._key_serde,
            None if new_value else self._value_serde,
            needs_repartition=self._needs_repartition or new_key,
        )

    def _repartitioned(
        self, node: RepartitionGraphNode, key_serde: Serde[Any] | None, value_serde: Serde[Any] | None
    ) -> KStream[K, V]:
        self._scope.graph.add(self._node, node)
        sources = frozenset({node.name})
        return KStream(self._scope, node, node.name, sources, key_serde, value_serde, needs_repartition=False)

    def _process(
        self,
        operator: str,
        supplier: ProcessorSupplier,
        stores: Sequence[str],
        name: str | None,
        prefix: str,
        *,
        new_key: bool,
    ) -> KStream[Any, Any]:
        # The one place where giving a name uses up no number: so it is in the original.
        node_name = self._scope.names.generate(prefix) if name is None else checked_name(name)
        check_supplier(f"{operator} ({node_name})", supplier)
        if isinstance(stores, str):
            raise OptionError(f"{operator} ({node_name}): stores is a text", hint=f"pass a list: stores=[{stores!r}]")
        node = OwnProcessorGraphNode(
            node_name,
            supplier,  # type: ignore[arg-type]  # a FixedKeyProcessor is adapted where it is run
            builders=tuple(stores_of(node_name, supplier)),
            stores=tuple(stores),
        )
        return self._then(node, new_key=new_key, new_value=True)

    def _join(
        self, operator: str, other: Any, joiner: Callable[..., Any], options: dict[str, Any], *, left: bool
    ) -> KStream[K, Any]:
        if isinstance(other, KStream | KTable | GlobalKTable):
            _check_options(operator, other, options)
        if isinstance(other, GlobalKTable) and options.pop("with_both_keys", False):
            options.pop("with_key", None)
            both = checked_function(operator, joiner, "joiner", ("key", "table_key", "left", "right"))
            return join_global_table(operator, self, other, both, left=left, takes_both_keys=True, **options)
        function = _joiner(operator, joiner, takes_key=options.pop("with_key", False))
        if isinstance(other, KStream):
            return join_streams(operator, self, other, function, options, left_outer=left, right_outer=False)
        if isinstance(other, KTable):
            return join_table(self, other, function, left=left, **options)
        if isinstance(other, GlobalKTable):
            return join_global_table(operator, self, other, function, left=left, **options)
        raise OptionError(
            f"{operator} cannot join a KStream with {other!r}", hint="pass a KStream, a KTable or a GlobalKTable"
        )

    def _repartitioned_for_join(
        self, name: str | None, key_serde: Serde[Any] | None, value_serde: Serde[Any] | None
    ) -> KStream[K, V]:
        """Two joins of the same stream share one repartition topic, unless they are named."""
        prefix = name or self._name
        key_serde, value_serde = key_serde or self._key_serde, value_serde or self._value_serde
        node = repartition_node(self._scope, prefix, key_serde, value_serde, named_by_user=name is not None)
        if self._join_repartition is None or name is not None:
            self._join_repartition = node
            return self._repartitioned(node, key_serde, value_serde)
        shared = self._join_repartition
        sources = frozenset({shared.name})
        return KStream(self._scope, shared, shared.name, sources, key_serde, value_serde, needs_repartition=False)


_JOIN_OPTIONS = {
    "grace": (KTable, "a KTable in a versioned store; a join of two streams has it in its JoinWindows"),
    "window": (KStream, "a KStream"),
    "key_selector": (GlobalKTable, "a GlobalKTable"),
    "with_both_keys": (GlobalKTable, "a GlobalKTable"),
}


def _check_options(operator: str, other: Any, options: dict[str, Any]) -> None:
    """Options of another kind of join. What is no option of any kind is a TypeError, as ever in Python."""
    for option, (kind, meant) in _JOIN_OPTIONS.items():
        if options.get(option) not in (None, False) and not isinstance(other, kind):
            raise OptionError(
                f"{operator} with {other!r} cannot have {option}", hint=f"{option} is for a join with {meant}"
            )


def _joiner(operator: str, joiner: Any, *, takes_key: bool) -> Callable[[Any, Any, Any], Any]:
    arguments = ("key", "left", "right") if takes_key else ("left", "right")
    return joiner_with_key(checked_function(operator, joiner, "joiner", arguments), takes_key=takes_key)


def _value_function(operator: str, mapper: Any, *, takes_key: bool) -> Callable[[Any, Any], Any]:
    arguments = _KEY_VALUE if takes_key else ("value",)
    return with_key(checked_function(operator, mapper, "mapper", arguments), takes_key=takes_key)
