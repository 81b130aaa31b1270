"""StreamsGroupHeartbeat on the wire. It is everything at once: joining (epoch 0), staying, telling what is run, leaving (epoch -1).

Called by client.py. Turns typed arguments into a Call and the response into a frozen value; what follows from it is in member.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kafka.protocol.api_message import ApiMessage  # type: ignore[import-untyped]

from streamfleet.ids import TopicPartition
from streamfleet.kafka.address import Address
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.streams_group import schemas
from streamfleet.kafka.streams_group.topology import GroupTopology, InternalTopicInfo
from streamfleet.kafka.streams_group.values import (
    BrokerTask,
    EndpointPartitions,
    GroupStatus,
    StatusReport,
    TaskSets,
    task_sets_of,
)
from streamfleet.kafka.wire import PINNED, Call

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
VERSION = PINNED["StreamsGroupHeartbeat"]


class StreamsGroupHeartbeatRequest(ApiMessage, load_json=schemas):  # type: ignore[misc, call-arg]
    pass


class StreamsGroupHeartbeatResponse(ApiMessage, load_json=schemas):  # type: ignore[misc, call-arg]
    pass


_Request = StreamsGroupHeartbeatRequest
_SubTopology = _Request.Topology.Subtopology


@dataclass(frozen=True)
class MemberFacts:
    """What a member is told to the broker as when it joins; does not change while it is one."""

    group_id: str
    member_id: str
    """Made by the member itself, and kept when it has to join again."""
    process_id: str
    topology: GroupTopology
    rebalance_timeout_ms: int
    """How long the group waits for the member to give tasks up."""
    endpoint: Address | None = None
    rack: str | None = None
    tags: Mapping[str, str] | None = None


@dataclass(frozen=True)
class HeartbeatAnswer:
    code: ErrorCode
    message: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    statuses: tuple[StatusReport, ...]
    tasks: TaskSets | None
    """What the member is to run; None: as before."""
    endpoint_epoch: int
    endpoints: tuple[EndpointPartitions, ...] | None
    """Of the whole group; None: as before."""


def heartbeat(
    facts: MemberFacts,
    *,
    member_epoch: int,
    owned: TaskSets | None = None,
    endpoint_epoch: int = 0,
    shutdown_application: bool = False,
) -> Call[HeartbeatAnswer]:
    """`owned` is told every time, not only when it changes: a member whose last answer was lost is known by it."""
    whole: dict[str, Any] = {}
    if member_epoch == JOIN_EPOCH:
        whole = {
            "topology": _topology(facts.topology),
            "process_id": facts.process_id,
            "rack_id": facts.rack,
            "rebalance_timeout_ms": facts.rebalance_timeout_ms,
            "user_endpoint": _endpoint(facts.endpoint),
            "client_tags": _key_values(facts.tags or {}),
        }
    tasks: dict[str, Any] = {}
    if owned is not None:
        tasks = {
            "active_tasks": _task_ids(owned.active),
            "standby_tasks": _task_ids(owned.standby),
            "warmup_tasks": _task_ids(owned.warmup),
        }
    request = StreamsGroupHeartbeatRequest(
        group_id=facts.group_id,
        member_id=facts.member_id,
        member_epoch=member_epoch,
        endpoint_information_epoch=endpoint_epoch,
        shutdown_application=shutdown_application,
        version=VERSION,
        **whole,
        **tasks,
    )
    return Call("StreamsGroupHeartbeat", request, StreamsGroupHeartbeatResponse, _heartbeat_answer)


def _topology(topology: GroupTopology) -> Any:
    return _Request.Topology(
        epoch=topology.epoch,
        subtopologies=[
            _SubTopology(
                subtopology_id=part.id,
                source_topics=list(part.source_topics),
                source_topic_regex=[],
                state_changelog_topics=[_topic_info(topic) for topic in part.changelog_topics],
                repartition_sink_topics=list(part.repartition_sink_topics),
                repartition_source_topics=[_topic_info(topic) for topic in part.repartition_source_topics],
                copartition_groups=[
                    _SubTopology.CopartitionGroup(
                        source_topics=list(sources),
                        source_topic_regex=[],
                        repartition_source_topics=list(repartition),
                        version=VERSION,
                    )
                    for sources, repartition in part.copartition_groups
                ],
                version=VERSION,
            )
            for part in topology.sub_topologies
        ],
        version=VERSION,
    )


def _topic_info(topic: InternalTopicInfo) -> Any:
    return _SubTopology.TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=_key_values(topic.configs, _SubTopology.TopicInfo.KeyValue),
        version=VERSION,
    )


def _key_values(pairs: Mapping[str, str], row: Any = _Request.KeyValue) -> list[Any]:
    return [row(key=key, value=value, version=VERSION) for key, value in sorted(pairs.items())]


def _endpoint(address: Address | None) -> Any:
    return address and _Request.Endpoint(host=address.host, port=address.port, version=VERSION)


def _task_ids(tasks: Iterable[BrokerTask]) -> list[Any]:
    partitions: dict[str, list[int]] = {}
    for sub_topology, partition in sorted(tasks):
        partitions.setdefault(sub_topology, []).append(partition)
    return [
        _Request.TaskIds(subtopology_id=sub_topology, partitions=numbers, version=VERSION)
        for sub_topology, numbers in partitions.items()
    ]


def _partitions(rows: Any) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(row.topic, partition) for row in rows for partition in row.partitions)


def _heartbeat_answer(response: Any) -> HeartbeatAnswer:
    endpoints = response.partitions_by_user_endpoint
    return HeartbeatAnswer(
        code=ErrorCode.of(response.error_code),
        message=response.error_message,
        member_epoch=response.member_epoch,
        heartbeat_interval_ms=response.heartbeat_interval_ms,
        statuses=tuple(StatusReport(GroupStatus(row.status_code), row.status_detail) for row in response.status or ()),
        tasks=None if response.active_tasks is None else task_sets_of(response),
        endpoint_epoch=response.endpoint_information_epoch,
        endpoints=None
        if endpoints is None
        else tuple(
            EndpointPartitions(
                Address(row.user_endpoint.host, row.user_endpoint.port),
                _partitions(row.active_partitions),
                _partitions(row.standby_partitions),
            )
            for row in endpoints
        ),
    )
