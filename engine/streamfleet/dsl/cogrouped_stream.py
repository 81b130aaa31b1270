"""CogroupedKStream: several grouped streams aggregated into one table, each by an aggregator of its own; whole or by windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from streamfleet.dsl.functions import checked_function
from streamfleet.dsl.graph import GraphNode, ProcessorGraphNode
from streamfleet.dsl.ktable import KTable
from streamfleet.dsl.materialized import Materialized, SessionStoreSpec, StoreSpec, WindowStoreSpec, chosen_materialized
from streamfleet.dsl.operators.aggregate import Aggregator, Initializer, StreamAggregateOperator
from streamfleet.dsl.operators.cogroup import CogroupMergeOperator
from streamfleet.dsl.operators.session_aggregate import Merger, SessionAggregateOperator
from streamfleet.dsl.operators.sliding_aggregate import SlidingAggregateOperator
from streamfleet.dsl.operators.table_view import TableOperator
from streamfleet.dsl.operators.windowed_aggregate import TimeWindowedAggregateOperator
from streamfleet.dsl.windows import EmitStrategy, SessionWindows, SlidingWindows, Windows
from streamfleet.errors import OptionError
from streamfleet.records import Windowed
from streamfleet.serdes import session_windowed, windowed
from streamfleet.serdes.api import Serde

if TYPE_CHECKING:
    from streamfleet.dsl.grouped_stream import KGroupedStream

K = TypeVar("K")
VA = TypeVar("VA")

_AGGREGATE = "COGROUPKSTREAM-AGGREGATE-"
_MERGE = "COGROUPKSTREAM-MERGE-"

Groups = dict["KGroupedStream[Any, Any]", Aggregator]
MakeOperator = Callable[[Aggregator], TableOperator]


class _Cogrouped(Generic[K, VA]):
    """What all kinds share: the streams, and how their aggregations become one table."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._scope = next(iter(groups))._scope

    @property
    def _default_key_serde(self) -> Serde[Any] | None:
        return next((grouped._key_serde for grouped in self._groups if grouped._key_serde is not None), None)

    def _add(
        self,
        spec: StoreSpec,
        name: str | None,
        make: MakeOperator,
        key_serde: Serde[Any] | None,
        grace_ms: int | None = None,
    ) -> KTable[Any, Any]:
        names, graph = self._scope.names, self._scope.graph
        parents, sources = self._parents(spec)
        operators, nodes = [], []
        for number, (aggregator, parent) in enumerate(zip(self._groups.values(), parents, strict=True)):
            operator = make(aggregator)
            node_name = names.suffixed(name, f"-cogroup-agg-{number}", _AGGREGATE)
            node = ProcessorGraphNode(node_name, operator, spec=spec)
            node.grace_ms = grace_ms
            graph.add(parent, node)
            operators.append(operator)
            nodes.append(node)
        merge_name = names.suffixed(name, "-cogroup-merge", _MERGE)
        merge = CogroupMergeOperator(operators)
        merge_node = ProcessorGraphNode(merge_name, merge)
        for node in nodes:
            graph.add(node, merge_node)
        return KTable(
            self._scope, merge_node, merge_name, sources, key_serde, spec.value_serde, merge, spec.queryable_name
        )

    def _parents(self, spec: StoreSpec) -> tuple[list[GraphNode], frozenset[str]]:
        """Where each aggregation attaches. Co-partitioned are the streams as they were before a repartition: so it is in the
        original. Repartition topics without a name of their own are numbered from the second on; in the original they clash.
        """
        parents: list[GraphNode] = []
        sources: frozenset[str] = frozenset()
        unnamed = 0
        for grouped in self._groups:
            parent: GraphNode = grouped._node
            if grouped._needs_repartition:
                parent = grouped._repartition_for(spec, f"-{unnamed}" if unnamed else "")
                unnamed += grouped._repartition_name is None
                self._scope.graph.add(grouped._node, parent)
                sources |= {parent.name}
            else:
                sources |= grouped._sources
            parents.append(parent)
        first, *others = self._groups
        self._scope.graph.copartition(first._sources.union(*(other._sources for other in others)))
        return parents, sources


class CogroupedKStream(_Cogrouped[K, VA]):
    """Streams to be aggregated together: add more with `cogroup`, then `aggregate`, or `windowed_by` before."""

    def cogroup(
        self, grouped: KGroupedStream[K, Any], aggregator: Callable[[K, Any, VA], VA | None]
    ) -> CogroupedKStream[K, VA]:
        """One more stream, with `aggregator(key, value, aggregate)` for its values; given again, it has the later one. As in the
        original this adds to the group at hand, so that it is seen through every name that the group has.
        """
        from streamfleet.dsl.grouped_stream import KGroupedStream

        if not isinstance(grouped, KGroupedStream):
            raise OptionError(
                f"cogroup needs a KGroupedStream, but was given {grouped!r}", hint="group the stream first"
            )
        checked_function("cogroup", aggregator, "aggregator", ("key", "value", "aggregate"))
        self._groups[grouped] = aggregator
        return self

    def aggregate(
        self,
        initializer: Callable[[], VA],
        *,
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable[K, VA]:
        """The table of all streams, each key starting with `initializer()`."""
        checked_function("aggregate", initializer, "initializer", ())
        options = chosen_materialized("aggregate", store, materialized)
        spec = StoreSpec(options, self._scope.names, _AGGREGATE, key_serde=self._default_key_serde)

        def make(aggregator: Aggregator) -> TableOperator:
            return StreamAggregateOperator(spec.name, initializer, aggregator)

        return self._add(spec, name, make, spec.key_serde)

    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedCogroupedKStream[K, VA]: ...

    @overload
    def windowed_by(self, windows: Windows | SlidingWindows) -> TimeWindowedCogroupedKStream[K, VA]: ...

    def windowed_by(
        self, windows: Windows | SlidingWindows | SessionWindows
    ) -> SessionWindowedCogroupedKStream[K, VA] | TimeWindowedCogroupedKStream[K, VA]:
        """Group by windows of time as well."""
        if isinstance(windows, SessionWindows):
            return SessionWindowedCogroupedKStream(self._groups, windows)
        if isinstance(windows, Windows | SlidingWindows):
            return TimeWindowedCogroupedKStream(self._groups, windows)
        raise OptionError(
            f"windowed_by was given {windows!r}, which is not a kind of windows",
            hint="pass TimeWindows, SlidingWindows, SessionWindows or UnlimitedWindows",
        )


class TimeWindowedCogroupedKStream(_Cogrouped[K, VA]):
    """By time, sliding or unlimited windows."""

    def __init__(self, groups: Groups, windows: Windows | SlidingWindows) -> None:
        super().__init__(groups)
        self._windows = windows

    def aggregate(
        self,
        initializer: Callable[[], VA],
        *,
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable[Windowed[K], VA]:
        """The table of all streams by window, each key and window starting with `initializer()`."""
        checked_function("aggregate", initializer, "initializer", ())
        options = chosen_materialized("aggregate", store, materialized)
        windows, strategy = self._windows, EmitStrategy.ON_WINDOW_UPDATE
        spec = WindowStoreSpec(options, self._scope.names, _AGGREGATE, key_serde=self._default_key_serde).for_windows(
            windows, strategy
        )

        def make(aggregator: Aggregator) -> TableOperator:
            if isinstance(windows, SlidingWindows):
                return SlidingAggregateOperator(windows, spec.name, strategy, initializer, aggregator)
            least = spec.has_least_retention
            return TimeWindowedAggregateOperator(
                windows, spec.name, strategy, initializer, aggregator, has_least_retention=least
            )

        size_ms = windows.difference_ms if isinstance(windows, SlidingWindows) else windows.size_ms
        key_serde = None if spec.key_serde is None else windowed(spec.key_serde, size_ms)
        return self._add(spec, name, make, key_serde, windows.grace_ms)


class SessionWindowedCogroupedKStream(_Cogrouped[K, VA]):
    """By sessions."""

    def __init__(self, groups: Groups, windows: SessionWindows) -> None:
        super().__init__(groups)
        self._windows = windows

    def aggregate(
        self,
        initializer: Initializer,
        merger: Merger,
        *,
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable[Windowed[K], VA]:
        """`merger(key, one, other)` brings two sessions together."""
        checked_function("aggregate", initializer, "initializer", ())
        checked_function("aggregate", merger, "merger", ("key", "one", "other"))
        options = chosen_materialized("aggregate", store, materialized)
        windows, strategy = self._windows, EmitStrategy.ON_WINDOW_UPDATE
        spec = SessionStoreSpec(options, self._scope.names, _AGGREGATE, key_serde=self._default_key_serde).for_windows(
            windows, strategy
        )

        def make(aggregator: Aggregator) -> TableOperator:
            return SessionAggregateOperator(windows, spec.name, strategy, initializer, aggregator, merger)

        key_serde = None if spec.key_serde is None else session_windowed(spec.key_serde)
        return self._add(spec, name, make, key_serde, windows.grace_ms + windows.gap_ms)
