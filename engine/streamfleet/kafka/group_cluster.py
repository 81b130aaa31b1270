"""GroupCluster: the ClusterReader of one group. Topics are asked for through the admin client, the group's offsets by our own.

Called by the assignor of the member that leads, between JoinGroup and SyncGroup: all wait, so a question is asked for `timeout_ms`
at most.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from streamfleet.ids import TopicPartition
from streamfleet.kafka.admin import KafkaAdmin
from streamfleet.kafka.connection import Connector
from streamfleet.kafka.coordinator import CoordinatorLine
from streamfleet.kafka.errors import UnstableOffsetError
from streamfleet.kafka.offset_client import OffsetClient
from streamfleet.kafka.patience import PatientClock
from streamfleet.ports import OffsetKind


class GroupCluster:
    """Implements ClusterReader."""

    def __init__(
        self, admin: KafkaAdmin, group_id: str, connector: Connector, clock: PatientClock, *, timeout_ms: int
    ) -> None:
        self._admin = admin
        self._group_id = group_id
        self._connector = connector
        self._clock = clock
        self._timeout_ms = timeout_ms

    def list_offsets(self, partitions: Iterable[TopicPartition], kind: OffsetKind) -> dict[TopicPartition, int]:
        return self._admin.list_offsets(partitions, kind)

    def partition_racks(self, names: Iterable[str]) -> dict[TopicPartition, frozenset[str]]:
        return self._admin.partition_racks(names)

    def committed(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Over a connection for this question alone: it is asked once in a rebalance, and by one member of the group."""
        line = CoordinatorLine(self._connector, self._clock, self._group_id)
        offsets = OffsetClient(self._group_id, line, self._clock)
        try:
            try:
                found = offsets.committed(partitions, self._timeout_ms)
            except UnstableOffsetError:  # a dead member's transaction: what was committed before it is near enough
                found = offsets.committed(partitions, self._timeout_ms, stable=False)
        finally:
            offsets.close()
        return {partition: committed.offset for partition, committed in found.items()}
