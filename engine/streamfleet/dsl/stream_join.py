"""Two streams joined: how `KStream.join`, `left_join` and `outer_join` with another stream become nodes and stores.

What the processors do is in operators/stream_join.py. Names and numbers are those of Kafka Streams: two windowed nodes, a join node
per side, a merge; two window stores of duplicates and, in left and outer joins, the store of records that wait.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamfleet.dsl.graph import ProcessorGraphNode
from streamfleet.dsl.join_nodes import StreamJoinGraphNode
from streamfleet.dsl.joining_store import JoinStore, StoreKind
from streamfleet.dsl.names import checked_name
from streamfleet.dsl.operators.stateless import PassThroughOperator
from streamfleet.dsl.operators.stream_join import (
    JoinSide,
    JoinWindowOperator,
    SelfJoinOperator,
    StreamJoin,
    StreamJoinOperator,
)
from streamfleet.dsl.windows import JoinWindows
from streamfleet.errors import OptionError
from streamfleet.serdes.api import Serde
from streamfleet.serdes.join_side import SidedKeySerde, SidedValueSerde
from streamfleet.serdes.lists import ListSerde
from streamfleet.state.api import StoreBuilder
from streamfleet.state.builders import Logging, WindowStoreBuilder
from streamfleet.state.stores import Stores

if TYPE_CHECKING:
    from streamfleet.dsl.kstream import KStream


@dataclass(frozen=True, kw_only=True)
class StreamJoined:
    """The options of a stream-stream join, as its keywords."""

    window: JoinWindows | None = None
    name: str | None = None
    store_name: str | None = None
    this_store: WindowStoreBuilder[Any, Any] | None = None
    other_store: WindowStoreBuilder[Any, Any] | None = None
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    other_value_serde: Serde[Any] | None = None
    kind: StoreKind | None = None
    logging: Logging = True


def join_streams(
    operator: str,
    left: KStream[Any, Any],
    right: KStream[Any, Any],
    joiner: Callable[[Any, Any, Any], Any],
    options: dict[str, Any],
    *,
    left_outer: bool,
    right_outer: bool,
) -> KStream[Any, Any]:
    """`left_outer`: records of the left stream without partner give a result; `right_outer`: those of the right one as well."""
    joined = StreamJoined(**options)
    windows = _checked(operator, joined)
    key_serde = joined.key_serde
    if left._needs_repartition:
        left = left._repartitioned_for_join(_suffixed(joined.name, "-left"), key_serde, joined.value_serde)
    if right._needs_repartition:
        right = right._repartitioned_for_join(_suffixed(joined.name, "-right"), key_serde, joined.other_value_serde)
    sources = left._copartition_with(right)
    parts = _Names(left, joined, left_outer=left_outer, right_outer=right_outer)
    this_store, other_store = _window_stores(left, right, joined, windows, parts)
    waiting = _waiting_store(left, right, joined, parts, right_outer=right_outer) if left_outer else None
    _note_unnamed(left, joined, [this_store, other_store, *([] if waiting is None else [waiting])])
    graph = left._scope.graph
    graph.add(left._node, _windowed_node(parts.this_windowed, this_store))
    graph.add(right._node, _windowed_node(parts.other_windowed, other_store))
    join = StreamJoin(windows, joiner, None if waiting is None else waiting.name)
    this_side = JoinSide(is_left=True, is_outer=left_outer, other_store=other_store.name)
    other_side = JoinSide(is_left=False, is_outer=right_outer, other_store=this_store.name)
    node = StreamJoinGraphNode(
        parts.merge,
        PassThroughOperator(),
        (parts.this_join, StreamJoinOperator(join, this_side), parts.this_windowed, other_store.name),
        (parts.other_join, StreamJoinOperator(join, other_side), parts.other_windowed, this_store.name),
        waiting,
        SelfJoinOperator(windows, joiner, this_store.name),
        is_relaxed=left_outer,
    )
    graph.add(left._node, node)
    graph.add(right._node, node)
    return type(left)(
        left._scope, node, parts.merge, sources, key_serde or left._key_serde, None, needs_repartition=False
    )


def _checked(operator: str, joined: StreamJoined) -> JoinWindows:
    if not isinstance(joined.window, JoinWindows):
        raise OptionError(
            f"{operator} with a KStream needs window=JoinWindows(...), but was given {joined.window!r}",
            hint="say how far apart in time records may be: JoinWindows(before=..., after=..., grace=...)",
        )
    suppliers = [store for store in (joined.this_store, joined.other_store) if store is not None]
    for supplier in suppliers:
        _check_supplier(operator, supplier, joined.window)
    if len(suppliers) == 2 and suppliers[0].name == suppliers[1].name:
        raise OptionError(
            f"{operator}: this_store and other_store are both named {suppliers[0].name}", hint="give each its own name"
        )
    return joined.window


def _check_supplier(operator: str, supplier: Any, windows: JoinWindows) -> None:
    if not isinstance(supplier, WindowStoreBuilder) or not supplier.retain_duplicates:
        raise OptionError(
            f"{operator}: store {getattr(supplier, 'name', supplier)} does not keep all records of a key",
            hint="make it with Stores.window(..., retain_duplicates=True)",
        )
    if (supplier.retention, supplier.window_size) != (windows.retention_ms, windows.size_ms):
        raise OptionError(
            f"{operator}: store {supplier.name} has window_size {supplier.window_size} and retention {supplier.retention}, "
            f"but {windows!r} needs {windows.size_ms} and {windows.retention_ms}",
            hint="the size is before + after, the retention size + grace",
        )


class _Names:
    """The names of the nodes; every one of them uses up a number, also where the user named the join."""

    def __init__(self, stream: KStream[Any, Any], joined: StreamJoined, *, left_outer: bool, right_outer: bool) -> None:
        names, name = stream._scope.names, joined.name
        self.this_suffix = "-outer-this-join" if right_outer else "-this-join"
        self.other_suffix = "-outer-other-join" if left_outer else "-other-join"
        self.this_windowed = names.suffixed(name, "-this-windowed", "KSTREAM-WINDOWED-")
        self.other_windowed = names.suffixed(name, "-other-windowed", "KSTREAM-WINDOWED-")
        this_prefix = "KSTREAM-OUTERTHIS-" if right_outer else "KSTREAM-JOINTHIS-"
        self.this_generated = names.generate(this_prefix)
        self.other_generated = names.generate("KSTREAM-OUTEROTHER-" if left_outer else "KSTREAM-JOINOTHER-")
        self.this_join = self.this_generated if name is None else checked_name(name + self.this_suffix)
        self.other_join = self.other_generated if name is None else checked_name(name + self.other_suffix)
        self.merge = names.suffixed(name, "-merge", "KSTREAM-MERGE-")
        self.shared_generated = f"KSTREAM-OUTERSHARED-{self.this_generated.removeprefix(this_prefix)}"


def _window_stores(
    left: KStream[Any, Any], right: KStream[Any, Any], joined: StreamJoined, windows: JoinWindows, parts: _Names
) -> tuple[JoinStore, JoinStore]:
    base = joined.store_name
    key_serde = joined.key_serde or left._key_serde or right._key_serde
    value_serdes = joined.value_serde or left._value_serde, joined.other_value_serde or right._value_serde
    names = (
        f"{parts.this_generated if base is None else base + parts.this_suffix}-store",
        f"{parts.other_generated if base is None else base + parts.other_suffix}-store",
    )
    stores = []
    given = joined.this_store, joined.other_store
    for name, supplier, value_serde in zip(names, given, value_serdes, strict=True):
        stores.append(_window_store(name, supplier, joined, windows, key_serde, value_serde))
    return stores[0], stores[1]


def _window_store(
    name: str,
    supplier: WindowStoreBuilder[Any, Any] | None,
    joined: StreamJoined,
    windows: JoinWindows,
    key_serde: Serde[Any] | None,
    value_serde: Serde[Any] | None,
) -> JoinStore:
    if supplier is not None:
        # What a store that the user brings does with its changelog, nobody has said; so it is an ordinary windowed one.
        logging = (
            {"cleanup.policy": "compact,delete", **supplier.user_log_config} if supplier.logging_enabled else False
        )
        given = supplier.with_serdes(key_serde, value_serde).with_caching(False).with_logging(logging)
        return JoinStore(supplier.name, lambda _kind: _stamped(given), None)
    log_config = {} if isinstance(joined.logging, bool) else joined.logging

    def make(kind: StoreKind) -> StoreBuilder[Any]:
        builder: WindowStoreBuilder[Any, Any] = Stores.window(
            name,
            windows.retention_ms,
            windows.size_ms,
            retain_duplicates=True,
            kind=kind,
            key_serde=key_serde,
            value_serde=value_serde,
            # Every record has a key of its own in the changelog, so there is nothing to compact.
            logging={**log_config, "cleanup.policy": "delete"} if joined.logging is not False else False,
        )
        return _stamped(builder)

    return JoinStore(name, make, joined.kind)


def _stamped(builder: WindowStoreBuilder[Any, Any]) -> WindowStoreBuilder[Any, Any]:
    """In memory a row has a place for a timestamp; see KeyValueStoreBuilder.for_table."""
    builder = builder.with_logged_headers()
    return builder.timestamped() if builder.kind == "in_memory" else builder


def _waiting_store(
    left: KStream[Any, Any], right: KStream[Any, Any], joined: StreamJoined, parts: _Names, *, right_outer: bool
) -> JoinStore:
    suffix = "-outer-shared-join" if right_outer else "-left-shared-join"
    base = joined.store_name if joined.this_store is None else joined.this_store.name
    name = f"{parts.shared_generated if base is None else base + suffix}-store"
    key_serde = joined.key_serde or left._key_serde or right._key_serde
    value_serde = SidedValueSerde(
        joined.value_serde or left._value_serde, joined.other_value_serde or right._value_serde
    )

    def make(kind: StoreKind) -> StoreBuilder[Any]:
        return Stores.key_value(
            name,
            kind=kind,
            key_serde=SidedKeySerde(key_serde),
            value_serde=ListSerde(value_serde),
            logging=joined.logging,
        )

    kind = joined.kind or (None if joined.this_store is None else joined.this_store.kind)
    return JoinStore(name, make, kind)


def _note_unnamed(stream: KStream[Any, Any], joined: StreamJoined, stores: list[JoinStore]) -> None:
    if joined.store_name is None:
        unnamed = stream._scope.names.unnamed
        unnamed["state store"] += [store.name for store in stores]
        if joined.logging is not False:
            unnamed["changelog topic"] += [f"{store.name}-changelog" for store in stores]


def _windowed_node(name: str, store: JoinStore) -> ProcessorGraphNode:
    return ProcessorGraphNode(name, JoinWindowOperator(store.name), own_stores=(store,))


def _suffixed(name: str | None, suffix: str) -> str | None:
    return None if name is None else name + suffix
