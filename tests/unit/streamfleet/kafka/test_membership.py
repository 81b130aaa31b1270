"""Memberships against a scripted coordinator: what they say, what they tell their StreamThread, and in which order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import structlog
from tests.unit.streamfleet.kafka.scripted_coordinator import SILENCE, HandClock, ScriptedCoordinator, joined, synced

from streamfleet.errors import ConfigError
from streamfleet.ids import TopicPartition
from streamfleet.kafka.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.errors import AuthorizationError, CommitDeferredError, TaskMigratedError
from streamfleet.kafka.group_client import JOIN_GRACE_MS, GroupClient, GroupSettings
from streamfleet.kafka.group_events import Assigned, Fatal, Lost, Rebalancing
from streamfleet.kafka.group_messages import PlainAnswer
from streamfleet.kafka.group_protocol import Received, Subscriber
from streamfleet.kafka.membership import Membership, classic_membership
from streamfleet.kafka.membership_phases import MembershipPhase
from streamfleet.kafka.offset_messages import CommittedOffset, PartitionCodes

P0 = TopicPartition("t", 0)
GOOD_COMMIT = PartitionCodes({P0: ErrorCode.NONE})
PROBE_MS = 30_000
GIVEN_ID = joined(ErrorCode.MEMBER_ID_REQUIRED, member_id="me", protocol=None)


def plan_bytes(text: str) -> bytes:
    return encode_assignment(Assignment((), text.encode()))


def code(code: ErrorCode) -> PlainAnswer:
    return PlainAnswer(code)


class TextProtocol:
    """Reports and plans are text. A plan may contain the words follow-up, rejoin, probe and refuse."""

    name = "text"

    def __init__(self) -> None:
        self.led: list[dict[str, str]] = []
        self.empty_user_data = False
        self.broken_assignor = False

    def subscribe(self, report: str, *, generation_id: int, counter: int) -> Subscription:
        text = "" if self.empty_user_data else f"{report} generation={generation_id} counter={counter}"
        return Subscription(("t",), (), text.encode())

    def assign(self, subscribers: Sequence[Subscriber]) -> dict[str, Assignment]:
        if self.broken_assignor:
            raise RuntimeError("assignor is broken")
        self.led.append({each.member_id: each.subscription.user_data.decode() for each in subscribers})
        return {each.member_id: Assignment((), f"plan of {each.member_id}".encode()) for each in subscribers}

    def receive(self, report: str, assignment: Assignment) -> Received[str]:
        text = assignment.user_data.decode()
        refusal = text if "refuse" in text else None
        return Received(
            text,
            follow_up="follow-up" in text,
            must_rejoin="rejoin" in text,
            next_probe_ms=PROBE_MS if "probe" in text else None,
            refusal=refusal,
        )


class Stage:
    """One membership, its coordinator, and its StreamThread's side."""

    def __init__(self, **settings) -> None:
        self.clock = HandClock()
        self.broker = ScriptedCoordinator(self.clock)
        self.protocol = TextProtocol()
        chosen = GroupSettings("group", **{"max_poll_interval_ms": 60_000, **settings})
        client = GroupClient(chosen, self.broker, self.clock, protocol="text")
        self.woken = 0
        self.membership: Membership[str, str] = classic_membership(
            client, self.protocol, self.clock, wake=self._wake, step_wait_ms=5
        )

    def _wake(self) -> None:
        self.woken += 1

    def steps(self, count: int = 10) -> None:
        for _ in range(count):
            self.clock.pause_ms(self.membership.run_once())

    def pass_time(self, milliseconds: int) -> None:
        until = self.clock.now_ms() + milliseconds
        while self.clock.now_ms() < until:
            self.clock.pause_ms(max(1, min(self.membership.run_once(), until - self.clock.now_ms())))

    def next_event(self, limit_ms: int = 5_000):
        until = self.clock.now_ms() + limit_ms
        while self.clock.now_ms() < until:
            if (event := self.membership.poll()) is not None:
                return event
            self.clock.pause_ms(max(1, self.membership.run_once()))
        raise AssertionError(f"no event in phase {self.membership.phase}")

    def stable(self, plan: str = "tasks", *, generation: int = 1) -> Assigned[str]:
        """Joined as a follower, with the plan polled."""
        if self.membership.phase is MembershipPhase.CREATED:
            self.broker.script("JoinGroup", GIVEN_ID)
            self.membership.start("report")
        self.broker.script("JoinGroup", joined(generation=generation, leader="another"))
        self.broker.script("SyncGroup", synced(plan_bytes(plan)))
        event = self.next_event()
        assert isinstance(event, Assigned)
        return event

    def reports(self) -> list[str]:
        """User data of every JoinGroup."""
        sent = self.broker.sent("JoinGroup")
        return [decode_subscription(request.protocols[0].metadata).user_data.decode() for request in sent]


@pytest.fixture
def stage():
    return Stage()


# --- joining ---


def test_nothing_is_said_before_start(stage):
    stage.steps()
    assert stage.broker.calls == []


def test_a_new_member_asks_for_an_id_joins_and_gets_its_plan(stage):
    event = stage.stable("tasks")
    assert (event.generation_id, event.member_id, event.plan, event.follow_up) == (1, "me", "tasks", False)
    assert [request.member_id for request in stage.broker.sent("JoinGroup")] == ["", "me"]
    assert stage.membership.can_commit()


def test_the_leader_plans_for_everybody_and_followers_for_nobody(stage):
    others = {name: encode_subscription(Subscription(("t",), (), name.encode())) for name in ("me", "other")}
    stage.membership.start("report")
    stage.broker.script("JoinGroup", joined(members=others))
    stage.broker.script("SyncGroup", synced(plan_bytes("tasks")))
    stage.next_event()
    assert stage.protocol.led == [{"me": "me", "other": "other"}]
    (request,) = stage.broker.sent("SyncGroup")
    plans = {row.member_id: decode_assignment(row.assignment).user_data for row in request.assignments}
    assert plans == {"me": b"plan of me", "other": b"plan of other"}

    follower = Stage()
    follower.stable()
    assert follower.broker.sent("SyncGroup")[0].assignments == []
    assert follower.protocol.led == []


def test_a_member_that_cannot_be_read_does_not_stop_the_leader(stage):
    stage.membership.start("report")
    good = encode_subscription(Subscription(("t",), (), b"fine"))
    stage.broker.script("JoinGroup", joined(members={"me": good, "odd": b"\x00\x07garbage"}))
    stage.broker.script("SyncGroup", synced(plan_bytes("tasks")))
    stage.next_event()
    assert stage.protocol.led == [{"me": "fine", "odd": ""}]


def test_a_static_leader_that_came_back_sends_no_plan():
    stage = Stage(group_instance_id="slot-0")
    stage.membership.start("report")
    stage.broker.script("JoinGroup", joined(members={}, skip_assignment=True, generation=7))
    stage.broker.script("SyncGroup", synced(plan_bytes("as before")))
    assert stage.next_event().plan == "as before"
    assert stage.protocol.led == []
    assert stage.broker.sent("JoinGroup")[0].group_instance_id == "slot-0"


def test_a_plan_that_was_made_without_us_is_asked_for_again(stage):
    """A static member that replaces another between the leader's join and sync gets no bytes."""
    stage.membership.start("report")
    stage.broker.script("JoinGroup", joined(leader="another"), joined(generation=2, leader="another"))
    stage.broker.script("SyncGroup", synced(b""), synced(plan_bytes("tasks")))
    assert stage.next_event().generation_id == 2
    assert [text.split()[-1] for text in stage.reports()] == ["counter=0", "counter=1"]


def test_a_rebalance_between_join_and_sync_is_joined_without_asking_the_thread(stage):
    stage.membership.start("report")
    stage.broker.script("JoinGroup", joined(leader="another"), joined(generation=2, leader="another"))
    stage.broker.script("SyncGroup", synced(code=ErrorCode.REBALANCE_IN_PROGRESS), synced(plan_bytes("tasks")))
    event = stage.next_event()
    assert isinstance(event, Assigned) and event.generation_id == 2


def test_a_join_that_is_never_answered_is_given_up_after_the_rebalance_time_out(stage):
    stage.membership.start("report")
    stage.broker.script("JoinGroup", SILENCE, joined(leader="another"))
    stage.broker.script("SyncGroup", synced(plan_bytes("tasks")))

    def joins_after(milliseconds: int) -> int:
        until = stage.clock.now_ms() + milliseconds
        while stage.clock.now_ms() < until:
            assert stage.membership.poll() is None  # the thread lives
            stage.clock.pause_ms(max(1, stage.membership.run_once()))
        return len(stage.broker.sent("JoinGroup"))

    assert joins_after(60_000 + JOIN_GRACE_MS - 500) == 1
    assert isinstance(stage.next_event(), Assigned)
    assert len(stage.broker.sent("JoinGroup")) == 2


def test_a_broker_that_is_confused_is_asked_again_after_a_pause(stage):
    stage.membership.start("report")
    stage.broker.script("JoinGroup", joined(ErrorCode.UNKNOWN_SERVER_ERROR, protocol=None))
    began = stage.clock.now_ms()
    stage.stable()
    assert stage.clock.now_ms() - began >= 100


def test_a_group_that_stays_wedged_is_said_once_and_asked_less_and_less_often(stage):
    stage.membership.start("report")
    refusal = joined(ErrorCode.UNKNOWN_SERVER_ERROR, protocol=None)
    stage.broker.script("JoinGroup", GIVEN_ID, *[refusal] * 30)
    with structlog.testing.capture_logs() as logged:
        stage.pass_time(50_000)
    assert 10 < len(stage.broker.sent("JoinGroup")) < 20, "every five seconds in the end"
    assert [line["code"] for line in logged if line["log_level"] == "warning"] == ["UNKNOWN_SERVER_ERROR"]


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "in use by another kind of client; stop it first"),
        (ErrorCode.FENCED_INSTANCE_ID, "another process is static member"),
        (ErrorCode.INVALID_SESSION_TIMEOUT, "does not accept a session time-out of 45000 ms"),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, "as many members as the broker allows"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "grant READ"),
        (ErrorCode.UNKNOWN_CODE, "UNKNOWN_CODE"),
    ],
)
def test_a_group_that_will_not_have_us_is_fatal_and_says_why(stage, refused, message):
    stage.membership.start("report")
    stage.broker.script("JoinGroup", joined(refused, protocol=None))
    event = stage.next_event()
    assert isinstance(event, Fatal) and message in event.reason
    assert stage.membership.phase is MembershipPhase.FAILED


def test_a_group_that_speaks_another_protocol_is_not_entered(stage):
    stage.membership.start("report")
    stage.broker.script("JoinGroup", joined(protocol="range"))
    event = stage.next_event()
    assert isinstance(event, Fatal) and "speaks 'range', not 'text'" in event.reason
    assert stage.broker.sent("SyncGroup") == []


def test_bytes_that_would_wedge_the_group_are_fatal_before_they_are_sent(stage):
    stage.protocol.empty_user_data = True
    stage.membership.start("report")
    event = stage.next_event()
    assert isinstance(event, Fatal) and "no user data" in event.reason
    assert stage.broker.calls == []


def test_a_plan_that_is_not_ours_is_fatal_and_the_member_leaves(stage):
    stage.membership.start("report")
    stage.broker.script("JoinGroup", joined(leader="another"))
    stage.broker.script("SyncGroup", synced(b"\x00\x07garbage"))
    event = stage.next_event()
    assert isinstance(event, Fatal) and "cannot be read" in event.reason
    stage.steps()
    assert len(stage.broker.sent("LeaveGroup")) == 1
    assert stage.membership.over


def test_a_refusal_by_the_leader_is_fatal(stage):
    stage.membership.start("report")
    stage.broker.script("JoinGroup", joined(leader="another"))
    stage.broker.script("SyncGroup", synced(plan_bytes("refuse: too old")))
    event = stage.next_event()
    assert isinstance(event, Fatal) and "too old" in event.reason


def test_a_leader_that_cannot_assign_makes_room_for_another(stage):
    stage.protocol.broken_assignor = True
    stage.membership.start("report")
    stage.broker.script("JoinGroup", joined(members={"me": encode_subscription(Subscription((), (), b"x"))}))
    event = stage.next_event()
    assert isinstance(event, Fatal) and "assignor is broken" in event.reason
    stage.steps()
    assert len(stage.broker.sent("LeaveGroup")) == 1


# --- being a member ---


def test_heartbeats_come_at_their_interval_and_faster_before_a_follow_up():
    for plan, expected in (("tasks", 4), ("follow-up", 40)):
        stage = Stage(heartbeat_interval_ms=500, follow_up_heartbeat_ms=50)
        stage.stable(plan)
        stage.pass_time(2_000)
        assert abs(len(stage.broker.sent("Heartbeat")) - expected) <= 1


def test_a_rebalance_is_joined_only_when_the_thread_agrees_and_with_its_new_report(stage):
    stage.stable()
    stage.broker.script("Heartbeat", code(ErrorCode.REBALANCE_IN_PROGRESS))
    event = stage.next_event()
    assert isinstance(event, Rebalancing)
    stage.broker.default("Heartbeat", code(ErrorCode.REBALANCE_IN_PROGRESS))
    stage.pass_time(2_000)
    assert len(stage.reports()) == 2 and stage.membership.can_commit()
    assert len(stage.broker.sent("Heartbeat")) >= 4  # it does not lose its place while the thread is busy
    stage.membership.acknowledge(event, "later report")
    assert not stage.membership.can_commit()
    stage.stable(generation=2)
    assert stage.reports()[-1] == "later report generation=1 counter=0"
    assert stage.membership.can_commit()


def test_a_generation_that_left_no_plan_is_not_claimed(stage):
    """Of two members that claim a task the leader believes the newer plan, so nobody may make his look newer."""
    stage.stable(generation=4)
    stage.broker.script("Heartbeat", code(ErrorCode.REBALANCE_IN_PROGRESS))
    stage.membership.acknowledge(stage.next_event(), "report")
    stage.broker.script("JoinGroup", joined(generation=5, leader="another"))
    stage.broker.script("SyncGroup", synced(code=ErrorCode.REBALANCE_IN_PROGRESS))
    stage.stable(generation=6)
    assert [text.split()[1] for text in stage.reports()[-2:]] == ["generation=4", "generation=4"]


def test_there_is_no_commit_between_join_and_the_next_plan(stage):
    stage.stable()
    stage.broker.script("Heartbeat", code(ErrorCode.REBALANCE_IN_PROGRESS))
    event = stage.next_event()
    stage.broker.script("OffsetCommit", GOOD_COMMIT)
    stage.membership.commit({P0: CommittedOffset(1)}, 1_000)
    stage.membership.acknowledge(event, "report")
    with pytest.raises(CommitDeferredError):
        stage.membership.commit({P0: CommittedOffset(2)}, 1_000)
    stage.broker.script("JoinGroup", joined(generation=2, leader="another"))
    stage.broker.script("SyncGroup", synced(plan_bytes("tasks")))
    stage.steps()
    assert stage.membership.phase is MembershipPhase.STABLE
    assert not stage.membership.can_commit()  # the plan is there, but the thread has not seen it
    assert isinstance(stage.membership.poll(), Assigned)
    stage.broker.script("OffsetCommit", GOOD_COMMIT)
    stage.membership.commit({P0: CommittedOffset(2)}, 1_000)
    generations = [request.generation_id_or_member_epoch for request in stage.broker.sent("OffsetCommit")]
    assert generations == [1, 2]


def test_a_member_that_gave_tasks_up_rejoins_with_changed_bytes_once_the_thread_is_done(stage):
    event = stage.stable("rejoin follow-up")
    stage.pass_time(1_000)
    assert len(stage.reports()) == 2 and stage.membership.can_commit()  # what goes away is committed now
    stage.membership.acknowledge(event, "fewer tasks")
    assert not stage.membership.can_commit()
    stage.stable(generation=2)
    assert stage.reports()[-1] == "fewer tasks generation=1 counter=1"


def test_a_rebalance_that_comes_before_the_thread_is_done_waits_for_both_answers(stage):
    first = stage.stable("rejoin follow-up")
    stage.broker.default("Heartbeat", code(ErrorCode.REBALANCE_IN_PROGRESS))
    stage.pass_time(200)
    stage.membership.acknowledge(first, "fewer tasks")
    stage.pass_time(200)
    assert len(stage.reports()) == 2 and stage.membership.can_commit()
    second = stage.next_event()
    assert isinstance(second, Rebalancing)
    stage.membership.acknowledge(second, "still fewer")
    stage.stable(generation=2)
    assert stage.reports()[-1].startswith("still fewer")


def test_an_enforced_rebalance_changes_the_bytes(stage):
    stage.stable()
    stage.membership.enforce_rebalance("lags have changed")
    event = stage.next_event()
    assert isinstance(event, Rebalancing) and event.reason == "lags have changed"
    stage.membership.acknowledge(event, "report")
    stage.stable(generation=2)
    assert stage.reports()[-1].endswith("counter=1")
    assert stage.broker.sent("JoinGroup")[-1].reason == "lags have changed"


def test_a_member_that_was_told_to_probe_calls_a_rebalance_when_it_is_due_and_once(stage):
    stage.stable("probe")
    stage.pass_time(PROBE_MS - 1_000)
    assert stage.membership.poll() is None
    stage.pass_time(2_000)
    event = stage.next_event()
    assert isinstance(event, Rebalancing) and event.reason == "the plan is due to be looked at again"
    stage.membership.acknowledge(event, "how things are now")
    stage.stable("nothing left to wait for", generation=2)
    assert stage.reports()[-1].startswith("how things are now") and stage.reports()[-1].endswith("counter=1")
    stage.pass_time(2 * PROBE_MS)
    assert stage.membership.poll() is None


def test_a_rebalance_in_between_puts_the_probe_off(stage):
    stage.stable("probe")
    stage.pass_time(PROBE_MS - 5_000)
    stage.broker.script("Heartbeat", code(ErrorCode.REBALANCE_IN_PROGRESS))
    stage.membership.acknowledge(stage.next_event(), "report")
    stage.stable("probe", generation=2)
    stage.pass_time(PROBE_MS - 5_000)
    assert stage.membership.poll() is None
    stage.pass_time(6_000)
    assert isinstance(stage.next_event(), Rebalancing)


def test_wishes_of_the_thread_wake_the_membership(stage):
    stage.membership.start("report")
    assert stage.woken == 1
    stage.membership.enforce_rebalance("why not")
    stage.membership.leave()
    assert stage.woken == 3


def test_a_lost_connection_is_not_a_lost_membership(stage):
    stage.stable()
    stage.broker.script("Heartbeat", *[ConnectionResetError("gone")] * 3, code(ErrorCode.NOT_COORDINATOR))
    stage.pass_time(5_000)
    assert stage.membership.poll() is None
    assert stage.membership.phase is MembershipPhase.STABLE
    last = stage.broker.sent("Heartbeat")[-1]
    assert (last.member_id, last.generation_id) == ("me", 1)
    assert len(stage.broker.sent("JoinGroup")) == 2


# --- being sure of it ---


def test_a_member_is_sure_of_its_place_for_a_session_after_the_coordinator_has_heard_it():
    stage = Stage(session_timeout_ms=6_000, heartbeat_interval_ms=500)
    assert not stage.membership.is_surely_member
    stage.stable()
    assert stage.membership.is_surely_member
    stage.pass_time(20_000)
    assert stage.membership.is_surely_member, "heartbeats are answered"
    stage.clock.pause_ms(6_000)  # the process stands still, and nobody looks at the clock
    assert not stage.membership.is_surely_member
    stage.pass_time(1_000)
    assert stage.membership.is_surely_member, "the coordinator still knew it"


def test_heartbeats_that_are_not_answered_prove_nothing():
    stage = Stage(session_timeout_ms=6_000, heartbeat_interval_ms=500)
    stage.stable()
    stage.broker.script("Heartbeat", *[ConnectionResetError("gone")] * 1000)
    stage.pass_time(5_000)
    assert stage.membership.is_surely_member
    stage.pass_time(2_000)
    assert not stage.membership.is_surely_member


def test_who_was_thrown_out_gave_up_or_leaves_is_sure_no_more(stage):
    stage.stable()
    stage.broker.script("Heartbeat", code(ErrorCode.UNKNOWN_MEMBER_ID))
    assert isinstance(stage.next_event(), Lost)
    assert not stage.membership.is_surely_member
    stuck = Stage(max_poll_interval_ms=10_000)
    stuck.stable()
    stuck.pass_time(11_000)
    assert not stuck.membership.is_surely_member, "its StreamThread is stuck, and still has its tasks"
    assert stuck.membership.tenure.until_ms == 0
    leaving = Stage()
    leaving.stable()
    leaving.membership.leave()
    leaving.steps(1)
    assert not leaving.membership.is_surely_member


def time_left(stage):
    return stage.membership.tenure.until_ms - stage.clock.now_ms()


def test_a_member_keeps_its_tasks_while_it_waits_for_a_rebalance_which_is_when_it_is_not_heard():
    stage = Stage(session_timeout_ms=6_000, heartbeat_interval_ms=500)
    assert stage.membership.tenure.until_ms == 0
    stage.stable()
    stage.membership.enforce_rebalance("asked to")
    event = stage.next_event()
    stage.broker.script("JoinGroup", SILENCE)
    stage.membership.acknowledge(event, "tasks")
    stage.pass_time(20_000)
    assert not stage.membership.is_surely_member
    assert time_left(stage) > 5_000
    stage.clock.pause_ms(8_000)  # the process stands still; the rebalance may be over, and the next one, too
    assert time_left(stage) < 0


def test_a_member_that_cannot_reach_its_group_while_it_joins_keeps_nothing():
    stage = Stage(session_timeout_ms=6_000, heartbeat_interval_ms=500)
    stage.stable()
    stage.membership.enforce_rebalance("asked to")
    event = stage.next_event()
    stage.broker.refuse_connects.extend([ConnectionRefusedError("gone")] * 1000)
    stage.broker.script("JoinGroup", ConnectionResetError("gone"))
    stage.membership.acknowledge(event, "tasks")
    stage.pass_time(7_000)
    assert time_left(stage) < 0


def test_who_was_thrown_out_keeps_nothing(stage):
    stage.stable()
    assert time_left(stage) > 0
    stage.broker.script("Heartbeat", code(ErrorCode.UNKNOWN_MEMBER_ID))
    assert isinstance(stage.next_event(), Lost)
    assert time_left(stage) < 0


# --- losing it ---


@pytest.mark.parametrize(
    ("why", "rejoins_as"),
    [
        (ErrorCode.UNKNOWN_MEMBER_ID, ""),
        (ErrorCode.ILLEGAL_GENERATION, "me"),
        (ErrorCode.GROUP_ID_NOT_FOUND, ""),
    ],
)
def test_a_member_that_was_thrown_out_lets_go_of_its_tasks_before_it_rejoins(stage, why, rejoins_as):
    stage.stable()
    stage.broker.script("Heartbeat", code(why))
    event = stage.next_event()
    assert isinstance(event, Lost) and why.name in event.reason
    assert not stage.membership.can_commit()
    stage.pass_time(2_000)
    assert len(stage.reports()) == 2
    stage.membership.acknowledge(event, "nothing left")
    stage.stable(generation=9)
    assert stage.broker.sent("JoinGroup")[2].member_id == rejoins_as
    assert stage.reports()[-1] == "nothing left generation=-1 counter=0"


def test_a_member_that_is_thrown_out_before_it_had_anything_just_joins_again(stage):
    stage.membership.start("report")
    stage.broker.script("JoinGroup", joined(ErrorCode.UNKNOWN_MEMBER_ID, protocol=None), GIVEN_ID)
    event = stage.stable()
    assert event.generation_id == 1


def test_being_thrown_out_while_joining_loses_the_tasks(stage):
    stage.stable()
    stage.broker.script("Heartbeat", code(ErrorCode.REBALANCE_IN_PROGRESS))
    stage.membership.acknowledge(stage.next_event(), "report")
    stage.broker.script("JoinGroup", joined(ErrorCode.UNKNOWN_MEMBER_ID, protocol=None))
    assert isinstance(stage.next_event(), Lost)


def test_a_refused_commit_loses_the_tasks(stage):
    stage.stable()
    stage.broker.script("OffsetCommit", PartitionCodes({P0: ErrorCode.ILLEGAL_GENERATION}))
    with pytest.raises(TaskMigratedError):
        stage.membership.commit({P0: CommittedOffset(1)}, 1_000)
    assert not stage.membership.can_commit()
    event = stage.next_event()
    assert isinstance(event, Lost) and "ILLEGAL_GENERATION" in event.reason


def test_a_commit_refused_because_of_a_twin_is_fatal():
    stage = Stage(group_instance_id="slot-0")
    stage.stable()
    stage.broker.script("OffsetCommit", PartitionCodes({P0: ErrorCode.FENCED_INSTANCE_ID}))
    with pytest.raises(TaskMigratedError):
        stage.membership.commit({P0: CommittedOffset(1)}, 1_000)
    event = stage.next_event()
    assert isinstance(event, Fatal) and "same group.instance.id" in event.reason
    assert stage.broker.sent("LeaveGroup") == []  # the place belongs to the twin


def test_a_plan_that_was_not_seen_is_void_once_it_is_lost(stage):
    stage.membership.start("report")
    stage.broker.script("JoinGroup", joined(leader="another"))
    stage.broker.script("SyncGroup", synced(plan_bytes("tasks")))
    stage.broker.script("Heartbeat", code(ErrorCode.UNKNOWN_MEMBER_ID))
    stage.pass_time(1_000)
    assert isinstance(stage.membership.poll(), Lost)
    assert stage.membership.poll() is None


def test_a_stuck_thread_has_its_tasks_given_up_and_gets_new_ones_when_it_is_back():
    stage = Stage(max_poll_interval_ms=10_000)
    stage.stable()
    stage.pass_time(9_900)
    assert stage.membership.phase is MembershipPhase.STABLE
    stage.pass_time(30_000)
    assert stage.membership.phase is MembershipPhase.LOST
    assert [request.members[0].member_id for request in stage.broker.sent("LeaveGroup")] == ["me"]
    event = stage.membership.poll()
    assert isinstance(event, Lost) and "did not poll for 10000 ms" in event.reason
    stage.membership.acknowledge(event, "nothing left")
    stage.stable(generation=5)


def test_a_stuck_static_member_falls_silent_instead_of_leaving():
    stage = Stage(max_poll_interval_ms=10_000, group_instance_id="slot-0")
    stage.stable()
    stage.pass_time(11_000)
    before = len(stage.broker.calls)
    stage.pass_time(10_000)
    assert stage.broker.sent("LeaveGroup") == [] and len(stage.broker.calls) == before


def test_losing_the_right_to_the_group_is_fatal(stage):
    stage.stable()
    stage.broker.script("Heartbeat", code(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    event = stage.next_event()
    assert isinstance(event, Fatal) and isinstance(event.cause, AuthorizationError)


# --- leaving ---


def test_a_dynamic_member_says_good_bye(stage):
    stage.stable()
    stage.membership.leave("shut down")
    stage.steps(3)
    (request,) = stage.broker.sent("LeaveGroup")
    assert (request.members[0].member_id, request.members[0].reason) == ("me", "shut down")
    assert stage.membership.over and stage.membership.phase is MembershipPhase.LEFT


def test_a_static_member_stays_in_the_group_unless_told_otherwise():
    for static_too, said in ((False, 0), (True, 1)):
        stage = Stage(group_instance_id="slot-0")
        stage.stable()
        stage.membership.leave(static_too=static_too)
        stage.steps(3)
        assert stage.membership.over
        assert len(stage.broker.sent("LeaveGroup")) == said


def test_leaving_does_not_wait_for_a_broker_that_is_away(stage):
    stage.stable()
    stage.broker.default("LeaveGroup", ConnectionResetError("gone"))
    stage.membership.leave()
    stage.pass_time(3_500)
    assert stage.membership.over


def test_a_member_can_leave_while_it_waits_for_others_to_join(stage):
    stage.broker.script("JoinGroup", GIVEN_ID, SILENCE)
    stage.membership.start("report")
    stage.steps()
    assert stage.membership.phase is MembershipPhase.JOINING
    stage.membership.leave()
    stage.steps(3)
    assert stage.membership.over and len(stage.broker.sent("LeaveGroup")) == 1


def test_leaving_before_anything_was_said_says_nothing(stage):
    stage.membership.leave()
    stage.steps(2)
    assert stage.membership.over and stage.broker.calls == []


def test_heartbeats_must_fit_into_the_session_three_times():
    with pytest.raises(ConfigError, match="at most a third"):
        GroupSettings("group", session_timeout_ms=6_000, heartbeat_interval_ms=2_001)
