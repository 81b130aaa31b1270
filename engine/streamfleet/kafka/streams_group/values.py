"""The values of streams groups: tasks as the broker names them, what it says about a group, where queries are answered.

Read from messages by heartbeat.py and describe.py; what they mean to a member is in member.py and status_watch.py.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from streamfleet.ids import TopicPartition
from streamfleet.kafka.address import Address


class BrokerTask(NamedTuple):
    """A task as the broker names it: its sub-topologies have text for ids."""

    sub_topology: str
    partition: int


@dataclass(frozen=True)
class TaskSets:
    """What one member runs, or is to run."""

    active: frozenset[BrokerTask] = frozenset()
    standby: frozenset[BrokerTask] = frozenset()
    warmup: frozenset[BrokerTask] = frozenset()


class GroupStatus(enum.IntEnum):
    """What the broker says about a group beside its tasks. Kafka's names and numbers."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    UNKNOWN = 127
    """Stands for every number this client has no name for."""

    @classmethod
    def _missing_(cls, _value: object) -> GroupStatus:
        return cls.UNKNOWN


class StatusReport(NamedTuple):
    status: GroupStatus
    detail: str


@dataclass(frozen=True)
class EndpointPartitions:
    """Where queries about some input partitions are answered."""

    endpoint: Address
    active: frozenset[TopicPartition]
    standby: frozenset[TopicPartition]


def tasks_of(rows: Iterable[Any] | None) -> frozenset[BrokerTask]:
    """From the task lists of a message."""
    return frozenset(BrokerTask(row.subtopology_id, partition) for row in rows or () for partition in row.partitions)


def task_sets_of(message: Any) -> TaskSets:
    """From a message with three task lists."""
    return TaskSets(tasks_of(message.active_tasks), tasks_of(message.standby_tasks), tasks_of(message.warmup_tasks))
