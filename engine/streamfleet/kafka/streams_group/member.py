"""StreamsGroupMember: the step machine behind a membership of a streams group. Phases and their drawing are in phases.py.

Called by one thread. Each `run_once` does one bounded step: it takes what the StreamThread left in the mailbox, moves the request
in hand on, and draws the conclusion from an answer if there is one. No step sleeps or starts a thread; the clock is passed in.
What is said to the coordinator is in client.py, what tasks are is behind the StreamsGroupProtocol.

The broker tells a plan once, in the answer to one heartbeat. If that answer is lost, the next one only says that nothing is new,
and the group would wait for this member in vain: after a heartbeat that had to be sent again, the broker is asked for the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

import structlog

from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.errors import GroupFatalError
from streamfleet.kafka.group_events import Assigned, Fatal, Lost, Rebalancing
from streamfleet.kafka.group_protocol import PlanT, ReportT
from streamfleet.kafka.membership_mailbox import Mailbox
from streamfleet.kafka.patience import PatientClock
from streamfleet.kafka.streams_group.client import StreamsGroupClient
from streamfleet.kafka.streams_group.describe import DescribeAnswer
from streamfleet.kafka.streams_group.heartbeat import JOIN_EPOCH, HeartbeatAnswer
from streamfleet.kafka.streams_group.phases import MEMBER, OVER, StreamsGroupPhase, checked_transition
from streamfleet.kafka.streams_group.protocol import StreamsGroupProtocol
from streamfleet.kafka.streams_group.refusals import refusal
from streamfleet.kafka.streams_group.status_watch import StatusWatch
from streamfleet.kafka.streams_group.values import BrokerTask, EndpointPartitions, TaskSets

log = structlog.get_logger(__name__)

RETRY_PAUSE_MS = 100
"""Before asking again after an answer that may get better by itself."""
LEAVE_PATIENCE_MS = 3_000
"""Leaving is a courtesy: without it the group waits for the session time-out."""
IDLE_MS = 100
LEAST_SESSION_MS = 5_500
"""By how much sessions are longer than heartbeat intervals, at the least: brokers have 45 s and 5 s."""
FIRST_INTERVAL_MS = 5_000
"""The broker's usual heartbeat interval, until it says its own."""

_FENCED = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
_PASSING = frozenset({ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION})

_Phase = StreamsGroupPhase
_Told = tuple[TaskSets, tuple[EndpointPartitions, ...], bool]


class StreamsGroupMember(Generic[ReportT, PlanT]):
    """One member of a streams group, from its first heartbeat to its last."""

    def __init__(
        self,
        client: StreamsGroupClient,
        protocol: StreamsGroupProtocol[ReportT, PlanT],
        mailbox: Mailbox[ReportT, PlanT],
        clock: PatientClock,
        step_wait_ms: int,
    ) -> None:
        self._client = client
        self._protocol = protocol
        self._mailbox = mailbox
        self._clock = clock
        self._wait_ms = step_wait_ms
        self._phase = _Phase.CREATED
        self._epoch = JOIN_EPOCH
        self._target = TaskSets()
        self._endpoints: tuple[EndpointPartitions, ...] = ()
        self._endpoint_epoch = 0
        facts, settings = client.facts, client.settings
        self._statuses = StatusWatch(facts.group_id, settings.missing_source_timeout_ms, clock)
        self._is_unread = False  # a plan may have been told in an answer that was lost
        self._is_fenced = False  # the broker has us still, under an epoch that we do not know
        self._told: _Told | None = None  # the last plan that the StreamThread was given, and not told to be lost
        self._perhaps_run: frozenset[BrokerTask] = (
            frozenset()
        )  # the StreamThread may be about to open them, at any moment
        self._sent_report: ReportT | None = None
        self._interval_ms = FIRST_INTERVAL_MS
        self._heartbeat_at_ms = 0
        self._asked_at_ms = 0  # when the heartbeat was begun whose answer would prove the membership
        self._settling_until_ms = 0
        self._leave_until_ms = 0
        self._steps: dict[StreamsGroupPhase, Callable[[], None]] = {
            _Phase.CREATED: self._created,
            _Phase.JOINING: self._heartbeat,
            _Phase.WAITING: self._heartbeat,
            _Phase.RECONCILING: self._reconcile,
            _Phase.STABLE: self._heartbeat,
            _Phase.LOST: self._wait_to_rejoin,
            _Phase.LEAVING: self._leave,
            _Phase.LEFT: self._rest,
            _Phase.FAILED: self._rest,
        }

    @property
    def phase(self) -> StreamsGroupPhase:
        return self._phase

    leads = False  # the broker plans

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        return self._phase in OVER and not self._client.busy

    def run_once(self) -> int:
        """One bounded step; after how many milliseconds the next one is due."""
        try:
            self._take_wishes()
            self._steps[self._phase]()
        except GroupFatalError as error:
            self._fail(error)
        return self._due_in_ms()

    def _take_wishes(self) -> None:
        if self._mailbox.take_leave() is not None:
            self._begin_leave()
        if self._phase in OVER or self._phase in (_Phase.LEAVING, _Phase.CREATED):
            return
        refused = self._mailbox.take_refused()
        if self._phase is _Phase.LOST:
            return
        if refused is not None:
            # The StreamThread has dropped everything by now, also what the broker still takes for its own.
            self._lose(refused.fact, leave=True)
        elif self._mailbox.silent_for_ms() > self._client.settings.max_poll_interval_ms:
            self._lose(f"the StreamThread did not poll for {self._client.settings.max_poll_interval_ms} ms", leave=True)
        elif self._phase in MEMBER and (reason := self._mailbox.take_rebalance_reason()) is not None:
            # Nobody can make the broker plan again. What the StreamThread has to say goes with the next heartbeat.
            self._mailbox.post(lambda number: Rebalancing(number, reason), asks=True)

    # --- one method per phase ---

    def _created(self) -> None:
        if self._mailbox.report is not None:
            self._go(_Phase.JOINING)

    def _reconcile(self) -> None:
        if self._mailbox.take_acknowledged():
            self._perhaps_run = frozenset()
            self._heartbeat_at_ms = self._clock.now_ms()
            self._go(_Phase.STABLE)
        self._heartbeat()

    def _wait_to_rejoin(self) -> None:
        if self._client.busy:  # the leave of a member that lost its tasks by itself
            self._client.advance(self._wait_ms)
        elif self._mailbox.take_acknowledged():
            self._heartbeat_at_ms = self._clock.now_ms()
            self._go(_Phase.JOINING)

    def _leave(self) -> None:
        if self._client.advance(self._wait_ms) is not None or self._clock.now_ms() >= self._leave_until_ms:
            self._client.close()
            self._go(_Phase.LEFT)

    def _rest(self) -> None:
        if not self._client.busy:
            return
        try:
            answer = self._client.advance(self._wait_ms)
        except GroupFatalError:
            self._client.close()
            return
        if answer is not None or self._clock.now_ms() >= self._leave_until_ms:
            self._client.close()

    # --- heartbeats ---

    def _heartbeat(self) -> None:
        if not self._client.busy:
            if not self._is_due():
                return
            self._begin_heartbeat()
        answer = self._client.advance(self._wait_ms)
        if isinstance(answer, HeartbeatAnswer):
            self._answered(answer)
        elif isinstance(answer, DescribeAnswer):
            self._described(answer)

    def _is_due(self) -> bool:
        """At once if there is something new to tell: others may wait for tasks that were given up here."""
        has_news = self._phase in MEMBER and self._mailbox.report is not self._sent_report
        return has_news or self._clock.now_ms() >= self._heartbeat_at_ms

    def _begin_heartbeat(self) -> None:
        report = self._mailbox.report
        assert report is not None
        self._sent_report = report
        self._asked_at_ms = self._clock.now_ms()
        self._client.begin_heartbeat(
            self._epoch,
            TaskSets() if self._epoch == JOIN_EPOCH else self._owned(report),
            endpoint_epoch=self._endpoint_epoch,
            shutdown=self._protocol.requests_shutdown(report),
            interval_ms=self._interval_ms,
        )

    def _owned(self, report: ReportT) -> TaskSets:
        """What is run, and what plans that were not carried out yet may lead to: the broker gives a task that we do not name to
        others at once.
        """
        owned = self._protocol.owned(report)
        return TaskSets(owned.active | self._perhaps_run, owned.standby, owned.warmup)

    def _answered(self, answer: HeartbeatAnswer) -> None:
        code = answer.code
        self._heartbeat_at_ms = self._clock.now_ms() + RETRY_PAUSE_MS
        if code is ErrorCode.NONE:
            self._heard(answer)
        elif code in _FENCED or (code is ErrorCode.GROUP_ID_NOT_FOUND and self._epoch != JOIN_EPOCH):
            self._lose(f"the heartbeat was answered {code.name}: {answer.message}")
            self._is_fenced = code is ErrorCode.FENCED_MEMBER_EPOCH
        elif code in _PASSING:
            log.warning("heartbeat refused for now", group=self._client.facts.group_id, code=code.name)
        else:
            raise refusal(code, answer.message, self._client.facts.group_id)

    def _heard(self, answer: HeartbeatAnswer) -> None:
        now_ms = self._clock.now_ms()
        self._interval_ms = answer.heartbeat_interval_ms
        if answer.member_epoch != self._epoch or answer.tasks is not None:
            # The members that give tasks up hear of it within one interval, those that get them need one more heartbeat.
            self._settling_until_ms = now_ms + 2 * self._interval_ms
        self._epoch, self._is_fenced = answer.member_epoch, False
        # Session time-outs are longer than heartbeat intervals, and that is all the broker tells of them.
        self._mailbox.confirm(self._asked_at_ms + self._interval_ms)
        self._mailbox.keep_tasks(self._asked_at_ms + self._interval_ms + LEAST_SESSION_MS)
        self._mailbox.renew(self._client.metadata(self._epoch))
        if self._phase is _Phase.JOINING:
            self._go(_Phase.WAITING)
        self._endpoint_epoch = answer.endpoint_epoch
        if answer.endpoints is not None:
            self._endpoints = answer.endpoints
        self._statuses.note(answer.statuses, has_plan=self._told is not None)
        if answer.tasks is not None:
            self._target, self._is_unread = answer.tasks, False
        elif self._is_unread or self._client.was_resent:
            self._is_unread = True
            self._client.begin_describe()
            return
        self._tell_plan()
        self._heartbeat_at_ms = now_ms + self._next_interval_ms()

    def _described(self, answer: DescribeAnswer) -> None:
        """The plan as the broker has it for us. A member that it does not know any more hears so by its next heartbeat."""
        self._heartbeat_at_ms = self._clock.now_ms() + self._next_interval_ms()
        if answer.code is not ErrorCode.NONE:
            log.warning("group could not be described", group=self._client.facts.group_id, code=answer.code.name)
            return
        self._is_unread = False
        for member in answer.members:
            if member.member_id == self._client.facts.member_id and member.member_epoch == self._epoch:
                self._target = member.tasks
                self._tell_plan()

    def _next_interval_ms(self) -> int:
        """A little less than the broker asks for, so that this is surely a member all the time."""
        usual_ms = self._interval_ms * 3 // 4
        is_settling = self._phase is _Phase.WAITING or self._clock.now_ms() < self._settling_until_ms
        return min(usual_ms, self._client.settings.settling_heartbeat_ms) if is_settling else usual_ms

    # --- plans ---

    def _tell_plan(self) -> None:
        shutdown = self._statuses.wants_shutdown
        told = (self._target, self._endpoints, shutdown)
        is_plan = self._told is not None or self._statuses.is_ready or shutdown
        if told == self._told or not is_plan:
            return
        self._told = told
        self._perhaps_run |= self._target.active
        plan = self._protocol.plan(self._target, self._endpoints, shutdown=shutdown)
        metadata = self._client.metadata(self._epoch)
        self._mailbox.post(
            lambda number: Assigned(number, metadata.generation_id, metadata.member_id, plan, follow_up=False),
            asks=True,
            metadata=metadata,
        )
        if self._phase is not _Phase.RECONCILING:
            self._go(_Phase.RECONCILING)

    def _lose(self, reason: str, *, leave: bool = False) -> None:
        """The group goes on without us. Join again at once if the StreamThread has nothing to let go of."""
        self._mailbox.revoke()
        is_perhaps_known = self._is_perhaps_known
        self._client.cancel()
        if leave and is_perhaps_known:
            self._client.begin_leave()
        self._epoch, self._target, self._is_unread, self._is_fenced = JOIN_EPOCH, TaskSets(), False, False
        self._perhaps_run = frozenset()
        self._endpoint_epoch, self._endpoints = 0, ()
        self._statuses.forget()
        log.warning("membership lost", group=self._client.facts.group_id, reason=reason)
        if self._told is None and not leave:
            if self._phase is not _Phase.JOINING:
                self._go(_Phase.JOINING)
            return
        self._told = None
        self._mailbox.post(lambda number: Lost(number, reason), asks=True)
        self._go(_Phase.LOST)

    # --- the end ---

    def _begin_leave(self) -> None:
        if self._phase in OVER or self._phase is _Phase.LEAVING:
            return
        self._mailbox.revoke()
        if self._is_perhaps_known:
            self._client.begin_leave()
            self._leave_until_ms = self._clock.now_ms() + LEAVE_PATIENCE_MS
            self._go(_Phase.LEAVING)
        else:
            self._client.close()
            self._go(_Phase.LEFT)

    def _fail(self, error: GroupFatalError) -> None:
        if self._phase in OVER:
            return
        self._mailbox.revoke()
        log.error("membership failed", group=self._client.facts.group_id, why=str(error))
        is_perhaps_known = self._is_perhaps_known
        self._client.cancel()
        if self._phase is _Phase.LEAVING:
            self._client.close()
            self._go(_Phase.LEFT)
            return
        self._mailbox.post(lambda number: Fatal(number, str(error), error), asks=False)
        self._leave_until_ms = self._clock.now_ms() + LEAVE_PATIENCE_MS
        if is_perhaps_known:
            self._client.begin_leave()
        else:
            self._client.close()
        self._go(_Phase.FAILED)

    # --- small things ---

    @property
    def _is_perhaps_known(self) -> bool:
        """Whether the broker may count on us: also if we have joined, and only the answer is missing."""
        return self._phase in MEMBER or self._client.busy or self._is_fenced

    def _go(self, target: StreamsGroupPhase) -> None:
        self._phase = checked_transition(self._phase, target)
        log.debug("membership moved", group=self._client.facts.group_id, phase=target.value, epoch=self._epoch)

    def _due_in_ms(self) -> int:
        if self._client.busy:
            return 0
        if self._phase in MEMBER or self._phase is _Phase.JOINING:
            if self._is_due():
                return 0
            return max(0, min(IDLE_MS, self._heartbeat_at_ms - self._clock.now_ms()))
        return IDLE_MS
