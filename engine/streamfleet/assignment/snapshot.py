"""The values of assignment: what members report, the group as the leader sees it, and what it decides.

Made and read by the assignors and streams_protocol.py; user_data.py turns reports and plans into bytes. A task is known by
the content id of its sub-topology, not by its number: numbers shift when a topology changes, and members with different
topologies meet in one group during a rolling upgrade.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

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
    changelogs: tuple[str, ...] = ()
    """Topics its stores can be restored from; a task's part of each has the task's partition number."""

    def tasks(self) -> Iterator[TaskKey]:
        return (TaskKey(self.content_id, partition) for partition in range(max(self.sources.values(), default=0)))

    def partitions_of(self, task: TaskKey) -> Iterator[TopicPartition]:
        """What the task reads; a narrower topic has nothing for the last tasks."""
        return (TopicPartition(topic, task.partition) for topic, n in self.sources.items() if task.partition < n)

    def changelogs_of(self, task: TaskKey) -> Iterator[TopicPartition]:
        """What its state can be restored from. A source that is its table's changelog may be narrower, too."""
        return (
            TopicPartition(topic, task.partition)
            for topic in self.changelogs
            if task.partition < self.sources.get(topic, task.partition + 1)
        )


class MemberReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one StreamThread tells the group when it joins."""

    process_id: str
    """The same for all threads that share a state directory, also after a restart."""
    topology_hash: str
    sub_topologies: tuple[SubTopologyInfo, ...]
    """All that its topology has: it can run these and no others."""
    owned: frozenset[TaskKey] = frozenset()
    """Active tasks it has not let go of."""
    restoring: frozenset[TaskKey] = frozenset()
    """Those of them that do not run yet: how far they are is in `offset_sums`. The others are as far as one can be."""
    standby: frozenset[TaskKey] = frozenset()
    """Standby and warm-up tasks it runs."""
    offset_sums: Mapping[TaskKey, int] = {}
    """How far each task's state on its process's disk is, whether the task is open or not: the sum over its changelogs of the
    next offset to be applied."""
    transactional_id: str | None = None
    endpoint: str | None = None
    """Where queries for its state can be sent."""
    tags: Mapping[str, str] = {}
    """What sets its process apart from others, such as its zone: copies of state are spread over different values."""
    rack: str | None = None
    """Where its process is, in the words of the brokers' own racks."""
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
    previous: frozenset[TaskKey] = frozenset()
    """Tasks its last plan gave it, before it lost them or was stopped: its own, as long as nobody else has them."""
    previous_standby: frozenset[TaskKey] = frozenset()
    """Standbys its last plan gave it, and it does not run."""
    peers: tuple[str, ...] = ()
    """Transactional ids of others that ran tasks by its last plan: for a leader that has not seen that plan."""


class AssignorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What an app's configuration says about assignment: the leader's decides. See StreamsConfig for what each means."""

    num_standby_replicas: int = 0
    acceptable_recovery_lag: int = 10_000
    max_warmup_replicas: int = 2
    probing_interval_ms: int = 600_000
    rack_aware_strategy: Literal["none", "min_traffic", "balance_subtopology"] = "none"
    rack_aware_tags: tuple[str, ...] = ()
    rack_aware_traffic_cost: int | None = None
    """None: as the assignor sees fit."""
    rack_aware_non_overlap_cost: int | None = None

    def rack_costs(self, traffic: int, non_overlap: int) -> tuple[int, int]:
        """What traffic between racks and a move cost, with an assignor's own ideas where the app has none."""
        chosen_traffic, chosen_non_overlap = self.rack_aware_traffic_cost, self.rack_aware_non_overlap_cost
        return (
            traffic if chosen_traffic is None else chosen_traffic,
            non_overlap if chosen_non_overlap is None else chosen_non_overlap,
        )


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """All that decides an assignment."""

    members: tuple[Member, ...]
    settings: AssignorSettings = AssignorSettings()
    last_owners: Mapping[TaskKey, str] = {}
    """The transactional id each task was last run under."""
    end_offset_sums: Mapping[TaskKey, int] | None = {}
    """How far the state of each stateful task could be: the sum of its changelogs' end offsets. None: nobody could say."""
    partition_racks: Mapping[TopicPartition, frozenset[str]] = {}
    """Racks that have a replica of an input or changelog partition; asked for only if assignment is rack aware."""


class MemberAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """What one member is to do."""

    active: tuple[TaskKey, ...] = ()
    standby: tuple[TaskKey, ...] = ()
    warmup: tuple[TaskKey, ...] = ()
    """Run like standbys, and none of them, until they are ready to be active here."""
    promised: tuple[TaskKey, ...] = ()
    """Active tasks that follow when their old owners have let go."""
    fence: tuple[str, ...] = ()
    """Transactional ids of dead owners of its new tasks: to be fenced before committed offsets are read."""
    next_probe_ms: int | None = None
    """After which this member asks for the next rebalance, to see whether warm-ups are ready; None: it does not."""


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
    warmup: tuple[TaskKey, ...] = ()
    """Tasks that will be active here, or a standby that replaces another one, when they are ready: run like standbys, and none
    of those in `standby`."""
    fence: tuple[str, ...]
    follow_up: bool
    owners: Mapping[TaskKey, str]
    """Transactional id of every task's owner, in the whole group."""
    endpoints: Mapping[str, tuple[TaskKey, ...]]
    """Active tasks by the endpoint that answers queries about them."""
    standby_endpoints: Mapping[str, tuple[TaskKey, ...]] = {}
    """Standby tasks (warm-ups are not told) by the endpoint that answers, from state that may be late."""
    next_probe_ms: int | None = None
    """After which this member's membership asks for a rebalance by itself; None: another one does, or none is needed."""
    shutdown: bool
    """Somebody asked the whole application to stop."""
