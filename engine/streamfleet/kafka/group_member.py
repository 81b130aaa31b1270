"""GroupMember: the step machine behind a Membership. Phases and their drawing are in membership_phases.py.

Called by membership.py, by one thread. Each `run_once` does one bounded step: it takes what the StreamThread left in the
mailbox, moves the request in hand on, and draws the conclusion from an answer if there is one. No step sleeps or starts
a thread; the clock is passed in. What is said to the coordinator is in group_client.py, what tasks are is behind the
GroupProtocol.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

import structlog

from streamfleet.errors import StreamsError
from streamfleet.kafka.consumer_protocol import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from streamfleet.kafka.error_codes import ASSIGNMENT_LOST, ErrorCode
from streamfleet.kafka.errors import FencedInstanceError, GroupFatalError, MalformedGroupDataError
from streamfleet.kafka.group_client import GroupClient
from streamfleet.kafka.group_events import Assigned, Fatal, Lost, Rebalancing
from streamfleet.kafka.group_messages import (
    NO_GENERATION,
    ConsumerGroupMetadata,
    JoinAnswer,
    JoinedMember,
    SyncAnswer,
)
from streamfleet.kafka.group_protocol import GroupProtocol, PlanT, ReportT, Subscriber
from streamfleet.kafka.join_refusals import refusal
from streamfleet.kafka.membership_mailbox import LeaveRequest, Mailbox
from streamfleet.kafka.membership_phases import OVER, MembershipPhase, checked_transition
from streamfleet.kafka.patience import PatientClock

log = structlog.get_logger(__name__)

RETRY_PAUSE_MS = 100
"""Before joining again after an answer that may get better by itself."""
LONGEST_RETRY_PAUSE_MS = 5_000
"""... if it does not: the pause is doubled up to this."""
LEAVE_PATIENCE_MS = 3_000
"""Leaving is a courtesy: without it the group waits for the session time-out."""
IDLE_MS = 100
MAX_REASON_LENGTH = 255
"""Brokers cut longer ones."""


class GroupMember(Generic[ReportT, PlanT]):
    """One member of a group, from its first JoinGroup to its last LeaveGroup."""

    def __init__(
        self,
        client: GroupClient,
        protocol: GroupProtocol[ReportT, PlanT],
        mailbox: Mailbox[ReportT, PlanT],
        clock: PatientClock,
        step_wait_ms: int,
    ) -> None:
        self._client = client
        self._protocol = protocol
        self._clock = clock
        self._wait_ms = step_wait_ms
        self._mailbox = mailbox
        self._phase = MembershipPhase.CREATED
        self._member_id = ""
        self._generation_id = NO_GENERATION
        # Not always the same: a generation may end between its JoinGroup and its SyncGroup, and leave no plan.
        self._plan_generation_id = NO_GENERATION
        self.leads = False
        """Whether it planned for the group, as of its last rebalance."""
        self._holds_plan = False  # the StreamThread was given tasks, and not told that they are lost
        self._counter = 0
        self._reason = "start"
        self._joined_with: ReportT | None = None
        self._must_rejoin = False
        self._probe_at_ms: int | None = None
        self._heartbeat_interval_ms = client.settings.heartbeat_interval_ms
        self._heartbeat_at_ms = 0
        self._asked_at_ms = 0  # when the request was begun whose answer would prove the membership
        self._pause_until_ms = 0
        self._refused_joins = 0  # in a row
        self._leave_until_ms = 0
        self._steps: dict[MembershipPhase, Callable[[], None]] = {
            MembershipPhase.CREATED: self._created,
            MembershipPhase.JOINING: self._join,
            MembershipPhase.SYNCING: self._sync,
            MembershipPhase.STABLE: self._keep,
            MembershipPhase.PREPARING: self._prepare,
            MembershipPhase.LOST: self._wait_to_rejoin,
            MembershipPhase.LEAVING: self._leave,
            MembershipPhase.LEFT: self._rest,
            MembershipPhase.FAILED: self._rest,
        }

    @property
    def phase(self) -> MembershipPhase:
        return self._phase

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        return self._phase in OVER and not self._client.heartbeat_busy

    def run_once(self) -> int:
        """One bounded step; after how many milliseconds the next one is due."""
        try:
            self._take_wishes()
            self._steps[self._phase]()
        except GroupFatalError as error:
            self._fail(error)
        return self._due_in_ms()

    def _take_wishes(self) -> None:
        if (leave := self._mailbox.take_leave()) is not None:
            self._begin_leave(leave)
        if self._phase in OVER or self._phase in (MembershipPhase.LEAVING, MembershipPhase.CREATED):
            return
        if isinstance(refused := self._mailbox.take_refused(), FencedInstanceError):
            raise GroupFatalError(refused.fact, hint=refused.hint) from refused
        if self._phase is MembershipPhase.LOST:
            return
        if refused is not None:
            self._lose(refused.fact)
        elif self._mailbox.silent_for_ms() > self._client.settings.max_poll_interval_ms:
            self._give_up()

    # --- one method per phase ---

    def _created(self) -> None:
        if self._mailbox.report is not None:
            self._go(MembershipPhase.JOINING)

    def _join(self) -> None:
        if self._clock.now_ms() < self._pause_until_ms:
            return
        if not self._client.group_busy:
            self._begin_join()
        answer = self._ask_group()
        if isinstance(answer, JoinAnswer):
            self._joined(answer)

    def _sync(self) -> None:
        answer = self._ask_group()
        if isinstance(answer, SyncAnswer):
            self._synced(answer)

    def _ask_group(self) -> JoinAnswer | SyncAnswer | None:
        asked_at_ms = self._clock.now_ms()
        answer = self._client.advance_group(self._wait_ms)
        if answer is None and self._holds_plan and self._client.group_waits:
            # Until the rebalance is answered nothing moves, and then this member has another session to be heard.
            self._mailbox.keep_tasks(asked_at_ms + self._client.settings.session_timeout_ms)
        return answer

    def _keep(self) -> None:
        if self._must_rejoin and self._mailbox.take_acknowledged():
            self._counter += 1
            self._rejoin("tasks were given up and can move on")
        elif (reason := self._mailbox.take_rebalance_reason()) is not None:
            self._counter += 1  # the broker answers a follower that joins with unchanged bytes with the old plan
            self._call_rebalance(reason)
        elif self._probe_at_ms is not None and self._clock.now_ms() >= self._probe_at_ms:
            self._counter += 1
            self._call_rebalance("the plan is due to be looked at again")
        else:
            self._heartbeat()

    def _prepare(self) -> None:
        self._mailbox.take_rebalance_reason()  # one is coming anyway
        if self._mailbox.take_acknowledged():
            self._rejoin(self._reason)
        else:
            self._heartbeat()

    def _wait_to_rejoin(self) -> None:
        if self._client.heartbeat_busy:  # LeaveGroup of a stuck StreamThread's member
            self._client.advance_heartbeat(self._wait_ms)
        elif self._mailbox.take_acknowledged():
            self._go(MembershipPhase.JOINING)

    def _leave(self) -> None:
        if self._client.advance_heartbeat(self._wait_ms) is not None or self._clock.now_ms() >= self._leave_until_ms:
            self._client.close()
            self._go(MembershipPhase.LEFT)

    def _rest(self) -> None:
        if not self._client.heartbeat_busy:
            return
        try:
            answer = self._client.advance_heartbeat(self._wait_ms)
        except GroupFatalError:
            self._client.close()
            return
        if answer is not None or self._clock.now_ms() >= self._leave_until_ms:
            self._client.close()

    # --- joining and syncing ---

    def _begin_join(self) -> None:
        report = self._mailbox.report
        assert report is not None
        subscription = self._protocol.subscribe(report, generation_id=self._plan_generation_id, counter=self._counter)
        self._joined_with = report
        metadata = self._client.metadata(self._member_id, NO_GENERATION)
        self._client.begin_join(metadata, encode_subscription(subscription), self._reason[:MAX_REASON_LENGTH])

    def _joined(self, answer: JoinAnswer) -> None:
        code = answer.code
        if code is ErrorCode.NONE:
            self._begin_sync(answer)
        elif code is ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id  # join again under it, at the next step
        elif code in ASSIGNMENT_LOST:
            self._member_id = ""
            self._lose(f"JoinGroup was answered {code.name}")
        elif code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.REQUEST_TIMED_OUT):
            self._on_join_refused(code)
        else:
            raise refusal(code, self._client.settings)

    def _on_join_refused(self, code: ErrorCode) -> None:
        """For now; said once, since a group that a stranger's bytes have wedged answers so for ever."""
        say = log.debug if self._refused_joins else log.warning
        say(
            "join refused for now",
            group=self._client.settings.group_id,
            code=code.name,
            hint="if it lasts, look at the broker's log, and for other clients that use the application id as their group id",
        )
        pause_ms = min(RETRY_PAUSE_MS * 2 ** min(self._refused_joins, 16), LONGEST_RETRY_PAUSE_MS)
        self._refused_joins += 1
        self._pause_until_ms = self._clock.now_ms() + pause_ms

    def _begin_sync(self, answer: JoinAnswer) -> None:
        if answer.protocol_name != self._protocol.name:
            raise GroupFatalError(
                f"group {self._client.settings.group_id} speaks {answer.protocol_name!r}, not {self._protocol.name!r}",
                hint="another kind of client uses the application id as its group id: stop it, or rename the app",
            )
        self._refused_joins = 0
        self._member_id, self._generation_id = answer.member_id, answer.generation_id
        self.leads = answer.leader == answer.member_id
        assignments = self._assignments(answer.members) if self.leads and not answer.skip_assignment else {}
        self._asked_at_ms = self._clock.now_ms()
        self._client.begin_sync(self._current(), assignments)
        self._go(MembershipPhase.SYNCING)

    def _assignments(self, members: tuple[JoinedMember, ...]) -> dict[str, bytes]:
        try:
            plans = self._protocol.assign([_subscriber(member) for member in members])
            return {member.member_id: encode_assignment(plans[member.member_id]) for member in members}
        except Exception as error:
            raise GroupFatalError(
                f"this member leads the group and could not assign its tasks: {error}",
                hint=None if isinstance(error, StreamsError) else "this is a defect",
            ) from error

    def _synced(self, answer: SyncAnswer) -> None:
        code = answer.code
        if code is ErrorCode.NONE and answer.assignment:
            self._accept(answer.assignment)
        elif code is ErrorCode.NONE or code is ErrorCode.REBALANCE_IN_PROGRESS:
            # No bytes: this static member replaced its predecessor after the leader had made its plan.
            self._counter += code is ErrorCode.NONE
            self._go(MembershipPhase.JOINING)
        elif code in ASSIGNMENT_LOST:
            self._lose_by(code, "SyncGroup")
        else:
            raise refusal(code, self._client.settings)

    def _accept(self, assignment: bytes) -> None:
        assert self._joined_with is not None
        received = self._protocol.receive(self._joined_with, decode_assignment(assignment))
        if received.refusal is not None:
            raise GroupFatalError(received.refusal, hint="see the log of the group's leader")
        self._must_rejoin, self._holds_plan = received.must_rejoin, True
        self._plan_generation_id = self._generation_id
        settings, metadata = self._client.settings, self._current()
        self._heartbeat_interval_ms = (
            settings.follow_up_heartbeat_ms if received.follow_up else settings.heartbeat_interval_ms
        )
        now_ms = self._clock.now_ms()
        self._heartbeat_at_ms = now_ms + self._heartbeat_interval_ms
        self._probe_at_ms = None if received.next_probe_ms is None else now_ms + received.next_probe_ms
        self._confirm()
        self._mailbox.post(
            lambda number: Assigned(
                number, metadata.generation_id, metadata.member_id, received.plan, received.follow_up
            ),
            asks=received.must_rejoin,
            metadata=metadata,
        )
        self._go(MembershipPhase.STABLE)

    # --- being a member ---

    def _heartbeat(self) -> None:
        if not self._client.heartbeat_busy:
            if self._clock.now_ms() < self._heartbeat_at_ms:
                return
            self._asked_at_ms = self._clock.now_ms()
            self._client.begin_heartbeat(self._current())
        answer = self._client.advance_heartbeat(self._wait_ms)
        if answer is None:
            return
        self._heartbeat_at_ms = self._clock.now_ms() + self._heartbeat_interval_ms
        if answer.code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            self._confirm()
        if answer.code is ErrorCode.REBALANCE_IN_PROGRESS and self._phase is MembershipPhase.STABLE:
            self._call_rebalance("the group rebalances")
        elif answer.code in ASSIGNMENT_LOST:
            self._lose_by(answer.code, "Heartbeat")
        elif answer.code not in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            raise refusal(answer.code, self._client.settings)

    def _confirm(self) -> None:
        until_ms = self._asked_at_ms + self._client.settings.session_timeout_ms
        self._mailbox.confirm(until_ms)
        self._mailbox.keep_tasks(until_ms)

    def _call_rebalance(self, reason: str) -> None:
        self._reason = reason
        self._mailbox.post(lambda number: Rebalancing(number, reason), asks=True)
        self._go(MembershipPhase.PREPARING)

    def _rejoin(self, reason: str) -> None:
        # A heartbeat on its way would be answered with an error about the generation that ends now.
        self._client.cancel_heartbeat()
        self._reason = reason
        self._must_rejoin = False
        self._go(MembershipPhase.JOINING)

    def _lose_by(self, code: ErrorCode, call: str) -> None:
        if code is not ErrorCode.ILLEGAL_GENERATION:
            self._member_id = ""
        self._lose(f"{call} was answered {code.name}")

    def _lose(self, reason: str) -> None:
        """The group went on without us. Rejoin at once if the StreamThread has nothing to let go of."""
        self._mailbox.revoke()
        self._client.cancel_group()
        self._client.cancel_heartbeat()
        self._generation_id = self._plan_generation_id = NO_GENERATION
        self._must_rejoin, self._reason = False, reason
        if not self._holds_plan:
            self._pause_until_ms = self._clock.now_ms() + RETRY_PAUSE_MS
            if self._phase is not MembershipPhase.JOINING:
                self._go(MembershipPhase.JOINING)
            return
        self._holds_plan = False
        self._mailbox.post(lambda number: Lost(number, reason), asks=True)
        self._go(MembershipPhase.LOST)

    def _give_up(self) -> None:
        """The StreamThread is stuck: let others have its tasks. A static member just falls silent, like one that died."""
        reason = f"the StreamThread did not poll for {self._client.settings.max_poll_interval_ms} ms"
        leaving, self._holds_plan = self._current(), True
        self._lose(reason)
        if leaving.member_id and leaving.group_instance_id is None:
            self._member_id = ""
            self._client.begin_leave(leaving, reason)

    # --- the end ---

    def _begin_leave(self, request: LeaveRequest) -> None:
        if self._phase in OVER or self._phase is MembershipPhase.LEAVING:
            return
        self._mailbox.revoke()
        self._client.cancel_group()
        if self._member_id and (request.static_too or self._client.settings.group_instance_id is None):
            self._client.begin_leave(self._current(), request.reason)
            self._leave_until_ms = self._clock.now_ms() + LEAVE_PATIENCE_MS
            self._go(MembershipPhase.LEAVING)
        else:
            self._client.close()
            self._go(MembershipPhase.LEFT)

    def _fail(self, error: GroupFatalError) -> None:
        if self._phase in OVER:
            return
        self._mailbox.revoke()
        log.error("membership failed", group=self._client.settings.group_id, member=self._member_id, why=str(error))
        self._client.cancel_group()
        self._client.cancel_heartbeat()
        if self._phase is MembershipPhase.LEAVING:
            self._client.close()
            self._go(MembershipPhase.LEFT)
            return
        self._mailbox.post(lambda number: Fatal(number, str(error), error), asks=False)
        self._leave_until_ms = self._clock.now_ms() + LEAVE_PATIENCE_MS
        if self._member_id and self._client.settings.group_instance_id is None:
            self._client.begin_leave(self._current(), "failed")
        else:
            self._client.close()
        self._go(MembershipPhase.FAILED)

    # --- small things ---

    def _current(self) -> ConsumerGroupMetadata:
        return self._client.metadata(self._member_id, self._generation_id)

    def _go(self, target: MembershipPhase) -> None:
        self._phase = checked_transition(self._phase, target)
        log.debug(
            "membership moved",
            group=self._client.settings.group_id,
            phase=target.value,
            generation=self._generation_id,
            reason=self._reason,
        )

    def _due_in_ms(self) -> int:
        now_ms = self._clock.now_ms()
        if self._client.heartbeat_busy or self._client.group_busy or self._phase is MembershipPhase.SYNCING:
            return 0
        if self._phase is MembershipPhase.JOINING:
            return max(0, self._pause_until_ms - now_ms)
        if self._phase in (MembershipPhase.STABLE, MembershipPhase.PREPARING):
            return max(0, min(IDLE_MS, self._heartbeat_at_ms - now_ms))
        return IDLE_MS


def _subscriber(member: JoinedMember) -> Subscriber:
    try:
        subscription = decode_subscription(member.subscription)
    except MalformedGroupDataError as error:
        # One unreadable member must not stop the others: without user data the assignor refuses it.
        log.warning("member cannot be read", member=member.member_id, why=str(error))
        subscription = Subscription((), (), b"")
    return Subscriber(member.member_id, member.group_instance_id, subscription)
