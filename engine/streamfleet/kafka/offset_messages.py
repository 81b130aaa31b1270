"""Committed offsets on the wire: OffsetCommit and OffsetFetch.

Called by offset_client.py. The same topic/partition nesting serves the transactional variant, so `by_topic` is also
used by transaction_messages.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kafka.protocol.consumer.group import (  # type: ignore[import-untyped]
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

from streamfleet.ids import TopicPartition
from streamfleet.kafka.error_codes import ErrorCode, worst
from streamfleet.kafka.group_messages import ConsumerGroupMetadata
from streamfleet.kafka.wire import PINNED, Call

MAX_METADATA_BYTES = 4096
"""The broker's default `offset.metadata.max.bytes`."""


class CommittedOffset(NamedTuple):
    """The next offset to read, and what the committer wrote beside it."""

    offset: int
    metadata: str = ""


@dataclass(frozen=True)
class PartitionCodes:
    """An answer with one code per partition."""

    codes: Mapping[TopicPartition, ErrorCode]

    @property
    def code(self) -> ErrorCode:
        return worst(list(self.codes.values()))

    def failed(self) -> str:
        """The partitions that were refused, as text."""
        bad = (f"{partition}: {code.name}" for partition, code in self.codes.items() if code is not ErrorCode.NONE)
        return ", ".join(bad)


@dataclass(frozen=True)
class FetchAnswer:
    group_code: ErrorCode
    codes: Mapping[TopicPartition, ErrorCode]
    offsets: Mapping[TopicPartition, CommittedOffset]
    """Of the partitions that have one."""

    @property
    def code(self) -> ErrorCode:
        return worst([self.group_code, *self.codes.values()])


def offset_commit(
    metadata: ConsumerGroupMetadata, offsets: Mapping[TopicPartition, CommittedOffset]
) -> Call[PartitionCodes]:
    version = PINNED["OffsetCommit"]
    topic_class = OffsetCommitRequest.OffsetCommitRequestTopic
    request = OffsetCommitRequest(
        group_id=metadata.group_id,
        generation_id_or_member_epoch=metadata.generation_id,
        member_id=metadata.member_id,
        group_instance_id=metadata.group_instance_id,  # without it a fenced static member's commit is accepted
        topics=committed_topics(topic_class, topic_class.OffsetCommitRequestPartition, offsets, version),
        version=version,
    )
    return Call("OffsetCommit", request, OffsetCommitResponse, partition_codes)


def committed_topics(
    topic_class: Any, partition_class: Any, offsets: Mapping[TopicPartition, CommittedOffset], version: int
) -> list[Any]:
    """Offsets as the two requests that commit them want them."""
    return [
        topic_class(
            name=topic,
            partitions=[
                partition_class(
                    partition_index=partition,
                    committed_offset=committed.offset,
                    committed_leader_epoch=-1,
                    committed_metadata=committed.metadata,
                    version=version,
                )
                for partition, committed in rows
            ],
            version=version,
        )
        for topic, rows in by_topic(offsets)
    ]


def offset_fetch(
    group_id: str, partitions: Iterable[TopicPartition], *, require_stable: bool = True
) -> Call[FetchAnswer]:
    version = PINNED["OffsetFetch"]
    group_class = OffsetFetchRequest.OffsetFetchRequestGroup
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    group = group_class(
        group_id=group_id,
        member_id=None,  # looked at in streams and consumer groups only
        member_epoch=-1,
        topics=[
            group_class.OffsetFetchRequestTopics(name=topic, partition_indexes=indexes, version=version)
            for topic, indexes in topics.items()
        ],
        version=version,
    )
    request = OffsetFetchRequest(groups=[group], require_stable=require_stable, version=version)
    return Call("OffsetFetch", request, OffsetFetchResponse, _fetched)


def by_topic(
    offsets: Mapping[TopicPartition, CommittedOffset],
) -> list[tuple[str, list[tuple[int, CommittedOffset]]]]:
    topics: dict[str, list[tuple[int, CommittedOffset]]] = {}
    for (topic, partition), committed in sorted(offsets.items()):
        topics.setdefault(topic, []).append((partition, committed))
    return list(topics.items())


def partition_codes(response: Any) -> PartitionCodes:
    return PartitionCodes(
        {
            TopicPartition(topic.name, partition.partition_index): ErrorCode.of(partition.error_code)
            for topic in response.topics
            for partition in topic.partitions
        }
    )


def _fetched(response: Any) -> FetchAnswer:
    group = response.groups[0]
    codes: dict[TopicPartition, ErrorCode] = {}
    offsets: dict[TopicPartition, CommittedOffset] = {}
    for topic in group.topics:
        for row in topic.partitions:
            partition = TopicPartition(topic.name, row.partition_index)
            codes[partition] = ErrorCode.of(row.error_code)
            if row.error_code == ErrorCode.NONE and row.committed_offset >= 0:
                offsets[partition] = CommittedOffset(row.committed_offset, row.metadata or "")
    return FetchAnswer(ErrorCode.of(group.error_code), codes, offsets)
