"""StreamsProtocol: reports, assignor and plans put together, as the port that a membership calls.

Made once per StreamThread. Remembers three things of its last plan: under which transactional id each task of the group is
run, so that whoever becomes leader knows whom a new owner has to fence (one that has only just joined hears of some of those ids in
the others' reports); which tasks were promised to it, which it tells in its
next report, so that a follow-up goes on with the move that was begun; and which tasks it was given, over a restart too
(slot_memory.py), so that it gets them back if nobody else has them.

Two traps of static members are closed here. A restarted one gets the plan of its predecessor without a rebalance, so
- if what it has to say has changed (`digest`), it must rejoin, or the leader would never learn it;
- what that plan says about the moment (whom to fence, that a follow-up is near) is no longer true (`incarnation`).
"""

from __future__ import annotations

import hashlib
import secrets
from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import structlog

from streamfleet.assignment import user_data
from streamfleet.assignment.cluster_facts import ClusterFacts, cluster_facts
from streamfleet.assignment.directory import encode_directory
from streamfleet.assignment.group_assignment import assign
from streamfleet.assignment.high_availability import HighAvailabilityTaskAssignor
from streamfleet.assignment.slot_memory import SlotMemory, SlotTasks
from streamfleet.assignment.snapshot import (
    AssignorSettings,
    GroupAssignment,
    Member,
    MemberReport,
    Plan,
    Snapshot,
    SubTopologyInfo,
    TaskKey,
)
from streamfleet.assignment.task_assignor import TaskAssignor
from streamfleet.assignment.user_data import ReceivedReport
from streamfleet.ids import TopicPartition
from streamfleet.kafka.consumer_protocol import Assignment, Subscription
from streamfleet.kafka.errors import MalformedGroupDataError
from streamfleet.kafka.group_protocol import Received, Subscriber
from streamfleet.ports import ClusterReader

log = structlog.get_logger(__name__)

PROTOCOL_NAME = "streamfleet-1"
MOST_PEERS = 32
"""Told by each member. An id that all of so many have forgotten, or died with, is fenced by nobody: its transaction times out."""


class StreamsProtocol:
    """Implements streamfleet.kafka.group_protocol.GroupProtocol[MemberReport, Plan]."""

    def __init__(
        self,
        incarnation: str | None = None,
        *,
        settings: AssignorSettings | None = None,
        assignor: TaskAssignor | None = None,
        cluster: ClusterReader | None = None,
        memory: SlotMemory | None = None,
    ) -> None:
        """`incarnation` is another one at every start of the process; None: a random one. `cluster` is asked when this member leads
        the group; None: tasks are assigned without knowing how far their state is.
        """
        self._incarnation = incarnation or secrets.token_hex(8)
        self._settings = settings or AssignorSettings()
        self._assignor = assignor or HighAvailabilityTaskAssignor()
        self._cluster = cluster
        self._owners: Mapping[TaskKey, str] = {}
        self._holds_plan = False
        """False: the group may have gone on without this member, and tasks have had other owners since."""
        self._promised: tuple[TaskKey, ...] = ()
        self._memory = memory
        self._given = SlotTasks() if memory is None else memory.load()

    @property
    def name(self) -> str:
        return PROTOCOL_NAME

    def subscribe(self, report: MemberReport, *, generation_id: int, counter: int) -> Subscription:
        infos = {info.content_id: info for info in report.sub_topologies}
        self._holds_plan = generation_id >= 0
        return Subscription(
            topics=tuple(sorted({topic for info in report.sub_topologies for topic in info.sources})),
            owned_partitions=_partitions(infos, report.owned),
            user_data=user_data.encode_report(
                report,
                generation_id=generation_id,
                counter=counter,
                digest=digest(report),
                incarnation=self._incarnation,
                promised=self._promised,
                previous=self._given.active - report.owned,
                previous_standby=self._given.standby - report.standby,
                peers=_peers(self._owners.values(), report.transactional_id),
            ),
        )

    def assign(self, subscribers: Sequence[Subscriber]) -> dict[str, Assignment]:
        received: dict[str, ReceivedReport] = {}
        plans: dict[str, Assignment] = {}
        for subscriber in subscribers:
            try:
                report = user_data.decode_report(subscriber.member_id, subscriber.subscription.user_data)
            except MalformedGroupDataError as error:
                log.warning("member refused", member=subscriber.member_id, why=str(error))
                plans[subscriber.member_id] = Assignment((), user_data.encode_refusal(f"the leader refused: {error}"))
            else:
                received[subscriber.member_id] = report
        members = tuple(report.member for report in received.values())
        facts = ClusterFacts() if self._cluster is None else cluster_facts(self._cluster, members, self._settings)
        snapshot = Snapshot(
            members=members,
            settings=self._settings,
            last_owners=self._owners if self._holds_plan else {},
            end_offset_sums=facts.end_offset_sums,
            partition_racks=facts.partition_racks,
        )
        decided = assign(snapshot, self._assignor)
        if decided.unassigned:
            log.warning("tasks left out while topologies differ", tasks=[str(task) for task in decided.unassigned])
        shared = _shared(decided, members)
        directory = encode_directory(shared)
        for member_id, report in received.items():
            plans[member_id] = _assignment(report, decided, shared, directory)
        return plans

    def receive(self, report: MemberReport, assignment: Assignment) -> Received[Plan]:
        got = user_data.decode_plan(assignment.user_data)
        plan = got.plan
        if got.refusal is None:
            self._owners, self._promised = plan.owners, got.promised
            self._given = SlotTasks(frozenset(plan.active), frozenset(plan.standby))
            if self._memory is not None:
                self._memory.save(self._given)
        if got.seen_incarnation != self._incarnation:
            plan = msgspec.structs.replace(plan, fence=(), follow_up=False)
        revokes = bool(report.owned - set(plan.active))
        return Received(
            plan,
            follow_up=plan.follow_up,
            must_rejoin=(revokes and plan.follow_up) or got.seen_digest != digest(report),
            next_probe_ms=plan.next_probe_ms,
            refusal=got.refusal,
        )


def _peers(owners: Iterable[str], own: str | None) -> tuple[str, ...]:
    """The next ones behind this member, in the order of the ids and round its end: each id is remembered by as many members."""
    others = sorted(set(owners) - {own})
    behind = bisect(others, own or "")
    return tuple([*others[behind:], *others[:behind]][:MOST_PEERS])


def digest(report: MemberReport) -> str:
    """Names what a member has to say apart from the state of the moment."""
    lasting = (
        report.process_id,
        report.topology_hash,
        sorted((info.content_id, sorted(info.sources.items()), info.stateful) for info in report.sub_topologies),
        report.transactional_id,
        report.endpoint,
        sorted(report.tags.items()),
        report.rack,
        report.shutdown_requested,
    )
    return hashlib.sha256(msgspec.msgpack.encode(lasting)).hexdigest()[:16]


def _shared(decided: GroupAssignment, members: Sequence[Member]) -> Plan:
    """The part of the plan that is the same for everybody."""
    endpoints: dict[str, list[TaskKey]] = {}
    standby_endpoints: dict[str, list[TaskKey]] = {}
    for member in members:
        if (endpoint := member.report.endpoint) is not None:
            endpoints.setdefault(endpoint, []).extend(decided.members[member.member_id].active)
            standby_endpoints.setdefault(endpoint, []).extend(decided.members[member.member_id].standby)
    return Plan(
        active=(),
        standby=(),
        fence=(),
        follow_up=decided.follow_up,
        owners=decided.owners,
        endpoints={endpoint: tuple(sorted(tasks)) for endpoint, tasks in endpoints.items()},
        standby_endpoints={endpoint: tuple(sorted(tasks)) for endpoint, tasks in standby_endpoints.items() if tasks},
        shutdown=any(member.report.shutdown_requested for member in members),
    )


def _assignment(received: ReceivedReport, decided: GroupAssignment, shared: Plan, directory: bytes) -> Assignment:
    own = decided.members[received.member.member_id]
    plan = msgspec.structs.replace(
        shared,
        active=own.active,
        standby=own.standby,
        warmup=own.warmup,
        fence=own.fence,
        next_probe_ms=own.next_probe_ms,
    )
    infos = {info.content_id: info for info in received.member.report.sub_topologies}
    told = user_data.encode_plan(plan, seen=received, promised=own.promised, directory=directory)
    return Assignment(_partitions(infos, own.active), told)


def _partitions(infos: Mapping[str, SubTopologyInfo], tasks: Iterable[TaskKey]) -> tuple[TopicPartition, ...]:
    """What the tasks read, for Kafka's tools to show."""
    read = {p for task in tasks if task.content_id in infos for p in infos[task.content_id].partitions_of(task)}
    return tuple(sorted(read))
