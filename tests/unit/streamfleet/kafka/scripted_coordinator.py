"""A coordinator that answers by script, behind the Connector port: no sockets, no time but what the test lets pass."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

from streamfleet.kafka.address import Address
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.group_messages import CoordinatorAnswer, JoinAnswer, JoinedMember, PlainAnswer, SyncAnswer
from streamfleet.kafka.wire import Call

COORDINATOR = Address("coordinator", 9092)
SILENCE = object()
"""In a script: no answer to this one, the connection stays open."""


class HandClock:
    """A PatientClock that moves when somebody waits."""

    def __init__(self) -> None:
        self.at_ms = 1_000

    def now_ms(self) -> int:
        return self.at_ms

    def pause_ms(self, milliseconds: int) -> None:
        self.at_ms += milliseconds


class ScriptedCoordinator:
    """Implements Connector. `script("Heartbeat", a, b)` answers the next heartbeats with a, then b; an exception is raised
    instead, as if the connection had broken. What is not in the script gets the last entry of `default`.
    """

    def __init__(self, clock: HandClock) -> None:
        self.clock = clock
        self.calls: list[Call[Any]] = []
        self.connects: list[Address] = []
        self.refuse_connects: deque[Exception] = deque()
        self._script: dict[str, deque[Any]] = defaultdict(deque)
        self._default: dict[str, Any] = {
            "FindCoordinator": CoordinatorAnswer(ErrorCode.NONE, COORDINATOR, None),
            "Heartbeat": PlainAnswer(ErrorCode.NONE),
            "LeaveGroup": PlainAnswer(ErrorCode.NONE),
        }

    @property
    def bootstrap(self) -> tuple[Address, ...]:
        return (Address("one", 1), Address("two", 2))

    def connect(self, address: Address) -> ScriptedConnection:
        if self.refuse_connects:
            raise self.refuse_connects.popleft()
        self.connects.append(address)
        return ScriptedConnection(self)

    def script(self, call_name: str, *answers: Any) -> None:
        self._script[call_name].extend(answers)

    def default(self, call_name: str, answer: Any) -> None:
        self._default[call_name] = answer

    def sent(self, call_name: str) -> list[Any]:
        """The requests of that name, in order."""
        return [call.request for call in self.calls if call.name == call_name]

    def answer(self, call: Call[Any]) -> Any:
        if self._script[call.name]:
            return self._script[call.name].popleft()
        return self._default[call.name]


class ScriptedConnection:
    def __init__(self, coordinator: ScriptedCoordinator) -> None:
        self._coordinator = coordinator
        self._answer: Any = SILENCE
        self._open = True

    def send(self, call: Call[Any]) -> None:
        assert self._open
        self._coordinator.calls.append(call)
        self._answer = self._coordinator.answer(call)

    def receive(self, wait_ms: int) -> Any | None:
        assert self._open
        if self._answer is SILENCE:
            self._coordinator.clock.pause_ms(wait_ms)
            return None
        answer, self._answer = self._answer, SILENCE
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self._open = False


def joined(
    code: ErrorCode = ErrorCode.NONE,
    *,
    generation: int = 1,
    member_id: str = "me",
    leader: str = "me",
    members: dict[str, bytes] | None = None,
    protocol: str | None = "text",
    skip_assignment: bool = False,
) -> JoinAnswer:
    rows = tuple(JoinedMember(name, None, subscription) for name, subscription in sorted((members or {}).items()))
    return JoinAnswer(code, generation, member_id, leader, protocol, skip_assignment, rows)


def synced(assignment: bytes = b"", code: ErrorCode = ErrorCode.NONE) -> SyncAnswer:
    return SyncAnswer(code, assignment)
