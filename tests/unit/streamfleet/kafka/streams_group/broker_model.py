"""A broker that plans a streams group, small: epochs, revocation before assignment, plans that are told once; and lost answers.

Behind the Connector port like the scripted coordinator. What it does was seen on Apache Kafka 4.3.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.unit.streamfleet.kafka.scripted_coordinator import HandClock, ScriptedCoordinator

from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.streams_group.describe import DescribeAnswer, DescribedMember
from streamfleet.kafka.streams_group.heartbeat import HeartbeatAnswer
from streamfleet.kafka.streams_group.values import BrokerTask, TaskSets
from streamfleet.kafka.wire import Call

INTERVAL_MS = 1_000


@dataclass
class ModelMember:
    epoch: int
    previous: int = 0
    assigned: frozenset[BrokerTask] = frozenset()
    revoking: frozenset[BrokerTask] = frozenset()
    """Taken away, and not known to be let go of."""


@dataclass
class ModelBroker:
    tasks: int
    epoch: int = 0
    members: dict[str, ModelMember] = field(default_factory=dict)

    def target(self, member_id: str) -> frozenset[BrokerTask]:
        names = sorted(self.members)
        mine = range(names.index(member_id), self.tasks, len(names))
        return frozenset(BrokerTask("0", number) for number in mine)

    def heartbeat(self, request: Any) -> HeartbeatAnswer:
        if request.member_epoch == -1:
            self.members.pop(request.member_id, None)
            self.epoch += 1
            return _answer(-1)
        is_joining = request.member_epoch == 0
        if is_joining:
            self.epoch += 1
            self.members[request.member_id] = ModelMember(self.epoch)
        member = self.members.get(request.member_id)
        if member is None:
            return _answer(0, code=ErrorCode.UNKNOWN_MEMBER_ID)
        owned = frozenset(BrokerTask(row.subtopology_id, p) for row in request.active_tasks for p in row.partitions)
        known = member.assigned | member.revoking
        is_late = request.member_epoch == member.previous and owned <= known
        if not is_joining and request.member_epoch != member.epoch and not is_late:
            return _answer(0, code=ErrorCode.FENCED_MEMBER_EPOCH)
        before = member.assigned
        self._reconcile(request.member_id, member, owned)
        return _answer(member.epoch, TaskSets(member.assigned) if is_joining or member.assigned != before else None)

    def _reconcile(self, member_id: str, member: ModelMember, owned: frozenset[BrokerTask]) -> None:
        if not owned & member.revoking:
            member.revoking = frozenset()
        if member.revoking:
            return
        target = self.target(member_id)
        member.revoking = member.assigned - target
        member.assigned &= target
        if member.revoking & owned:
            return
        member.revoking = frozenset()
        if member.epoch != self.epoch:
            member.previous, member.epoch = member.epoch, self.epoch
        others = [each for name, each in self.members.items() if name != member_id]
        held = {task for each in others for task in each.assigned | each.revoking}
        member.assigned |= target - held

    def describe(self) -> DescribeAnswer:
        rows = tuple(
            DescribedMember(name, member.epoch, "", "", "", TaskSets(member.assigned), TaskSets(self.target(name)))
            for name, member in self.members.items()
        )
        return DescribeAnswer(ErrorCode.NONE, None, "", self.epoch, rows)


def _answer(epoch: int, tasks: TaskSets | None = None, code: ErrorCode = ErrorCode.NONE) -> HeartbeatAnswer:
    return HeartbeatAnswer(code, None, epoch, INTERVAL_MS, (), tasks, 0, None)


class ModelConnector(ScriptedCoordinator):
    """One member's way to the broker. While `loses` is set, requests arrive and answers do not."""

    def __init__(self, broker: ModelBroker, clock: HandClock) -> None:
        super().__init__(clock)
        self._broker = broker
        self.loses = False

    def answer(self, call: Call[Any]) -> Any:
        if call.name not in ("StreamsGroupHeartbeat", "StreamsGroupDescribe"):
            return super().answer(call)
        is_heartbeat = call.name == "StreamsGroupHeartbeat"
        answer = self._broker.heartbeat(call.request) if is_heartbeat else self._broker.describe()
        return ConnectionResetError("lost") if self.loses else answer
