"""StreamsGroupDescribe on the wire: a streams group as its coordinator sees it.

Called by client.py, for a member that has missed an answer, and by the reset command, for which the admin client is blind here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafka.protocol.api_message import ApiMessage  # type: ignore[import-untyped]

from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.streams_group import schemas
from streamfleet.kafka.streams_group.values import TaskSets, task_sets_of
from streamfleet.kafka.wire import PINNED, Call


class StreamsGroupDescribeRequest(ApiMessage, load_json=schemas):  # type: ignore[misc, call-arg]
    pass


class StreamsGroupDescribeResponse(ApiMessage, load_json=schemas):  # type: ignore[misc, call-arg]
    pass


@dataclass(frozen=True)
class DescribedMember:
    member_id: str
    member_epoch: int
    client_id: str
    host: str
    process_id: str
    tasks: TaskSets
    target: TaskSets


@dataclass(frozen=True)
class DescribeAnswer:
    code: ErrorCode
    message: str | None
    state: str
    epoch: int
    members: tuple[DescribedMember, ...]
    internal_topics: frozenset[str] = frozenset()
    """Of the topology that the group was founded with."""


def describe(group_id: str) -> Call[DescribeAnswer]:
    request = StreamsGroupDescribeRequest(
        group_ids=[group_id], include_authorized_operations=False, version=PINNED["StreamsGroupDescribe"]
    )
    return Call("StreamsGroupDescribe", request, StreamsGroupDescribeResponse, _described)


def _described(response: Any) -> DescribeAnswer:
    [group] = response.groups
    return DescribeAnswer(
        code=ErrorCode.of(group.error_code),
        message=group.error_message,
        state=group.group_state,
        epoch=group.group_epoch,
        internal_topics=_internal_topics(group.topology),
        members=tuple(
            DescribedMember(
                member_id=member.member_id,
                member_epoch=member.member_epoch,
                client_id=member.client_id,
                host=member.client_host,
                process_id=member.process_id,
                tasks=task_sets_of(member.assignment),
                target=task_sets_of(member.target_assignment),
            )
            for member in group.members
        ),
    )


def _internal_topics(topology: Any) -> frozenset[str]:
    parts = () if topology is None else topology.subtopologies or ()
    return frozenset(
        topic.name for part in parts for topic in (*part.state_changelog_topics, *part.repartition_source_topics)
    )
