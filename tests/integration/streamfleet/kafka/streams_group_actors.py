"""Who takes part in the tests of streams groups: members that say what they are told to, and real memberships by hand."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.integration.streamfleet.kafka.group_actors import CLOCK, PATIENCE_MS, wait_for

from streamfleet.assignment.broker_plans import BrokerPlans
from streamfleet.assignment.snapshot import MemberReport, Plan, TaskKey
from streamfleet.ids import TopicPartition
from streamfleet.kafka.address import Address
from streamfleet.kafka.connection import Connection, TcpConnector
from streamfleet.kafka.coordinator import CoordinatorLine
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.group_events import Assigned, Event, Fatal, Lost
from streamfleet.kafka.group_messages import ConsumerGroupMetadata
from streamfleet.kafka.membership import Membership
from streamfleet.kafka.offset_messages import CommittedOffset, offset_commit
from streamfleet.kafka.streams_group.client import StreamsGroupClient, StreamsGroupSettings
from streamfleet.kafka.streams_group.describe import DescribeAnswer, describe
from streamfleet.kafka.streams_group.group_settings import set_group_settings
from streamfleet.kafka.streams_group.heartbeat import HeartbeatAnswer, MemberFacts, heartbeat
from streamfleet.kafka.streams_group.membership import streams_group_membership
from streamfleet.kafka.streams_group.topology import GroupSubTopology, GroupTopology, InternalTopicInfo
from streamfleet.kafka.streams_group.values import BrokerTask, TaskSets

SESSION_MS = 2_000
HEARTBEAT_MS = 200


def connector(bootstrap: str) -> TcpConnector:
    return TcpConnector({"bootstrap.servers": bootstrap}, CLOCK, not_needed=())


def counting(topic: str, group: str) -> GroupTopology:
    """Records are moved to another topic by key, and counted there."""
    moved = InternalTopicInfo(f"{group}-moved-repartition", 0, -1, {"cleanup.policy": "delete", "retention.ms": "-1"})
    counts = InternalTopicInfo(f"{group}-counts-changelog", 0, -1, {"cleanup.policy": "compact"})
    first = GroupSubTopology("0", (topic,), (), (moved.name,), (), ())
    return GroupTopology(0, (first, GroupSubTopology("1", (), (moved,), (), (counts,), ())))


class Group:
    """A streams group with short time-outs, seen from outside."""

    def __init__(self, connect: TcpConnector, name: str, **settings: str) -> None:
        self.name = name
        self._line = CoordinatorLine(connect, CLOCK, name)
        dotted = {f"streams.{key.replace('_', '.')}": value for key, value in settings.items()}
        chosen = {"streams.session.timeout.ms": str(SESSION_MS), "streams.heartbeat.interval.ms": str(HEARTBEAT_MS)}
        self.set(chosen | dotted)

    def set(self, settings: Mapping[str, str]) -> None:
        answer = self.ask(set_group_settings(self.name, settings))
        assert answer.code is ErrorCode.NONE, answer

    def describe(self) -> DescribeAnswer:
        answer: DescribeAnswer = self.ask(describe(self.name))
        return answer

    def ask(self, call: Any) -> Any:
        return self._line.ask(call, CLOCK.now_ms() + PATIENCE_MS)

    def close(self) -> None:
        self._line.close()


class RawStreamsMember:
    """Heartbeats when it is told to, runs at once what it is told to run, and draws no other conclusions."""

    def __init__(self, connect: TcpConnector, group: str, topic: str, topology: GroupTopology | None = None) -> None:
        self.group, self.topic = group, topic
        self.facts = MemberFacts(group, uuid.uuid4().hex, uuid.uuid4().hex, topology or counting(topic, group), 10_000)
        self.epoch, self.owned = 0, TaskSets()
        self._line = CoordinatorLine(connect, CLOCK, group)

    def beat(self, **changes: Any) -> HeartbeatAnswer:
        fields = {"member_epoch": self.epoch, "owned": self.owned, **changes}
        answer: HeartbeatAnswer = self.ask(heartbeat(self.facts, **fields))
        if answer.code is ErrorCode.NONE and not changes:
            self.epoch = answer.member_epoch
        return answer

    def follow(self) -> HeartbeatAnswer:
        """Heartbeat, and run what the answer says."""
        answer = self.beat()
        self.owned = answer.tasks or self.owned
        return answer

    def until(self, holds: Callable[[], bool], *others: RawStreamsMember) -> None:
        """All follow the broker until something is so, and what they run was told to it."""

        def round_() -> bool:
            answers = [member.follow() for member in (self, *others)]
            return holds() and all(answer.tasks is None and not answer.statuses for answer in answers)

        wait_for(round_, "the group to settle")

    def partitions(self) -> list[int]:
        """Of the source topic."""
        return sorted(partition for number, partition in self.owned.active if number == "0")

    def metadata(self, **changes: Any) -> ConsumerGroupMetadata:
        return ConsumerGroupMetadata(
            self.group, **{"generation_id": self.epoch, "member_id": self.facts.member_id, **changes}
        )

    def commit(self, partition: int = 0, **changes: Any) -> ErrorCode:
        row = {TopicPartition(self.topic, partition): CommittedOffset(1)}
        code: ErrorCode = self.ask(offset_commit(self.metadata(**changes), row)).code
        return code

    def leave(self) -> ErrorCode:
        return self.beat(member_epoch=-1, owned=None).code

    def ask(self, call: Any) -> Any:
        return self._line.ask(call, CLOCK.now_ms() + PATIENCE_MS)

    def close(self) -> None:
        self._line.close()


class HandStreamsThread:
    """A StreamThread played by hand: it holds exactly the tasks of its plan, and records what happened to it."""

    def __init__(self, connect: Any, group: str, topic: str, name: str, endpoint: str | None = None) -> None:
        self.name, self.topic, self.group = name, topic, group
        topology = counting(topic, group)
        facts = MemberFacts(group, f"{name}-{uuid.uuid4().hex}", name, topology, 10_000)
        facts = replace(facts, endpoint=endpoint and Address.parse(endpoint))
        self.client = StreamsGroupClient(facts, StreamsGroupSettings(settling_heartbeat_ms=20), connect, CLOCK)
        moved = f"{group}-moved-repartition"
        plans = BrokerPlans({0: "move", 1: "count"}, {0: (topic,), 1: (moved,)})
        self.membership: Membership[MemberReport, Plan] = streams_group_membership(
            self.client, plans, CLOCK, step_wait_ms=2
        )
        self.tasks: set[TaskKey] = set()
        self.standby: set[TaskKey] = set()
        self.plans: list[Plan] = []
        self.events: list[Event[Plan]] = []
        self.on_revoke: Callable[[set[TaskKey]], None] = lambda _: None
        self.shuts_down = False
        self.membership.start(self.report())

    def report(self) -> MemberReport:
        return MemberReport(
            process_id=self.name,
            topology_hash="hash",
            sub_topologies=(),
            owned=frozenset(self.tasks),
            standby=frozenset(self.standby),
            shutdown_requested=self.shuts_down,
        )

    def step(self) -> None:
        self.membership.run_once()
        event = self.membership.poll()
        if event is None:
            return
        self.events.append(event)
        if isinstance(event, Assigned):
            self.plans.append(event.plan)
            if revoked := self.tasks - set(event.plan.active):
                self.on_revoke(revoked)
            self.tasks, self.standby = set(event.plan.active), set(event.plan.standby)
        elif isinstance(event, Lost):
            self.tasks, self.standby = set(), set()
        if not isinstance(event, Fatal):
            self.membership.acknowledge(event, self.report())

    def sources(self) -> list[TopicPartition]:
        return [TopicPartition(self.topic, task.partition) for task in sorted(self.tasks) if task.content_id == "move"]

    def leave(self) -> None:
        self.membership.leave("test")
        wait_for(lambda: (self.membership.run_once(), self.membership.over)[1], f"{self.name} to leave")
        self.membership.close()

    def close(self) -> None:
        """As when the process is killed: nothing is said."""
        self.client.close()
        self.membership.close()


class LossyConnector:
    """Implements Connector. While `loses` is set, requests reach the broker and answers are lost with their connection."""

    def __init__(self, connect: TcpConnector) -> None:
        self._connect = connect
        self.bootstrap = connect.bootstrap
        self.loses = False
        self.lost = 0

    def connect(self, address: Address) -> Connection:
        return _LossyConnection(self, self._connect.connect(address))


class _LossyConnection:
    def __init__(self, connector: LossyConnector, connection: Connection) -> None:
        self._connector = connector
        self._connection = connection
        self._name = ""

    def send(self, call: Any) -> None:
        self._name = call.name
        self._connection.send(call)

    def receive(self, wait_ms: int) -> Any | None:
        answer = self._connection.receive(wait_ms)
        if answer is not None and self._connector.loses and self._name == "StreamsGroupHeartbeat":
            self._connector.lost += 1
            raise ConnectionResetError("the answer is lost")
        return answer

    def close(self) -> None:
        self._connection.close()


def settle(*threads: HandStreamsThread, until: Callable[[], bool], seconds: float = 20.0) -> None:
    """Step all of them until something is so, and no task is ever in two places."""

    def round_() -> bool:
        for thread in threads:
            thread.step()
            held = [task for each in threads for task in each.tasks]
            assert len(held) == len(set(held)), f"a task is in two places: {held}"
        return until()

    wait_for(round_, "the group to settle", seconds)


def shared(*threads: HandStreamsThread, tasks: int) -> bool:
    """All tasks are somewhere, evenly, and nothing is under way."""
    counts = [len(thread.tasks) for thread in threads]
    stable = all(thread.membership.phase.value == "stable" for thread in threads)
    return stable and sum(counts) == tasks and max(counts) - min(counts) <= 1


def broker_tasks(number: str, *partitions: int) -> frozenset[BrokerTask]:
    return frozenset(BrokerTask(number, partition) for partition in partitions)
