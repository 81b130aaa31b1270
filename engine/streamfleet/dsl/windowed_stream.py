"""Grouped streams by windows: TimeWindowedKStream (time, sliding and unlimited windows) and SessionWindowedKStream."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from streamfleet.dsl.functions import checked_function
from streamfleet.dsl.materialized import Materialized, SessionStoreSpec, StoreSpec, WindowStoreSpec, chosen_materialized
from streamfleet.dsl.operators.aggregate import Aggregator, Initializer, count_one, nothing, reducing, zero
from streamfleet.dsl.operators.session_aggregate import Merger, SessionAggregateOperator
from streamfleet.dsl.operators.sliding_aggregate import SlidingAggregateOperator
from streamfleet.dsl.operators.table_view import TableOperator
from streamfleet.dsl.operators.windowed_aggregate import TimeWindowedAggregateOperator
from streamfleet.dsl.windows import EmitStrategy, SessionWindows, SlidingWindows, UnlimitedWindows, Windows
from streamfleet.errors import OptionError
from streamfleet.records import Windowed
from streamfleet.serdes import long, session_windowed, windowed
from streamfleet.serdes.api import Serde

if TYPE_CHECKING:
    from streamfleet.dsl.grouped_stream import KGroupedStream
    from streamfleet.dsl.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
VA = TypeVar("VA")

_AGGREGATE = "KSTREAM-AGGREGATE-"
_REDUCE = "KSTREAM-REDUCE-"


class _WindowedKStream(Generic[K, V]):
    """What both kinds share: the emit strategy, and how a count is named."""

    def __init__(self, grouped: KGroupedStream[K, V]) -> None:
        self._grouped = grouped
        self._scope = grouped._scope
        self._emit_strategy = EmitStrategy.ON_WINDOW_UPDATE

    def emit_strategy(self, strategy: EmitStrategy) -> Self:
        """Whether to emit every update of a window, or one result when it has closed."""
        if not isinstance(strategy, EmitStrategy):
            raise OptionError(f"emit_strategy was given {strategy!r}", hint="pass an EmitStrategy")
        self._emit_strategy = strategy
        return self

    def _add(
        self,
        operator: TableOperator,
        spec: StoreSpec,
        name: str | None,
        prefix: str,
        key_serde: Serde[Any] | None,
        grace_ms: int,
    ) -> KTable[Windowed[K], Any]:
        node_name = self._scope.names.node(name, prefix)
        return self._grouped._add_aggregation(operator, spec, node_name, key_serde, grace_ms)


class TimeWindowedKStream(_WindowedKStream[K, V]):
    """A stream grouped by key and by time, sliding or unlimited windows."""

    def __init__(self, grouped: KGroupedStream[K, V], windows: Windows | SlidingWindows) -> None:
        super().__init__(grouped)
        self._windows = windows

    def emit_strategy(self, strategy: EmitStrategy) -> Self:
        if isinstance(self._windows, UnlimitedWindows) and strategy is EmitStrategy.ON_WINDOW_CLOSE:
            raise OptionError("UnlimitedWindows never close, so nothing can be emitted when they do")
        return super().emit_strategy(strategy)

    def count(
        self, *, name: str | None = None, store: str | None = None, materialized: Materialized | None = None
    ) -> KTable[Windowed[K], int]:
        """The number of records of each key and window; null values count."""
        if isinstance(self._windows, SlidingWindows):
            options = chosen_materialized("count", store, materialized)
        else:
            options = self._grouped._count_options(store, materialized)
        return self._aggregate(options, zero, count_one, name, _AGGREGATE, long())

    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable[Windowed[K], V]:
        """Combine the values of each key and window by `reducer(aggregate, value)`."""
        function = checked_function("reduce", reducer, "reducer", ("aggregate", "value"))
        options = chosen_materialized("reduce", store, materialized)
        value_serde = self._grouped._value_serde
        return self._aggregate(options, nothing, reducing(function), name, _REDUCE, value_serde)

    def aggregate(
        self,
        initializer: Callable[[], VA],
        aggregator: Callable[[K, V, VA], VA | None],
        *,
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable[Windowed[K], VA]:
        """Combine the values of each key and window by `aggregator(key, value, aggregate)`; None deletes."""
        checked_function("aggregate", initializer, "initializer", ())
        checked_function("aggregate", aggregator, "aggregator", ("key", "value", "aggregate"))
        options = chosen_materialized("aggregate", store, materialized)
        return self._aggregate(options, initializer, aggregator, name, _AGGREGATE, None)

    def _aggregate(
        self,
        options: Materialized | None,
        initializer: Initializer,
        aggregator: Aggregator,
        name: str | None,
        prefix: str,
        value_serde: Serde[Any] | None,
    ) -> KTable[Windowed[K], Any]:
        spec = WindowStoreSpec(
            options, self._scope.names, prefix, key_serde=self._grouped._key_serde, value_serde=value_serde
        ).for_windows(self._windows, self._emit_strategy)
        operator: TableOperator
        if isinstance(self._windows, SlidingWindows):
            size_ms = self._windows.difference_ms
            operator = SlidingAggregateOperator(self._windows, spec.name, self._emit_strategy, initializer, aggregator)
        else:
            size_ms = self._windows.size_ms
            operator = TimeWindowedAggregateOperator(
                self._windows,
                spec.name,
                self._emit_strategy,
                initializer,
                aggregator,
                has_least_retention=spec.has_least_retention,
            )
        key_serde = None if spec.key_serde is None else windowed(spec.key_serde, size_ms)
        return self._add(operator, spec, name, prefix, key_serde, self._windows.grace_ms)


class SessionWindowedKStream(_WindowedKStream[K, V]):
    """A stream grouped by key and by sessions."""

    def __init__(self, grouped: KGroupedStream[K, V], windows: SessionWindows) -> None:
        super().__init__(grouped)
        self._windows = windows

    def count(
        self, *, name: str | None = None, store: str | None = None, materialized: Materialized | None = None
    ) -> KTable[Windowed[K], int]:
        """The number of records of each key and session; null values count."""
        options = self._grouped._count_options(store, materialized)
        return self._aggregate(options, zero, count_one, _add_counts, name, _AGGREGATE, long())

    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable[Windowed[K], V]:
        """Combine the values of each key and session by `reducer(aggregate, value)`; it also merges sessions."""
        aggregator = reducing(checked_function("reduce", reducer, "reducer", ("aggregate", "value")))
        options = chosen_materialized("reduce", store, materialized)

        def merger(key: Any, one: Any, other: Any) -> Any:
            return aggregator(key, other, one)

        return self._aggregate(options, nothing, aggregator, merger, name, _REDUCE, self._grouped._value_serde)

    def aggregate(
        self,
        initializer: Callable[[], VA],
        aggregator: Callable[[K, V, VA], VA | None],
        merger: Callable[[K, VA, VA], VA],
        *,
        name: str | None = None,
        store: str | None = None,
        materialized: Materialized | None = None,
    ) -> KTable[Windowed[K], VA]:
        """Combine the values of each key and session; `merger(key, one, other)` brings two sessions together."""
        checked_function("aggregate", initializer, "initializer", ())
        checked_function("aggregate", aggregator, "aggregator", ("key", "value", "aggregate"))
        checked_function("aggregate", merger, "merger", ("key", "one", "other"))
        options = chosen_materialized("aggregate", store, materialized)
        return self._aggregate(options, initializer, aggregator, merger, name, _AGGREGATE, None)

    def _aggregate(
        self,
        options: Materialized | None,
        initializer: Initializer,
        aggregator: Aggregator,
        merger: Merger,
        name: str | None,
        prefix: str,
        value_serde: Serde[Any] | None,
    ) -> KTable[Windowed[K], Any]:
        spec = SessionStoreSpec(
            options, self._scope.names, prefix, key_serde=self._grouped._key_serde, value_serde=value_serde
        ).for_windows(self._windows, self._emit_strategy)
        operator = SessionAggregateOperator(
            self._windows, spec.name, self._emit_strategy, initializer, aggregator, merger
        )
        key_serde = None if spec.key_serde is None else session_windowed(spec.key_serde)
        # A session may grow as long as the gap lasts, so it closes later by that much.
        return self._add(operator, spec, name, prefix, key_serde, self._windows.grace_ms + self._windows.gap_ms)


def _add_counts(_key: Any, one: int, other: int) -> int:
    return one + other
