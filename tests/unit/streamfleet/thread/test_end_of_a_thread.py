"""How a StreamThread ends: whatever cannot be closed, the rest is."""

from types import SimpleNamespace

import pytest
import structlog
from tests.unit.streamfleet.thread.single_thread import INPUT, run

import streamfleet as sf
from streamfleet.failpoints import NoFailpoints
from streamfleet.kafka.group_events import Assigned, Lost, Rebalancing
from streamfleet.testing import ManualClock
from streamfleet.thread.stream_thread import ANNOUNCE_TIMEOUT_MS, GROUP_WAIT_MS, PLAN_TIMEOUT_MS, StreamThread
from streamfleet.thread.thread_phases import ThreadPhase


def thread_of(closed, *, broken):
    """A thread over clients that only note that they were closed; one of them fails at it."""

    def closer(name):
        def close(*_, **__):
            closed.append(name)
            if name == broken:
                raise sf.StreamsError(f"{name} cannot be closed")

        return close

    tasks = SimpleNamespace(
        tasks={},
        running=[],
        release=lambda ids: None,
        drop_all=closer("drop"),
        close=closer("tasks"),
        has_room=lambda: True,
    )
    membership = SimpleNamespace(leave=closer("membership"), can_commit=lambda: True, start=lambda report: None)
    return StreamThread(
        "t",
        sf.StreamsConfig(application_id="app"),
        tasks,
        membership,
        SimpleNamespace(close=closer("consumer")),
        SimpleNamespace(close=closer("commit")),
        ManualClock(),
        report=lambda asks: None,
        tasks_of=lambda plan: (),
        fences_of=lambda plan: (),
        asks_for_shutdown=lambda plan: False,
        failpoints=NoFailpoints(),
    )


@pytest.mark.parametrize("broken", ["drop", "membership", "commit", "consumer", "tasks"])
@pytest.mark.parametrize("end", [StreamThread.stop, StreamThread.fail])
def test_one_that_cannot_be_closed_does_not_keep_the_others_open(end, broken):
    closed = []
    thread = thread_of(closed, broken=broken)
    thread.start()
    with pytest.raises(sf.StreamsError, match=f"{broken} cannot be closed"):
        end(thread)
    assert closed == ["drop", "membership", "commit", "consumer", "tasks"]
    assert thread.phase is ThreadPhase.DEAD


# in the middle of a rebalance


class Rejoining:
    """A membership whose thread has agreed to a rebalance; the group's answers come one by one."""

    leads_group = False

    def __init__(self, *answers):
        self.answers, self.acknowledged, self.has_plan = list(answers), [], False

    def can_commit(self):
        return self.has_plan

    def poll(self):
        event = self.answers.pop(0) if self.answers else None
        self.has_plan = isinstance(event, Assigned)
        return event

    def acknowledge(self, event, report):
        self.acknowledged.append(event)

    def enforce_rebalance(self, reason):
        self.acknowledged.append(reason)

    def leave(self, *_, **__):
        self.acknowledged.append("left")


def stopped(thread_of, *answers):
    """What was committed by a thread that was stopped with a record processed since it agreed, and how long that took."""
    thread, cluster, _ = thread_of()
    thread.start()
    run(thread)
    cluster.write("in", 0, b"a", b"x")
    thread.run_once()
    assert cluster.committed_offsets == {}
    thread._membership, poll = Rejoining(*answers), thread._consumer.poll_batch
    began_ms = thread._clock.monotonic_ms()

    def poll_batch(timeout_ms, limit):
        thread._clock.advance(timeout_ms)
        return poll(timeout_ms, limit)

    thread._consumer.poll_batch = poll_batch
    cluster.write("in", 0, b"b", b"x")  # comes too late
    thread.stop()
    return cluster.committed_offsets, thread._clock.monotonic_ms() - began_ms, thread._membership.acknowledged


PLAN = Assigned(9, 2, "me", "plan", follow_up=False)
REBALANCE, LOST = Rebalancing(8, "the group rebalances"), Lost(8, "the session is over")


@pytest.mark.parametrize("answers", [(PLAN,), (None, None, PLAN), (None, REBALANCE, None, PLAN)])
def test_what_was_done_in_a_rebalance_is_committed_under_its_plan(thread_of, answers):
    committed, _, told = stopped(thread_of, *answers)
    assert committed == {INPUT: 1}
    assert told == [*([REBALANCE] if REBALANCE in answers else []), "left"]


def test_a_plan_that_does_not_come_is_not_waited_for_for_ever(thread_of):
    committed, took_ms, told = stopped(thread_of)
    assert committed == {} and told == ["left"]
    assert took_ms == PLAN_TIMEOUT_MS


def test_who_has_lost_its_tasks_meanwhile_waits_no_longer(thread_of):
    committed, took_ms, _ = stopped(thread_of, None, LOST)
    assert committed == {} and took_ms == GROUP_WAIT_MS


# the end of the whole application


@pytest.mark.parametrize("is_heard", [True, False])
def test_a_group_that_cannot_be_told_to_stop_is_said(thread_of, is_heard):
    thread, _, _ = thread_of()
    thread.start()
    run(thread)
    thread._membership, poll = Rejoining(REBALANCE, *([None, PLAN] if is_heard else [])), thread._consumer.poll_batch
    thread._asks_for_shutdown = lambda plan: True
    began_ms = thread._clock.monotonic_ms()

    def poll_batch(timeout_ms, limit):
        thread._clock.advance(timeout_ms)
        return poll(timeout_ms, limit)

    thread._consumer.poll_batch = poll_batch
    with structlog.testing.capture_logs() as logged:
        thread.announce_shutdown()
    assert thread._membership.acknowledged == ["application shutdown requested", REBALANCE]
    said = [line["event"] for line in logged if line["log_level"] == "error"]
    assert said == ([] if is_heard else ["other members could not be told to stop"])
    assert thread._clock.monotonic_ms() - began_ms == (GROUP_WAIT_MS if is_heard else ANNOUNCE_TIMEOUT_MS)
