"""Streams joined with tables and global tables: how `KStream.join` and `left_join` become nodes, and a buffer if there is a grace.

What the processors do is in operators/stream_table_join.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from streamfleet.dsl.functions import checked_function
from streamfleet.dsl.global_ktable import GlobalKTable
from streamfleet.dsl.join_nodes import StreamTableJoinGraphNode, not_versioned
from streamfleet.dsl.names import checked_name
from streamfleet.dsl.operators.stream_table_join import StreamTableJoinOperator, own_key
from streamfleet.durations import Duration, duration_ms
from streamfleet.errors import OptionError
from streamfleet.serdes.api import Serde
from streamfleet.state.record_buffer import RecordBufferBuilder

if TYPE_CHECKING:
    from streamfleet.dsl.kstream import KStream
    from streamfleet.dsl.ktable import KTable

K = TypeVar("K")


def join_table(
    stream: KStream[K, Any],
    table: KTable[K, Any],
    joiner: Callable[[Any, Any, Any], Any],
    *,
    left: bool,
    name: str | None = None,
    key_serde: Serde[Any] | None = None,
    value_serde: Serde[Any] | None = None,
    other_value_serde: Serde[Any] | None = None,  # noqa: ARG001  (for symmetry, see below)
    grace: Duration | None = None,
) -> KStream[K, Any]:
    """`other_value_serde` is accepted for symmetry: the table's own store has decided how its values are kept."""
    if name is not None:
        checked_name(name)
    if stream._needs_repartition:
        stream = stream._repartitioned_for_join(name, key_serde, value_serde)
    sources = stream._copartition_with(table)
    prefix = "KSTREAM-LEFTJOIN-" if left else "KSTREAM-JOIN-"
    node_name = stream._scope.names.node(name, prefix)
    view = table.view()
    buffer = None if grace is None else _join_buffer(stream, node_name, name, table, grace, key_serde, value_serde)
    operator = StreamTableJoinOperator(view, own_key, joiner, left=left, buffer=None if buffer is None else buffer.name)
    node = StreamTableJoinGraphNode(node_name, operator, view.stores, left=left, buffer=buffer)
    stream._scope.graph.add(stream._node, node)
    key_serde = key_serde or stream._key_serde
    return type(stream)(stream._scope, node, node_name, sources, key_serde, None, needs_repartition=False)


def _join_buffer(
    stream: KStream[Any, Any],
    node_name: str,
    name: str | None,
    table: KTable[K, Any],
    grace: Duration,
    key_serde: Serde[Any] | None,
    value_serde: Serde[Any] | None,
) -> RecordBufferBuilder:
    if table._node.is_versioned is False:
        raise not_versioned(node_name)
    buffer = f"{node_name}-Buffer"
    if name is None:
        stream._scope.names.unnamed["state store"].append(buffer)
        stream._scope.names.unnamed["changelog topic"].append(f"{buffer}-changelog")
    return RecordBufferBuilder(
        name=buffer,
        grace_ms=duration_ms(grace, f"grace of join {node_name}"),
        key_serde=key_serde or stream._key_serde,
        value_serde=value_serde or stream._value_serde,
    )


def join_global_table(
    operator: str,
    stream: KStream[K, Any],
    table: GlobalKTable[Any, Any],
    joiner: Callable[..., Any],
    *,
    left: bool,
    key_selector: Callable[[Any, Any], Any] | None = None,
    name: str | None = None,
    takes_both_keys: bool = False,
) -> KStream[K, Any]:
    if key_selector is None:
        raise OptionError(
            f"{operator} with a GlobalKTable needs key_selector",
            hint="key_selector=lambda key, value: ... says which row of the table to look up",
        )
    selector = checked_function(operator, key_selector, "key_selector", ("key", "value"))
    join = StreamTableJoinOperator(table.view(), selector, joiner, left=left, takes_both_keys=takes_both_keys)
    # Both joins are named LEFTJOIN in the original.
    node_name = stream._scope.names.node(name, "KSTREAM-LEFTJOIN-")
    return stream._then(StreamTableJoinGraphNode(node_name, join, (), left=left), new_value=True)
