"""The group's offsets as a commit sees them, over the membership that fences them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from streamfleet.ids import TopicPartition
from streamfleet.kafka.membership import Membership
from streamfleet.kafka.offset_messages import CommittedOffset as WireOffset
from streamfleet.ports import ProducerIdentity
from streamfleet.task.offsets import CommittedOffset

TIMEOUT_MS = 30_000


class MemberOffsets:
    """Implements GroupOffsets."""

    def __init__(self, membership: Membership[Any, Any]) -> None:
        self._membership = membership

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        self._membership.commit(_to_wire(offsets), TIMEOUT_MS)

    def commit_in_transaction(
        self, producer: ProducerIdentity, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> None:
        self._membership.txn_commit_offsets(producer, _to_wire(offsets), TIMEOUT_MS)

    def end_transaction(self, producer: ProducerIdentity, *, commit: bool) -> None:
        self._membership.txn_end_empty(producer, commit=commit, timeout_ms=TIMEOUT_MS)

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, CommittedOffset]:
        found = self._membership.committed(list(partitions), TIMEOUT_MS)
        return {partition: CommittedOffset.parse(wire.offset, wire.metadata) for partition, wire in found.items()}


def _to_wire(offsets: Mapping[TopicPartition, CommittedOffset]) -> dict[TopicPartition, WireOffset]:
    return {partition: WireOffset(each.offset, each.metadata) for partition, each in offsets.items()}
