"""Members of streams groups against a scripted coordinator: what they say, what they tell their StreamThread, in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.unit.streamfleet.kafka.scripted_coordinator import SILENCE, HandClock, ScriptedCoordinator

from streamfleet.ids import TopicPartition
from streamfleet.kafka.address import Address
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.errors import (
    AuthorizationError,
    CommitDeferredError,
    GroupFatalError,
    GroupTopicsError,
    TaskMigratedError,
    TopologyRefusedError,
    UnsupportedBrokerError,
)
from streamfleet.kafka.group_events import Assigned, Fatal, Lost, Rebalancing
from streamfleet.kafka.group_messages import PlainAnswer
from streamfleet.kafka.membership import Membership
from streamfleet.kafka.offset_messages import CommittedOffset, PartitionCodes
from streamfleet.kafka.streams_group.client import StreamsGroupClient, StreamsGroupSettings
from streamfleet.kafka.streams_group.describe import DescribeAnswer, DescribedMember
from streamfleet.kafka.streams_group.heartbeat import HeartbeatAnswer, MemberFacts
from streamfleet.kafka.streams_group.membership import streams_group_membership
from streamfleet.kafka.streams_group.phases import StreamsGroupPhase
from streamfleet.kafka.streams_group.topology import GroupTopology
from streamfleet.kafka.streams_group.values import (
    BrokerTask,
    EndpointPartitions,
    GroupStatus,
    StatusReport,
    TaskSets,
)
from streamfleet.ports import ProducerIdentity

P0 = TopicPartition("t", 0)
OFFSETS = {P0: CommittedOffset(7)}
INTERVAL_MS = 5_000
T0, T1, T2 = (BrokerTask("0", partition) for partition in range(3))
PRODUCER = ProducerIdentity("txn", 1, 0)


def active(*tasks: BrokerTask) -> TaskSets:
    return TaskSets(frozenset(tasks))


def beat(epoch: int = 1, tasks: TaskSets | None = None, *statuses: StatusReport, **more) -> HeartbeatAnswer:
    fields = {"code": ErrorCode.NONE, "message": None, "endpoint_epoch": 0, "endpoints": None}
    return HeartbeatAnswer(
        member_epoch=epoch, heartbeat_interval_ms=INTERVAL_MS, statuses=statuses, tasks=tasks, **{**fields, **more}
    )


def refused(code: ErrorCode, message: str | None = None) -> HeartbeatAnswer:
    return beat(0, code=code, message=message)


def status(status: GroupStatus) -> StatusReport:
    return StatusReport(status, f"about {status.name}.")


def committed(code: ErrorCode) -> PartitionCodes:
    return PartitionCodes({P0: code})


class SetProtocol:
    """Reports are the owned tasks and whether to shut down; plans are told as they come."""

    def owned(self, report: tuple[TaskSets, bool]) -> TaskSets:
        return report[0]

    def requests_shutdown(self, report: tuple[TaskSets, bool]) -> bool:
        return report[1]

    def plan(self, tasks: TaskSets, endpoints: Sequence[EndpointPartitions], *, shutdown: bool):
        return tasks, tuple(endpoints), shutdown


class Stage:
    """One membership, its coordinator, and its StreamThread's side."""

    def __init__(self, **settings) -> None:
        self.clock = HandClock()
        self.broker = ScriptedCoordinator(self.clock)
        self.broker.default("StreamsGroupHeartbeat", beat())
        self.broker.default("OffsetCommit", committed(ErrorCode.NONE))
        facts = MemberFacts("app", "me", "process", GroupTopology(0, ()), 60_000, Address("here", 1), None, {"z": "a"})
        chosen = StreamsGroupSettings(**{"max_poll_interval_ms": 60_000, **settings})
        client = StreamsGroupClient(facts, chosen, self.broker, self.clock)
        self.membership: Membership = streams_group_membership(client, SetProtocol(), self.clock, step_wait_ms=5)

    def script(self, *answers: object) -> None:
        """The next answers; after them nothing is new."""
        self.broker.script("StreamsGroupHeartbeat", *answers)
        if isinstance(answers[-1], HeartbeatAnswer) and answers[-1].code is ErrorCode.NONE:
            self.broker.default("StreamsGroupHeartbeat", beat(answers[-1].member_epoch))

    def beats(self) -> list:
        return self.broker.sent("StreamsGroupHeartbeat")

    def steps(self, count: int = 6) -> None:
        for _ in range(count):
            self.clock.pause_ms(self.membership.run_once())

    def pass_time(self, milliseconds: int, *, polling: bool = True) -> None:
        until = self.clock.now_ms() + milliseconds
        while self.clock.now_ms() < until:
            if polling:
                assert self.membership.poll() is None
            self.clock.pause_ms(max(1, min(self.membership.run_once(), until - self.clock.now_ms())))

    def next_event(self, limit_ms: int = 20_000):
        until = self.clock.now_ms() + limit_ms
        while self.clock.now_ms() < until:
            if (event := self.membership.poll()) is not None:
                return event
            self.clock.pause_ms(max(1, self.membership.run_once()))
        raise AssertionError(f"no event in phase {self.membership.phase}")

    def acknowledge(self, event, *tasks: BrokerTask, shutdown: bool = False) -> None:
        self.membership.acknowledge(event, (active(*tasks), shutdown))

    def stable(self, *tasks: BrokerTask, epoch: int = 1) -> None:
        """A member that runs these tasks, with its plan carried out and told."""
        self.membership.start((TaskSets(), False))
        self.script(beat(epoch, active(*tasks)))
        self.acknowledge(self.next_event(), *tasks)
        self.steps()
        assert self.membership.phase is StreamsGroupPhase.STABLE
        self.clock.pause_ms(3 * INTERVAL_MS)  # nothing is changing any more
        self.steps()


def owned_in(request) -> set[BrokerTask]:
    return {BrokerTask(row.subtopology_id, p) for row in request.active_tasks for p in row.partitions}


@pytest.fixture
def stage():
    return Stage()


# --- being sure of it ---


def test_a_member_is_sure_of_its_place_for_some_intervals_after_the_broker_has_heard_it(stage):
    assert not stage.membership.is_surely_member
    stage.stable(T0)
    assert stage.membership.is_surely_member
    stage.pass_time(4 * INTERVAL_MS)
    assert stage.membership.is_surely_member
    stage.clock.pause_ms(3 * INTERVAL_MS)  # the process stands still, and nobody looks at the clock
    assert not stage.membership.is_surely_member
    stage.steps()
    assert stage.membership.is_surely_member


def test_who_was_fenced_or_leaves_is_sure_no_more(stage):
    stage.stable(T0)
    stage.script(refused(ErrorCode.FENCED_MEMBER_EPOCH))
    assert isinstance(stage.next_event(), Lost)
    assert not stage.membership.is_surely_member
    leaving = Stage()
    leaving.stable(T0)
    leaving.membership.leave()
    leaving.steps(1)
    assert not leaving.membership.is_surely_member


# --- joining ---


def test_nothing_is_said_before_start(stage):
    stage.steps()
    assert stage.broker.calls == []


def test_the_first_heartbeat_tells_everything_and_the_next_ones_only_what_is_run(stage):
    stage.stable(T0, T1)
    first, *others = stage.beats()
    assert (first.member_id, first.member_epoch, first.process_id, first.rebalance_timeout_ms) == (
        "me",
        0,
        "process",
        60_000,
    )
    assert first.topology is not None and (first.user_endpoint.host, first.user_endpoint.port) == ("here", 1)
    assert [(tag.key, tag.value) for tag in first.client_tags] == [("z", "a")]
    assert (first.active_tasks, first.standby_tasks, first.warmup_tasks) == ([], [], [])
    assert all(each.topology is None and each.process_id is None and each.member_epoch == 1 for each in others)
    assert owned_in(others[-1]) == {T0, T1}


def test_the_empty_plan_of_a_group_that_is_not_ready_is_not_told(stage):
    stage.membership.start((TaskSets(), False))
    delayed = status(GroupStatus.ASSIGNMENT_DELAYED)
    stage.script(beat(1, TaskSets(), status(GroupStatus.MISSING_INTERNAL_TOPICS), delayed), beat(1, None, delayed))
    stage.script(beat(2, active(T0)))
    began = stage.clock.now_ms()
    event = stage.next_event()
    assert isinstance(event, Assigned) and event.plan[0] == active(T0) and event.generation_id == 2
    assert stage.clock.now_ms() - began < 1_000, "a member that waits for its first plan asks often"


def test_a_member_that_is_to_run_nothing_hears_so(stage):
    stage.membership.start((TaskSets(), False))
    stage.script(beat(1, TaskSets()))
    assert stage.next_event().plan[0] == TaskSets()
    assert stage.membership.can_commit()


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (
            refused(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet."),
            TopologyRefusedError,
            "new application.id",
        ),
        (refused(ErrorCode.STREAMS_TOPOLOGY_FENCED), TopologyRefusedError, "another topology"),
        (refused(ErrorCode.GROUP_AUTHORIZATION_FAILED), AuthorizationError, "grant READ"),
        (refused(ErrorCode.UNSUPPORTED_VERSION), UnsupportedBrokerError, "streams.version=1"),
        (refused(ErrorCode.GROUP_ID_NOT_FOUND, "not a streams group"), GroupFatalError, "stop all of them"),
        (refused(ErrorCode.GROUP_MAX_SIZE_REACHED), GroupFatalError, "group.streams.max.size"),
        (refused(ErrorCode.INVALID_REQUEST, "regex is not supported yet"), GroupFatalError, "regex"),
        (
            beat(1, TaskSets(), status(GroupStatus.INCORRECTLY_PARTITIONED_TOPICS)),
            GroupTopicsError,
            "about INCORRECTLY_PARTITIONED_TOPICS",
        ),
        (beat(1, TaskSets(), status(GroupStatus.STALE_TOPOLOGY)), GroupTopicsError, "same version"),
    ],
)
def test_what_cannot_be_mended_is_fatal_and_says_what_to_do(stage, answer, error, says):
    stage.membership.start((TaskSets(), False))
    stage.script(answer)
    event = stage.next_event()
    assert isinstance(event, Fatal) and isinstance(event.cause, error) and says in event.reason
    stage.steps()
    assert stage.membership.over


def test_an_internal_topic_that_goes_missing_while_tasks_run_is_fatal(stage):
    """Before the first plan the broker is just making it."""
    stage.stable(T0)
    stage.script(beat(1, None, status(GroupStatus.MISSING_INTERNAL_TOPICS)))
    event = stage.next_event()
    assert isinstance(event, Fatal) and isinstance(event.cause, GroupTopicsError)
    assert "deleted while the app ran" in event.reason


def test_missing_sources_are_waited_for_and_then_named(stage):
    stage.membership.start((TaskSets(), False))
    missing = beat(1, None, status(GroupStatus.MISSING_SOURCE_TOPICS))
    stage.broker.default("StreamsGroupHeartbeat", missing)
    stage.pass_time(4_500)
    back = beat(1, None, status(GroupStatus.ASSIGNMENT_DELAYED))
    stage.broker.script("StreamsGroupHeartbeat", back)  # for a moment
    stage.pass_time(4_500)
    event = stage.next_event()
    assert isinstance(event, Fatal) and isinstance(event.cause, GroupTopicsError)
    assert "MISSING_SOURCE_TOPICS" in event.reason and "create the topics" in event.reason


def test_a_passing_refusal_is_asked_again(stage):
    stage.membership.start((TaskSets(), False))
    stage.script(refused(ErrorCode.UNKNOWN_SERVER_ERROR), refused(ErrorCode.UNKNOWN_MEMBER_ID), beat(1, active(T0)))
    assert stage.next_event().plan[0] == active(T0)


# --- tasks come and go ---


def test_heartbeats_keep_the_interval_of_the_broker_and_with_it_the_certainty_to_be_a_member(stage):
    stage.stable(T0)
    before = len(stage.beats())
    for _ in range(100):
        stage.pass_time(INTERVAL_MS // 10)
        assert stage.membership.is_surely_member
    assert 13 <= len(stage.beats()) - before <= 14


def test_a_process_that_stood_still_is_not_surely_a_member(stage):
    stage.stable(T0)
    stage.clock.pause_ms(INTERVAL_MS)
    assert not stage.membership.is_surely_member
    stage.steps()
    assert stage.membership.is_surely_member
    stage.script(refused(ErrorCode.FENCED_MEMBER_EPOCH))
    stage.next_event()
    assert not stage.membership.is_surely_member


def test_a_revoked_task_is_told_to_be_gone_only_when_it_is_and_then_at_once(stage):
    stage.stable(T0, T1)
    stage.script(beat(1, active(T0)))
    event = stage.next_event()
    assert event.plan[0] == active(T0) and stage.membership.phase is StreamsGroupPhase.RECONCILING
    stage.pass_time(20_000)
    assert owned_in(stage.beats()[-1]) == {T0, T1}, "the StreamThread has not let go of it yet"
    before = len(stage.beats())
    stage.membership.commit(OFFSETS, 1_000)
    assert stage.broker.sent("OffsetCommit")[-1].generation_id_or_member_epoch == 1
    stage.acknowledge(event, T0)
    stage.membership.run_once()
    assert [owned_in(each) for each in stage.beats()[before:]] == [{T0}]
    assert stage.membership.phase is StreamsGroupPhase.STABLE


def test_a_task_that_was_given_is_told_to_be_run_before_it_is(stage):
    """The StreamThread may be opening it: the broker would give a task that is not named to somebody else at once."""
    stage.membership.start((TaskSets(), False))
    stage.script(beat(1, active(T0, T1)))
    first = stage.next_event()
    stage.pass_time(1_000)
    assert owned_in(stage.beats()[-1]) == {T0, T1}
    stage.script(beat(1, active(T0)))
    second = stage.next_event()
    stage.acknowledge(first, T0, T1)
    stage.pass_time(1_000)
    assert owned_in(stage.beats()[-1]) == {T0, T1}, "the second plan is not carried out"
    stage.acknowledge(second, T0)
    stage.steps(3)
    assert owned_in(stage.beats()[-1]) == {T0}


def test_after_a_change_heartbeats_come_often_and_then_less_so(stage):
    stage.stable(T0)
    stage.script(beat(2, active(T0, T1)))
    stage.acknowledge(stage.next_event(), T0, T1)
    before = len(stage.beats())
    stage.pass_time(2_000)
    assert len(stage.beats()) - before >= 8
    stage.pass_time(2 * INTERVAL_MS)
    before = len(stage.beats())
    stage.pass_time(2 * INTERVAL_MS)
    assert len(stage.beats()) - before <= 4


def test_a_later_plan_takes_the_place_of_one_that_was_not_carried_out(stage):
    stage.stable(T0, T1)
    stage.script(beat(1, active(T0)))
    first = stage.next_event()
    stage.script(beat(1, TaskSets()))
    second = stage.next_event()
    stage.acknowledge(first, T0)
    stage.steps(2)
    assert stage.membership.phase is StreamsGroupPhase.RECONCILING
    stage.acknowledge(second)
    stage.steps(2)
    assert stage.membership.phase is StreamsGroupPhase.STABLE and owned_in(stage.beats()[-1]) == set()


def test_the_same_plan_is_not_told_twice(stage):
    stage.stable(T0)
    stage.script(beat(2, active(T0)))
    stage.pass_time(2 * INTERVAL_MS)


def test_standbys_and_endpoints_are_part_of_the_plan(stage):
    stage.stable(T0)
    there = EndpointPartitions(Address("there", 2), frozenset({P0}), frozenset())
    with_standby = TaskSets(frozenset({T0}), frozenset({T1}))
    stage.script(beat(2, with_standby, endpoint_epoch=4, endpoints=(there,)))
    event = stage.next_event()
    assert event.plan == (with_standby, (there,), False)
    stage.membership.acknowledge(event, (with_standby, False))
    stage.steps(2)
    last = stage.beats()[-1]
    assert last.endpoint_information_epoch == 4
    assert [(row.subtopology_id, row.partitions) for row in last.standby_tasks] == [("0", [1])]


# --- lost answers ---


def test_a_plan_whose_answer_was_lost_is_asked_for(stage):
    """The broker tells a plan once: the next heartbeat is answered as if nothing was new."""
    stage.stable(T0, T1)
    mine = DescribedMember("me", 1, "c", "h", "process", active(T1), active(T1))
    stage.broker.script(
        "StreamsGroupDescribe",
        DescribeAnswer(ErrorCode.UNKNOWN_SERVER_ERROR, None, "", 0, ()),
        DescribeAnswer(ErrorCode.NONE, None, "Reconciling", 2, (replace(mine, member_id="other"), mine)),
    )
    stage.script(ConnectionResetError("gone"))
    event = stage.next_event(3 * INTERVAL_MS)
    assert event.plan[0] == active(T1)
    assert len(stage.broker.sent("StreamsGroupDescribe")) == 2


def test_a_broken_connection_that_lost_nothing_changes_nothing(stage):
    stage.stable(T0)
    mine = DescribedMember("me", 1, "c", "h", "process", active(T0), active(T0))
    stage.broker.default("StreamsGroupDescribe", DescribeAnswer(ErrorCode.NONE, None, "Stable", 1, (mine,)))
    stage.script(ConnectionResetError("gone"), SILENCE, beat(1))
    stage.pass_time(4 * INTERVAL_MS)
    assert stage.membership.phase is StreamsGroupPhase.STABLE and stage.membership.can_commit()


# --- commits ---


def test_commits_are_made_under_the_latest_epoch_also_before_its_plan_was_seen(stage):
    stage.stable(T0)
    stage.script(beat(2, active(T0, T1)))
    stage.clock.pause_ms(INTERVAL_MS)
    stage.steps()
    stage.membership.commit(OFFSETS, 1_000)
    assert stage.broker.sent("OffsetCommit")[-1].generation_id_or_member_epoch == 2
    assert stage.membership.metadata().generation_id == 2


def test_there_is_no_commit_before_the_first_plan(stage):
    stage.membership.start((TaskSets(), False))
    assert not stage.membership.can_commit()
    with pytest.raises(CommitDeferredError):
        stage.membership.commit(OFFSETS, 1_000)


def test_a_commit_that_was_overtaken_by_a_new_epoch_is_made_again_under_it(stage):
    stage.stable(T0)

    class NewEpoch(PartitionCodes):
        """The heartbeat is answered while the commit is on its way."""

        @property
        def code(self):
            stage.script(beat(2))
            stage.clock.pause_ms(INTERVAL_MS)
            stage.steps()
            return ErrorCode.STALE_MEMBER_EPOCH

    stage.broker.script("OffsetCommit", NewEpoch({P0: ErrorCode.STALE_MEMBER_EPOCH}))
    stage.membership.commit(OFFSETS, 60_000)
    epochs = [request.generation_id_or_member_epoch for request in stage.broker.sent("OffsetCommit")]
    assert epochs == [1, 2]


@pytest.mark.parametrize("code", [ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_refused_commit_ends_the_assignment_and_the_member_leaves_before_it_joins_again(stage, code):
    stage.stable(T0)
    stage.broker.script("OffsetCommit", committed(code))
    with pytest.raises(TaskMigratedError):
        stage.membership.commit(OFFSETS, 1_000)
    assert not stage.membership.can_commit()
    event = stage.next_event()
    assert isinstance(event, Lost)
    before = len(stage.beats())
    stage.acknowledge(event)
    stage.script(beat(5, active(T0)))
    stage.steps()
    assert stage.next_event().plan[0] == active(T0)
    assert [each.member_epoch for each in stage.beats()[before - 1 :]][:2] == [-1, 0]


def test_a_transactional_commit_is_refused_like_any_other(stage):
    stage.stable(T0)
    stage.broker.default("AddOffsetsToTxn", PlainAnswer(ErrorCode.NONE))
    stage.broker.script("TxnOffsetCommit", committed(ErrorCode.ILLEGAL_GENERATION))
    with pytest.raises(TaskMigratedError):
        stage.membership.txn_commit_offsets(PRODUCER, OFFSETS, 1_000)
    assert stage.broker.sent("TxnOffsetCommit")[0].generation_id == 1
    assert isinstance(stage.next_event(), Lost)


# --- losing ---


@pytest.mark.parametrize(
    "code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND]
)
def test_a_fenced_member_lets_go_of_everything_and_joins_again_when_it_has(stage, code):
    stage.stable(T0)
    stage.script(refused(code, "why"))
    event = stage.next_event()
    assert isinstance(event, Lost) and code.name in event.reason
    assert not stage.membership.can_commit()
    before = len(stage.beats())
    stage.pass_time(20_000)
    assert len(stage.beats()) == before, "nothing is said until the StreamThread has let go"
    stage.acknowledge(event)
    stage.script(beat(7, active(T0, T1)))
    assert stage.next_event().generation_id == 7
    (rejoin,) = stage.beats()[before:]
    assert (rejoin.member_epoch, rejoin.member_id, rejoin.active_tasks) == (0, "me", [])
    assert rejoin.topology is not None


def test_a_plan_that_was_not_seen_before_it_was_lost_is_never_seen(stage):
    stage.membership.start((TaskSets(), False))
    stage.script(beat(1, active(T0)), refused(ErrorCode.FENCED_MEMBER_EPOCH))
    stage.steps()
    stage.clock.pause_ms(INTERVAL_MS)
    stage.steps()
    assert isinstance(stage.membership.poll(), Lost)
    assert stage.membership.poll() is None


def test_a_stuck_stream_thread_gives_its_tasks_up(stage):
    stage.stable(T0)
    stage.pass_time(60_001, polling=False)
    assert stage.beats()[-1].member_epoch == -1
    assert isinstance(stage.next_event(), Lost)


# --- the end ---


def test_a_fenced_member_that_leaves_says_so_because_the_broker_may_have_it_under_another_epoch(stage):
    stage.stable(T0)
    stage.script(refused(ErrorCode.FENCED_MEMBER_EPOCH))
    assert isinstance(stage.next_event(), Lost)
    stage.membership.leave()
    stage.steps()
    assert stage.membership.over and stage.beats()[-1].member_epoch == -1


def test_a_member_that_the_broker_does_not_know_leaves_without_a_word(stage):
    stage.stable(T0)
    stage.script(refused(ErrorCode.UNKNOWN_MEMBER_ID))
    assert isinstance(stage.next_event(), Lost)
    before = len(stage.beats())
    stage.membership.leave()
    stage.steps()
    assert stage.membership.over and len(stage.beats()) == before


def test_leaving_is_told(stage):
    stage.stable(T0)
    stage.membership.leave()
    stage.steps()
    assert stage.membership.over and stage.beats()[-1].member_epoch == -1
    assert stage.beats()[-1].active_tasks is None


def test_leaving_does_not_wait_for_a_silent_broker(stage):
    stage.stable(T0)
    stage.broker.default("StreamsGroupHeartbeat", SILENCE)
    stage.membership.leave()
    stage.pass_time(3_500)
    assert stage.membership.over


def test_one_member_ends_the_whole_application(stage):
    stage.stable(T0)
    stage.membership.enforce_rebalance("application shutdown requested")
    event = stage.next_event()
    assert isinstance(event, Rebalancing)
    stage.script(beat(1, None, status(GroupStatus.SHUTDOWN_APPLICATION)))
    stage.acknowledge(event, shutdown=True)
    assert stage.next_event().plan[2] is True
    assert stage.beats()[-1].shutdown_application is True


def test_a_member_hears_that_another_one_ends_the_application(stage):
    stage.stable(T0)
    stage.script(beat(1, None, status(GroupStatus.SHUTDOWN_APPLICATION)))
    event = stage.next_event()
    assert event.plan == (active(T0), (), True)
