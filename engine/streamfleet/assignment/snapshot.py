"""The values of assignment: what members report, the group as the leader sees it, and what it decides.

Made and read by sticky.py and streams_protocol.py; user_data.py turns reports and plans into bytes. A task is known by
the content id of its sub-topology, not by its number: numbers shift when a topology changes, and members with different
topologies meet in one group during a rolling upgrade.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from streamfleet.ids import TopicPartition


class TaskKey(NamedTuple):
    """One task, by what it is."""

    content_id: str
    partition: int

    def __str__(self) -> str:
        return f"{self.content_id}_{self.partition}"


class SubTopologyInfo(msgspec.Struct, frozen=True):
    """What the assignor has to know about one sub-topology."""

    content_id: str
    sources: Mapping[str, int]
    """Partition counts of its source and repartition topics, by name."""
    stateful: bool

    def tasks(self) -> Iterator[TaskKey]:
        return (TaskKey(self.content_id, partition) for partition in range(max(self.sources.values(), default=0)))

    def partitions_of(self, task: TaskKey) -> Iterator[TopicPartition]:
        """What the task reads; a narrower topic has nothing for the last tasks."""
        return (TopicPartition(topic, task.partition) for topic, n in self.sources.items() if task.partition < n)


class MemberReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one StreamThread tells the group when it joins."""

    process_id: str
    """The same for all threads that share a state directory, also after a restart."""
    topology_hash: str
    sub_topologies: tuple[SubTopologyInfo, ...]
    """All that its topology has: it can run these and no others."""
    owned: frozenset[TaskKey] = frozenset()
    """Active tasks it has not let go of."""
    standby: frozenset[TaskKey] = frozenset()
    offset_sums: Mapping[TaskKey, int] = {}
    """How much of each task's changelogs is on its process's disk."""
    transactional_id: str | None = None
    endpoint: str | None = None
    """Where queries for its state can be sent."""
    tags: Mapping[str, str] = {}
    shutdown_requested: bool = False
    """Asks the whole application to stop."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One member as the leader sees it."""

    member_id: str
    report: MemberReport
    generation_id: int = -1
    """The generation whose plan it holds: of two that claim a task, the later one owns it."""
    promised: frozenset[TaskKey] = frozenset()
    """Tasks the last plan will give it as soon as their old owners have let go."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """All that decides an assignment."""

    members: tuple[Member, ...]
    num_standby_replicas: int = 0
    last_owners: Mapping[TaskKey, str] = {}
    """The transactional id each task was last run under."""


class MemberAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """What one member is to do."""

    active: tuple[TaskKey, ...] = ()
    standby: tuple[TaskKey, ...] = ()
    promised: tuple[TaskKey, ...] = ()
    """Active tasks that follow when their old owners have let go."""
    fence: tuple[str, ...] = ()
    """Transactional ids of dead owners of its new tasks: to be fenced before committed offsets are read."""


class GroupAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """What everybody is to do."""

    members: Mapping[str, MemberAssignment]
    """By member id; every member has an entry."""
    owners: Mapping[TaskKey, str] = {}
    """The `last_owners` of the next snapshot."""
    follow_up: bool = False
    """Some tasks wait for their old owner: assign again when it has let go."""
    unassigned: tuple[TaskKey, ...] = ()
    """Tasks no member can run now: their topology is not here, or another one reads their partitions."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a StreamThread gets with Assigned."""

    active: tuple[TaskKey, ...]
    standby: tuple[TaskKey, ...]
    fence: tuple[str, ...]
    follow_up: bool
    owners: Mapping[TaskKey, str]
    """Transactional id of every task's owner, in the whole group."""
    endpoints: Mapping[str, tuple[TaskKey, ...]]
    """Active tasks by the endpoint that answers queries about them."""
    shutdown: bool
    """Somebody asked the whole application to stop."""
