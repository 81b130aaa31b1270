"""Memberships on a real broker: they find each other, share tasks, hand them over in two steps, and survive each other."""

from __future__ import annotations

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient
from tests.integration.streamfleet.kafka.group_actors import (
    HandThread,
    RawMember,
    balanced,
    connector,
    create_topic,
    settle,
    unique,
    wait_for,
)

from streamfleet.ids import TopicPartition
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.errors import CommitDeferredError, TaskMigratedError
from streamfleet.kafka.group_events import Assigned, Fatal, Lost, Rebalancing
from streamfleet.kafka.membership_phases import MembershipPhase
from streamfleet.kafka.offset_messages import CommittedOffset


@pytest.fixture(scope="module")
def topic(broker):
    return create_topic(broker.bootstrap_servers)


@pytest.fixture
def group():
    return unique("group")


@pytest.fixture
def thread(broker, topic, group):
    """Makes StreamThreads played by hand; whatever is left of them leaves at the end."""
    made: list[HandThread] = []

    def make(name: str, **settings) -> HandThread:
        made.append(HandThread(connector(broker.bootstrap_servers), group, topic, name, **settings))
        return made[-1]

    yield make
    for each in made:
        each.leave()


def test_a_single_member_gets_every_task(thread):
    alone = thread("a")
    settle(alone, until=lambda: balanced(alone))
    assert {task.partition for task in alone.tasks} == {0, 1, 2, 3}
    assert [type(event) for event in alone.events] == [Assigned]


def test_tasks_move_to_a_new_member_in_two_steps_and_are_committed_in_between(thread, topic):
    old, new = thread("a"), thread("b")
    settle(old, until=lambda: balanced(old))
    committed_in: dict[int, int] = {}

    def commit(revoked):
        offsets = {TopicPartition(topic, task.partition): CommittedOffset(40 + task.partition) for task in revoked}
        old.membership.commit(offsets, 5_000)
        committed_in.update({task.partition: old.plans[-1].generation_id for task in revoked})

    old.on_revoke = commit
    settle(old, new, until=lambda: balanced(old, new))

    assert len(committed_in) == 2
    given = next(plan for plan in new.plans if plan.plan.active)
    assert {task.partition for task in given.plan.active} == set(committed_in)
    assert all(generation < given.generation_id for generation in committed_in.values())
    moved = [TopicPartition(topic, partition) for partition in committed_in]
    assert new.membership.committed(moved, 5_000) == {p: CommittedOffset(40 + p.partition) for p in moved}


def test_tasks_of_a_member_that_leaves_are_taken_over_at_once(thread):
    first, second = thread("a"), thread("b")
    settle(first, second, until=lambda: balanced(first, second))
    second.tasks = set()
    second.leave()
    settle(first, until=lambda: balanced(first), seconds=2)


def test_enforced_rebalance_makes_a_new_generation_from_any_member(thread):
    threads = [thread("a"), thread("b")]
    settle(*threads, until=lambda: balanced(*threads))
    for each in threads:
        before = each.plans[-1].generation_id
        each.membership.enforce_rebalance("a test wants it")
        settle(*threads, until=lambda before=before: all(t.plans[-1].generation_id > before for t in threads))
        assert balanced(*threads)


def test_commits_are_possible_until_the_thread_agrees_to_the_rebalance(thread, topic):
    held = thread("a")
    settle(held, until=lambda: balanced(held))
    offsets = {TopicPartition(topic, 0): CommittedOffset(5)}
    held.membership.enforce_rebalance("test")

    def next_event():
        held.membership.run_once()
        return held.membership.poll()

    event = wait_for(next_event, "the call to rebalance")
    assert isinstance(event, Rebalancing) and held.membership.can_commit()
    held.membership.commit(offsets, 5_000)
    held.membership.acknowledge(event, held.report())
    assert not held.membership.can_commit()
    with pytest.raises(CommitDeferredError, match="after the next assignment"):
        held.membership.commit(offsets, 5_000)
    assert isinstance(wait_for(next_event, "the next plan"), Assigned)
    held.membership.commit(offsets, 5_000)


def test_a_member_that_was_silent_too_long_is_told_so_and_comes_back(thread, topic):
    silent, other = thread("a", session_timeout_ms=6_000), thread("b")
    settle(silent, other, until=lambda: balanced(silent, other))
    kept, silent.tasks = silent.tasks, set()
    settle(other, until=lambda: len(other.tasks) == 4, seconds=12)  # silent is not stepped: its session ends
    with pytest.raises(TaskMigratedError, match="UNKNOWN_MEMBER_ID"):
        silent.membership.commit({TopicPartition(topic, next(iter(kept)).partition): CommittedOffset(1)}, 5_000)
    settle(silent, other, until=lambda: balanced(silent, other))
    lost = next(event for event in silent.events if isinstance(event, Lost))
    assert "UNKNOWN_MEMBER_ID" in lost.reason


def test_a_thread_that_does_not_poll_gives_its_tasks_up(thread):
    stuck, other = thread("a", max_poll_interval_ms=1_500), thread("b")
    settle(stuck, other, until=lambda: balanced(stuck, other))
    stuck.tasks = set()

    def go_on_without_its_thread():
        stuck.membership.run_once()
        return len(other.tasks) == 4

    settle(other, until=go_on_without_its_thread, seconds=6)
    assert stuck.membership.phase is MembershipPhase.LOST
    settle(stuck, other, until=lambda: balanced(stuck, other))
    assert "did not poll for 1500 ms" in next(event.reason for event in stuck.events if isinstance(event, Lost))


def test_a_leader_that_dies_between_join_and_sync_is_replaced(broker, topic, group, thread):
    leader = RawMember(connector(broker.bootstrap_servers), group, topic)
    leader.session_timeout_ms = leader.rebalance_timeout_ms = 6_000
    assert leader.join().leader == leader.member_id  # ... and never syncs
    leader.close()
    follower = thread("a")
    settle(follower, until=lambda: balanced(follower), seconds=15)


def test_a_static_member_that_restarts_gets_its_tasks_back_and_nobody_notices(thread):
    first, second = thread("a", group_instance_id="slot-0"), thread("b", group_instance_id="slot-1")
    settle(first, second, until=lambda: balanced(first, second))
    for old, other, instance in ((first, second, "slot-0"), (second, first, "slot-1")):  # one of them leads
        seen = len(other.events)
        generation = old.plans[-1].generation_id
        again = thread(old.name, group_instance_id=instance)
        kept, old.tasks = old.tasks, set()
        settle(again, other, until=lambda again=again: bool(again.plans))
        assert again.tasks == kept
        assert again.plans[-1].generation_id == generation
        assert len(other.events) == seen
        other.step()


def test_the_twin_of_a_static_member_is_stopped(thread, topic):
    old = thread("a", group_instance_id="slot-0")
    settle(old, until=lambda: balanced(old))
    new = thread("a", group_instance_id="slot-0")
    kept, old.tasks = old.tasks, set()
    settle(new, until=lambda: new.tasks == kept)
    with pytest.raises(TaskMigratedError, match="same group.instance.id"):
        old.membership.commit({TopicPartition(topic, 0): CommittedOffset(1)}, 5_000)
    settle(old, until=lambda: any(isinstance(event, Fatal) for event in old.events))
    assert "another process has the same group.instance.id" in old.events[-1].reason
    new.membership.commit({TopicPartition(topic, 0): CommittedOffset(1)}, 5_000)


def test_a_static_member_that_restarts_with_something_new_to_say_makes_the_leader_hear_it(thread):
    first = thread("a", group_instance_id="slot-0", endpoint="host-a:1")
    second = thread("b", group_instance_id="slot-1", endpoint="host-b:1")
    settle(first, second, until=lambda: balanced(first, second))
    again = thread("b", group_instance_id="slot-1", endpoint="host-b:2")
    second.tasks = set()
    settle(first, again, until=lambda: bool(again.plans) and "host-b:2" in first.plans[-1].plan.endpoints)
    assert set(again.plans[-1].plan.endpoints) == {"host-a:1", "host-b:2"}
    assert balanced(first, again)


def test_a_member_of_another_kind_is_refused_and_so_is_ours_in_its_group(broker, topic, group, thread):
    ours = thread("a")
    settle(ours, until=lambda: balanced(ours))
    stranger = RawMember(connector(broker.bootstrap_servers), group, topic)
    assert stranger.join(protocol="range").code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert stranger.join(protocol_type="connect").code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    stranger.close()

    theirs = RawMember(connector(broker.bootstrap_servers), unique("group"), topic)
    assert theirs.join(protocol="range").code is ErrorCode.NONE
    lost = HandThread(connector(broker.bootstrap_servers), theirs.group, topic, "b")
    settle(lost, until=lambda: bool(lost.events))
    assert isinstance(lost.events[0], Fatal)
    assert "in use by another kind of client" in lost.events[0].reason
    theirs.leave()
    theirs.close()
    lost.leave()


def test_a_consumer_of_the_newer_protocol_cannot_take_the_group_over(broker, topic, group, thread):
    ours = thread("a")
    settle(ours, until=lambda: balanced(ours))
    errors: list[ck.KafkaError] = []
    intruder = ck.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "group.protocol": "consumer",
            "error_cb": errors.append,
        }
    )
    intruder.subscribe([topic])

    def refused():
        message = intruder.poll(0.05)
        if message is not None and message.error() is not None:
            errors.append(message.error())
        return any("group id does not exist" in error.str() for error in errors)  # a fatal error hides the code

    try:
        settle(ours, until=refused)
    finally:
        intruder.close()
    ours.step()
    assert [type(event) for event in ours.events] == [Assigned]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})  # answers only while it is referred to
    seen = admin.describe_consumer_groups([group])[group].result(10)
    assert seen.partition_assignor == "streamfleet-1"
    assert [len(member.assignment.topic_partitions) for member in seen.members] == [4]


def test_a_session_time_out_the_broker_does_not_accept_is_fatal(thread):
    hasty = thread("a", session_timeout_ms=1_000)
    settle(hasty, until=lambda: bool(hasty.events))
    assert isinstance(hasty.events[0], Fatal)
    assert "does not accept a session time-out of 1000 ms" in hasty.events[0].reason
