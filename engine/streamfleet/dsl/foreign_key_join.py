"""Tables joined by a foreign key: how `KTable.join` and `left_join` with `foreign_key=` become nodes, topics and a store.

What the processors do is in operators/foreign_key_join.py. Names and numbers are those of Kafka Streams.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamfleet.dsl.graph import ProcessorGraphNode, TableRepartitionGraphNode
from streamfleet.dsl.joining_store import JoinStore, StoreKind
from streamfleet.dsl.materialized import Materialized, StoreSpec
from streamfleet.dsl.operators.foreign_key_join import (
    ForeignKeyJoin,
    ForeignTableJoinOperator,
    ResponseJoinOperator,
    SubscriptionJoinOperator,
    SubscriptionReceiveOperator,
    SubscriptionSendOperator,
    response_partition,
)
from streamfleet.dsl.operators.table_source import TableSourceOperator
from streamfleet.serdes.plain import bytes as bytes_serde
from streamfleet.serdes.subscription import ResponseSerde, SubscriptionSerde
from streamfleet.state.api import StoreBuilder
from streamfleet.state.stores import Stores
from streamfleet.topology.nodes import StreamPartitioner

if TYPE_CHECKING:
    from streamfleet.dsl.ktable import KTable

_PREFIX = "KTABLE-FK-JOIN-"


@dataclass(frozen=True, kw_only=True)
class TableJoined:
    """The options of a foreign-key join, as its keywords."""

    name: str | None = None
    materialized: Materialized | None = None
    partitioner: StreamPartitioner | None = None
    """How the primary table is partitioned, if not by the hash of its keys."""
    other_partitioner: StreamPartitioner | None = None


def join_by_foreign_key(
    primary: KTable[Any, Any],
    foreign: KTable[Any, Any],
    extractor: Callable[[Any, Any], Any],
    joiner: Callable[[Any, Any, Any], Any],
    options: TableJoined,
    *,
    is_left: bool,
) -> KTable[Any, Any]:
    foreign.enable_sending_old_values(force=True)
    primary.enable_sending_old_values(force=True)
    names, graph, name = primary._scope.names, primary._scope.graph, options.name
    topic = names.suffixed(name, "-subscription-registration", f"{_PREFIX}SUBSCRIPTION-REGISTRATION-") + "-topic"

    def node_name(suffix: str, prefix: str) -> str:
        return names.suffixed(name, suffix, prefix)

    send = node_name("-subscription-registration-processor", f"{_PREFIX}SUBSCRIPTION-REGISTRATION-")
    registration_sink = node_name("-subscription-registration-sink", "KTABLE-SINK-")
    registration_source = node_name("-subscription-registration-source", "KTABLE-SOURCE-")
    store_name = node_name("-subscription-store", f"{_PREFIX}SUBSCRIPTION-STATE-STORE-")
    receive = node_name("-subscription-receive", f"{_PREFIX}SUBSCRIPTION-PROCESSOR-")
    answer = node_name("-subscription-join-foreign", f"{_PREFIX}SUBSCRIPTION-PROCESSOR-")
    foreign_update = node_name("-foreign-join-subscription", f"{_PREFIX}SUBSCRIPTION-PROCESSOR-")
    response_topic = node_name("-subscription-response", f"{_PREFIX}SUBSCRIPTION-RESPONSE-") + "-topic"
    response_sink = node_name("-subscription-response-sink", "KTABLE-SINK-")
    response_source = node_name("-subscription-response-source", "KTABLE-SOURCE-")
    resolve = node_name("-subscription-response-resolver", f"{_PREFIX}SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-")
    result = node_name("-result", f"{_PREFIX}OUTPUT-")

    join = ForeignKeyJoin(
        extractor, joiner, is_left, topic, store_name, primary._key_serde, primary._value_serde, foreign._key_serde
    )
    subscription_serde = SubscriptionSerde(primary._key_serde, topic, store_name)
    store = _subscription_store(store_name, subscription_serde)
    if name is None:
        names.unnamed["state store"].append(store_name)
        names.unnamed["changelog topic"].append(f"{store_name}-changelog")
        names.unnamed["repartition topic"] += [topic, response_topic]

    send_node = ProcessorGraphNode(send, SubscriptionSendOperator(join))
    graph.add(primary._node, send_node)
    registration = TableRepartitionGraphNode(
        topic,
        registration_sink,
        registration_source,
        foreign._key_serde,
        subscription_serde,
        _by_key_alone(options.other_partitioner),
    )
    graph.add(send_node, registration)
    graph.copartition(foreign._sources | {registration_source})
    receive_node = ProcessorGraphNode(receive, SubscriptionReceiveOperator(join), own_stores=(store,))
    graph.add(registration, receive_node)
    foreign_view = foreign.view()
    answer_node = ProcessorGraphNode(answer, SubscriptionJoinOperator(foreign_view), stores=foreign_view.stores)
    graph.add(receive_node, answer_node)
    update_node = ProcessorGraphNode(foreign_update, ForeignTableJoinOperator(join), own_stores=(store,))
    graph.add(foreign._node, update_node)
    response = TableRepartitionGraphNode(
        response_topic,
        response_sink,
        response_source,
        primary._key_serde,
        ResponseSerde(foreign._value_serde),
        _by_key_alone(options.partitioner) or _as_list(response_partition),
    )
    graph.add(answer_node, response)
    graph.add(update_node, response)
    sources = primary._sources | {response_source}
    graph.copartition(sources)
    primary_view = primary.view()
    resolve_node = ProcessorGraphNode(resolve, ResponseJoinOperator(join, primary_view), stores=primary_view.stores)
    graph.add(response, resolve_node)

    spec = StoreSpec(options.materialized, names, f"{_PREFIX}OUTPUT-", key_serde=primary._key_serde)
    operator = TableSourceOperator(spec, materialize=spec.is_named)
    result_node = ProcessorGraphNode(result, operator, spec=spec)
    graph.add(resolve_node, result_node)
    return type(primary)(
        primary._scope, result_node, result, sources, spec.key_serde, spec.value_serde, operator, spec.queryable_name
    )


def _subscription_store(name: str, serde: SubscriptionSerde) -> JoinStore:
    def make(kind: StoreKind) -> StoreBuilder[Any]:
        builder = Stores.timestamped_key_value(name, kind=kind, key_serde=bytes_serde(), value_serde=serde)
        return builder.with_logged_headers()

    return JoinStore(name, make, None)


def _by_key_alone(partitioner: StreamPartitioner | None) -> StreamPartitioner | None:
    """The user's partitioner knows the table's values, not what travels in their place."""
    if partitioner is None:
        return None
    return lambda topic, key, _value, num_partitions: partitioner(topic, key, None, num_partitions)


def _as_list(choose: Callable[[str, Any, Any, int], int | None]) -> StreamPartitioner:
    def partitions(topic: str, key: Any, value: Any, num_partitions: int) -> list[int] | None:
        chosen = choose(topic, key, value, num_partitions)
        return None if chosen is None else [chosen]

    return partitions
