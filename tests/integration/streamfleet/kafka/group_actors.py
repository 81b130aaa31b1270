"""Who takes part in the tests of the group client: members that say exactly what they are told to, and members that are
real memberships with a StreamThread played by hand.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import confluent_kafka.admin as ck_admin

from streamfleet.assignment.snapshot import MemberReport, Plan, SubTopologyInfo, TaskKey
from streamfleet.assignment.sticky import StickyTaskAssignor
from streamfleet.assignment.streams_protocol import PROTOCOL_NAME, StreamsProtocol
from streamfleet.ids import TopicPartition
from streamfleet.kafka.connection import TcpConnector
from streamfleet.kafka.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from streamfleet.kafka.coordinator import CoordinatorLine
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.group_client import GroupClient, GroupSettings
from streamfleet.kafka.group_events import Assigned, Event, Fatal, Lost
from streamfleet.kafka.group_messages import (
    ConsumerGroupMetadata,
    CoordinatorKind,
    JoinAnswer,
    heartbeat,
    join_group,
    leave_group,
    sync_group,
)
from streamfleet.kafka.membership import Membership, classic_membership
from streamfleet.kafka.offset_messages import CommittedOffset, offset_commit, offset_fetch
from streamfleet.kafka.patience import MonotonicClock
from streamfleet.kafka.transaction_messages import (
    add_offsets_to_txn,
    end_txn,
    init_producer_id,
    txn_offset_commit,
)
from streamfleet.ports import ProducerIdentity

CLOCK = MonotonicClock()
PATIENCE_MS = 20_000


def unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def create_topic(bootstrap: str, partitions: int = 4) -> str:
    name = unique("group-source")
    admin = ck_admin.AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([ck_admin.NewTopic(name, partitions, 1)])[name].result(30)
    return name


def connector(bootstrap: str, **settings: Any) -> TcpConnector:
    dotted = {key.replace("_", "."): value for key, value in settings.items()}
    return TcpConnector({"bootstrap.servers": bootstrap, **dotted}, CLOCK)


class RawMember:
    """Speaks the protocol call by call and draws no conclusions."""

    def __init__(self, connect: TcpConnector, group: str, topic: str, *, instance: str | None = None) -> None:
        self.group, self.topic, self.instance = group, topic, instance
        self.member_id, self.generation = "", -1
        self.session_timeout_ms, self.rebalance_timeout_ms = 30_000, 10_000
        self._connect = connect
        self._group_line, self._other_line = self._line(), self._line()
        self._answer: Any = None

    def _line(self) -> CoordinatorLine:
        return CoordinatorLine(self._connect, CLOCK, self.group)

    def metadata(self, **changes: Any) -> ConsumerGroupMetadata:
        fields = {"generation_id": self.generation, "member_id": self.member_id, "group_instance_id": self.instance}
        return ConsumerGroupMetadata(self.group, **{**fields, **changes})

    def begin_join(
        self, data: bytes = b"data", *, protocol: str = PROTOCOL_NAME, protocol_type: str = "consumer"
    ) -> None:
        self._group_line.begin(
            join_group(
                self.metadata(),
                protocol=protocol,
                subscription=encode_subscription(Subscription((self.topic,), (), data)),
                session_timeout_ms=self.session_timeout_ms,
                rebalance_timeout_ms=self.rebalance_timeout_ms,
                protocol_type=protocol_type,
            ),
            timeout_ms=PATIENCE_MS,
        )

    def end_join(self) -> JoinAnswer:
        answer = self._ended()
        if answer.code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.member_id = answer.member_id
        if answer.code is ErrorCode.NONE:
            self.generation = answer.generation_id
        return answer

    def join(self, data: bytes = b"data", **others: Any) -> JoinAnswer:
        self.begin_join(data, **others)
        answer = self.end_join()
        if answer.code is ErrorCode.MEMBER_ID_REQUIRED:
            return self.join(data, **others)
        return answer

    def pending(self) -> bool:
        """Send what was begun; whether it has no answer yet."""
        if self._answer is None:
            self._answer = self._group_line.advance(20)
        return self._answer is None

    def begin_sync(self, plans: dict[str, bytes] | None = None) -> None:
        call = sync_group(self.metadata(), protocol=PROTOCOL_NAME, assignments=plans or {})
        self._group_line.begin(call, timeout_ms=PATIENCE_MS)

    def end_sync(self) -> Any:
        return self._ended()

    def sync(self, *members: RawMember, data: bytes = b"data") -> Any:
        """As leader of `members`: all of them get some partition. As follower: without members."""
        self.begin_sync(plan(self.topic, members, data))
        return self._ended()

    def heartbeat(self, **changes: Any) -> ErrorCode:
        return self._ask(heartbeat(self.metadata(**changes))).code

    def leave(self) -> ErrorCode:
        return self._ask(leave_group(self.metadata(), reason="test")).code

    def commit(
        self, offset: int = 7, *, partition: int = 0, meta: str = "", topic: str | None = None, **changes: Any
    ) -> ErrorCode:
        row = {TopicPartition(topic or self.topic, partition): CommittedOffset(offset, meta)}
        return self._ask(offset_commit(self.metadata(**changes), row)).code

    def committed(self, *, require_stable: bool = True) -> tuple[ErrorCode, CommittedOffset | None]:
        partition = TopicPartition(self.topic, 0)
        answer = self._ask(offset_fetch(self.group, [partition], require_stable=require_stable))
        return answer.code, answer.offsets.get(partition)

    def close(self) -> None:
        """The socket closes and nothing is said, as when a process is killed."""
        self._group_line.close()
        self._other_line.close()

    def _ask(self, call: Any) -> Any:
        return self._other_line.ask(call, CLOCK.now_ms() + PATIENCE_MS)

    def _ended(self) -> Any:
        wait_for(lambda: not self.pending(), "an answer on the group line")
        answer, self._answer = self._answer, None
        return answer


class RawTransaction:
    """A producer that only has an id and an epoch."""

    def __init__(self, connect: TcpConnector, member: Any, transactional_id: str | None = None) -> None:
        """`member` has a group, a topic and `metadata()`."""
        self._member = member
        transactional_id = transactional_id or unique("txn")
        self._line = CoordinatorLine(connect, CLOCK, transactional_id, CoordinatorKind.TRANSACTION)
        self._group_line = CoordinatorLine(connect, CLOCK, member.group)
        answer = self._patient(self._line, init_producer_id(transactional_id, transaction_timeout_ms=60_000))
        assert answer.code is ErrorCode.NONE
        self.identity = ProducerIdentity(transactional_id, answer.producer_id, answer.producer_epoch)

    def add_offset(self, offset: int = 9, *, partition: int = 0, **changes: Any) -> ErrorCode:
        added = self._patient(self._line, add_offsets_to_txn(self.identity, self._member.group))
        if added.code is not ErrorCode.NONE:
            return added.code
        row = {TopicPartition(self._member.topic, partition): CommittedOffset(offset, "")}
        call = txn_offset_commit(self.identity, self._member.metadata(**changes), row)
        return self._patient(self._group_line, call).code

    def end(self, *, commit: bool) -> ErrorCode:
        return self._patient(self._line, end_txn(self.identity, commit=commit)).code

    def commit_offset(self, offset: int = 9, **changes: Any) -> ErrorCode:
        """One whole transaction; aborted if the offset is refused."""
        code = self.add_offset(offset, **changes)
        assert self.end(commit=code is ErrorCode.NONE) is ErrorCode.NONE
        return code

    def close(self) -> None:
        self._line.close()
        self._group_line.close()

    def _patient(self, line: CoordinatorLine, call: Any) -> Any:
        def ask() -> Any:
            answer = line.ask(call, CLOCK.now_ms() + PATIENCE_MS)
            return None if answer.code is ErrorCode.CONCURRENT_TRANSACTIONS else answer

        return wait_for(ask, call.name)


def plan(topic: str, members: Sequence[RawMember], data: bytes) -> dict[str, bytes]:
    return {
        member.member_id: encode_assignment(Assignment((TopicPartition(topic, index),), data))
        for index, member in enumerate(members)
    }


def join_together(*members: RawMember) -> list[JoinAnswer]:
    """All of them in one generation, not yet in sync. They come one after the other, and the earlier ones join again."""
    answers: list[JoinAnswer] = []
    for count, newest in enumerate(members, start=1):
        if not newest.member_id and newest.instance is None:
            newest.begin_join()
            newest.end_join()
        for member in (newest, *members[: count - 1]):
            member.begin_join()
            member.pending()
        answers = [member.end_join() for member in members[:count]]
    return answers


def make_stable(*members: RawMember) -> RawMember:
    """All of them with a plan; gives the leader."""
    answers = join_together(*members)
    leader = next(m for m, a in zip(members, answers, strict=True) if a.leader == m.member_id)
    for member in members:
        member.begin_sync(plan(leader.topic, members, b"data") if member is leader else None)
        member.pending()
    assert {member.end_sync().code for member in members} == {ErrorCode.NONE}
    return leader


def wait_for(look: Callable[[], Any], what: str, seconds: float = 20.0) -> Any:
    deadline_ms = CLOCK.now_ms() + int(seconds * 1000)
    while CLOCK.now_ms() < deadline_ms:
        if (found := look()) is not None and found is not False:
            return found
        CLOCK.pause_ms(2)
    raise AssertionError(f"waited {seconds} s in vain for {what}")


class HandThread:
    """A StreamThread played by hand: it holds exactly the tasks of its plan, and records what happened to it."""

    def __init__(
        self, connect: TcpConnector, group: str, topic: str, name: str, *, partitions: int = 4, **settings: Any
    ) -> None:
        self.name, self.topic, self.partitions = name, topic, partitions
        self.transactional_id: str | None = settings.pop("transactional_id", None)
        self.endpoint: str | None = settings.pop("endpoint", None)
        protocol = settings.pop("protocol", None) or StreamsProtocol(assignor=StickyTaskAssignor())
        chosen = {"session_timeout_ms": 10_000, "heartbeat_interval_ms": 100, "follow_up_heartbeat_ms": 20, **settings}
        client = GroupClient(GroupSettings(group, **chosen), connect, CLOCK, protocol=protocol.name)
        self._client = client
        self.membership: Membership[MemberReport, Plan] = classic_membership(client, protocol, CLOCK, step_wait_ms=2)
        self.tasks: set[TaskKey] = set()
        self.plans: list[Assigned[Plan]] = []
        self.events: list[Event[Plan]] = []
        self.on_revoke: Callable[[set[TaskKey]], None] = lambda _: None
        self.membership.start(self.report())

    def report(self) -> MemberReport:
        info = SubTopologyInfo("content", {self.topic: self.partitions}, stateful=True)
        return MemberReport(
            process_id=self.name,
            topology_hash="hash",
            sub_topologies=(info,),
            owned=frozenset(self.tasks),
            transactional_id=self.transactional_id,
            endpoint=self.endpoint,
        )

    def step(self) -> None:
        self.membership.run_once()
        event = self.membership.poll()
        if event is None:
            return
        self.events.append(event)
        if isinstance(event, Assigned):
            self.plans.append(event)
            if revoked := self.tasks - set(event.plan.active):
                self.on_revoke(revoked)
            self.tasks = set(event.plan.active)
        elif isinstance(event, Lost):
            self.tasks = set()
        if not isinstance(event, Fatal):
            self.membership.acknowledge(event, self.report())

    def vanish(self) -> None:
        """As when the process is killed: nothing is said, nothing is stepped any more."""
        self._client.close()
        self.membership.close()

    def leave(self, *, static_too: bool = True) -> None:
        self.membership.leave("test", static_too=static_too)
        wait_for(lambda: (self.membership.run_once(), self.membership.over)[1], f"{self.name} to leave")
        self.membership.close()


def settle(*threads: HandThread, until: Callable[[], bool], seconds: float = 20.0) -> None:
    """Step all of them until something is so, and no task is ever in two places."""

    def round_() -> bool:
        for thread in threads:
            thread.step()
            held = [task for each in threads for task in each.tasks]
            assert len(held) == len(set(held)), f"a task is in two places: {held}"
        return until()

    wait_for(round_, "the group to settle", seconds)


def balanced(*threads: HandThread) -> bool:
    """All tasks are somewhere, evenly, and no follow-up is open."""
    counts = [len(thread.tasks) for thread in threads]
    done = all(thread.plans and not thread.plans[-1].follow_up for thread in threads)
    same = len({thread.plans[-1].generation_id for thread in threads if thread.plans}) == 1
    return done and same and sum(counts) == threads[0].partitions and max(counts) - min(counts) <= 1
