"""Streams groups (KIP-1071) on the real broker: who gets which task when, what is fenced, what is refused."""

from __future__ import annotations

import pytest
from tests.integration.streamfleet.kafka.group_actors import (
    CLOCK,
    RawMember,
    RawTransaction,
    create_topic,
    make_stable,
    unique,
    wait_for,
)
from tests.integration.streamfleet.kafka.streams_group_actors import (
    SESSION_MS,
    Group,
    HandStreamsThread,
    LossyConnector,
    RawStreamsMember,
    connector,
    settle,
    shared,
)

from streamfleet.assignment.snapshot import TaskKey
from streamfleet.errors import ConfigError
from streamfleet.kafka.coordinator import CoordinatorLine
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.errors import GroupFatalError, TaskMigratedError, TopologyRefusedError
from streamfleet.kafka.group_events import Fatal, Lost
from streamfleet.kafka.offset_messages import CommittedOffset
from streamfleet.kafka.streams_group.group_settings import share_standbys
from streamfleet.kafka.streams_group.topology import GroupSubTopology, GroupTopology
from streamfleet.kafka.streams_group.values import GroupStatus

TASKS = 8
"""Two sub-topologies of four partitions."""


class Scene:
    """A group of its own, and everybody who takes part in it; all are closed at the end."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.connect = connector(bootstrap)
        self.group_id, self.topic = unique("streams"), create_topic(bootstrap)
        self.group = Group(self.connect, self.group_id)
        self._open: list = [self.group]

    def raw(self, topology: GroupTopology | None = None, group: str | None = None) -> RawStreamsMember:
        return self._keep(RawStreamsMember(self.connect, group or self.group_id, self.topic, topology))

    def thread(self, name: str, connect=None, endpoint: str | None = None) -> HandStreamsThread:
        return self._keep(HandStreamsThread(connect or self.connect, self.group_id, self.topic, name, endpoint))

    def classic(self) -> RawMember:
        return self._keep(RawMember(self.connect, self.group_id, self.topic))

    def transaction(self, member: RawStreamsMember) -> RawTransaction:
        return self._keep(RawTransaction(self.connect, member))

    def pair(self) -> tuple[RawStreamsMember, RawStreamsMember]:
        """Two raw members, each with half of the tasks."""
        one, other = self.raw(), self.raw()
        one.until(lambda: len(one.owned.active) == TASKS)
        one.until(lambda: len(one.owned.active) == len(other.owned.active) == TASKS // 2, other)
        return one, other

    def _keep(self, each):
        self._open.append(each)
        return each

    def close(self) -> None:
        for each in self._open:
            each.close()


@pytest.fixture
def scene(broker):
    made = Scene(broker.bootstrap_servers)
    yield made
    made.close()


def test_members_share_the_tasks_and_none_is_ever_in_two_places(scene, admin):
    one, two, three = scene.thread("one"), scene.thread("two"), scene.thread("three")
    settle(one, until=lambda: shared(one, tasks=TASKS))
    changelog = admin.describe_topics([f"{scene.group_id}-counts-changelog"])
    assert [topic.partitions for topic in changelog.values()] == [4], "made by the broker"
    committed = []

    def commit(_revoked) -> None:
        """With the epoch under which the tasks were run."""
        one.membership.commit(dict.fromkeys(one.sources(), CommittedOffset(5)), 5_000)
        committed.extend(one.sources())

    one.on_revoke = commit
    settle(one, two, until=lambda: shared(one, two, tasks=TASKS))
    assert set(two.sources()) < set(committed)
    settle(one, two, three, until=lambda: shared(one, two, three, tasks=TASKS))
    found = two.membership.committed(committed, 5_000)
    assert {offset.offset for offset in found.values()} == {5} and found.keys() == set(committed)
    two.leave()
    two.tasks = set()
    settle(one, three, until=lambda: shared(one, three, tasks=TASKS))
    assert not any(isinstance(event, Lost | Fatal) for thread in (one, two, three) for event in thread.events)


def test_a_plan_that_was_lost_on_its_way_is_found_out(scene):
    lossy = LossyConnector(scene.connect)
    one, two = scene.thread("one", lossy), scene.thread("two")
    settle(one, until=lambda: shared(one, tasks=TASKS))
    lossy.loses = True

    def heard() -> bool:
        """The broker has told the first one, which did not hear it, to give tasks up."""
        rows = {member.process_id: member for member in scene.group.describe().members}
        return len(rows) == 2 and len(rows["one"].tasks.active) == TASKS // 2

    settle(one, two, until=heard)
    assert len(one.tasks) == TASKS and lossy.lost > 0
    lossy.loses = False
    settle(one, two, until=lambda: shared(one, two, tasks=TASKS))
    assert not any(isinstance(event, Lost) for event in one.events)


def test_a_silent_member_is_given_up_after_its_session_and_cannot_commit_any_more(scene):
    one, two = scene.thread("one"), scene.thread("two")
    settle(one, two, until=lambda: shared(one, two, tasks=TASKS))
    held = one.sources()
    began = CLOCK.now_ms()
    settle(two, until=lambda: len(two.tasks) == TASKS)
    assert CLOCK.now_ms() - began >= SESSION_MS // 2
    with pytest.raises(TaskMigratedError, match="UNKNOWN_MEMBER_ID"):
        one.membership.commit(dict.fromkeys(held, CommittedOffset(9)), 5_000)
    one.tasks = set()  # as the StreamThread does
    settle(one, two, until=lambda: shared(one, two, tasks=TASKS))
    assert any(isinstance(event, Lost) for event in one.events)


def test_a_member_that_stood_still_hears_that_it_was_given_up(scene):
    one, two = scene.thread("one"), scene.thread("two")
    settle(one, two, until=lambda: shared(one, two, tasks=TASKS))
    settle(two, until=lambda: len(two.tasks) == TASKS)
    one.tasks = set()
    settle(one, until=lambda: isinstance(one.events[-1], Lost))
    settle(one, two, until=lambda: shared(one, two, tasks=TASKS))


def test_commits_are_fenced_by_the_member_epoch(scene):
    member, other = scene.pair()
    [mine, *_], [theirs, *_] = member.partitions(), other.partitions()
    older, newer = {"generation_id": member.epoch - 1}, {"generation_id": member.epoch + 1}
    transaction = scene.transaction(member)

    def both(partition: int, **changes) -> tuple[ErrorCode, ErrorCode]:
        member.commit(partition)  # what is said last is what counts, whatever was said before
        return member.commit(partition, **changes), transaction.commit_offset(partition=partition, **changes)

    stale = (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION)
    assert both(mine) == (ErrorCode.NONE, ErrorCode.NONE)
    assert both(mine, **older) == (ErrorCode.NONE, ErrorCode.NONE)
    assert both(theirs, **older) == stale
    assert both(mine, **newer) == stale
    assert both(mine, member_id="stranger") == (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID)
    assert member.beat(member_epoch=member.epoch + 1).code is ErrorCode.FENCED_MEMBER_EPOCH
    assert member.leave() is ErrorCode.NONE
    assert both(mine) == (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID)


def test_standbys_are_given_by_the_group_s_own_setting(scene):
    line = CoordinatorLine(scene.connect, CLOCK, scene.group_id)
    try:
        share_standbys(line, scene.group_id, 1, CLOCK.now_ms() + 10_000)
        with pytest.raises(ConfigError, match="num.standby.replicas cannot be 99"):
            share_standbys(line, scene.group_id, 99, CLOCK.now_ms() + 10_000)
    finally:
        line.close()
    one, two = scene.thread("one"), scene.thread("two")

    def covered() -> bool:
        counts = {TaskKey("count", partition) for partition in range(4)}
        crossed = not one.tasks & one.standby and not two.tasks & two.standby
        return shared(one, two, tasks=TASKS) and one.standby | two.standby == counts and crossed

    settle(one, two, until=covered)
    two.leave()
    two.tasks = two.standby = set()
    settle(one, until=lambda: len(one.tasks) == TASKS and not one.standby)


def test_everybody_learns_where_queries_are_answered(scene):
    one, two = scene.thread("one", endpoint="one.example:80"), scene.thread("two", endpoint="two.example:81")

    def known() -> bool:
        plan = one.plans[-1] if one.plans else None
        return shared(one, two, tasks=TASKS) and plan is not None and plan.endpoints.keys() >= {"two.example:81"}

    def agreed() -> bool:
        expected = {"one.example:80": tuple(sorted(one.tasks)), "two.example:81": tuple(sorted(two.tasks))}
        return known() and one.plans[-1].endpoints == two.plans[-1].endpoints == expected

    settle(one, two, until=agreed)


def test_one_member_ends_the_whole_application_and_the_next_start_is_not_ended(scene):
    one, two = scene.thread("one"), scene.thread("two")
    settle(one, two, until=lambda: shared(one, two, tasks=TASKS))
    one.shuts_down = True
    one.membership.enforce_rebalance("application shutdown requested")
    settle(one, two, until=lambda: one.plans[-1].shutdown and two.plans[-1].shutdown)
    one.leave()
    two.leave()
    again = scene.thread("again")
    settle(again, until=lambda: len(again.tasks) == TASKS)
    assert not any(plan.shutdown for plan in again.plans)


def test_another_topology_is_refused_until_the_group_is_deleted(scene, admin):
    first = scene.raw()
    first.until(lambda: len(first.owned.active) == TASKS)
    other = GroupTopology(0, (GroupSubTopology("0", (scene.topic,), (), (), (), ()),))

    def refused() -> bool:
        answer = scene.raw(other).beat()
        return (answer.code, answer.message) == (ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")

    assert refused()
    first.leave()
    assert refused(), "also while nobody is in the group"
    deleting = admin._client.delete_consumer_groups([scene.group_id])[scene.group_id]
    deleting.result(20)
    assert scene.raw(other).beat().code is ErrorCode.NONE


def test_a_member_with_another_topology_fails_with_what_to_do(scene):
    first = scene.raw(GroupTopology(0, (GroupSubTopology("0", (scene.topic,), (), (), (), ()),)))
    first.until(lambda: len(first.owned.active) == 4)
    thread = scene.thread("one")
    settle(thread, until=lambda: bool(thread.events))
    [event] = thread.events
    assert isinstance(event, Fatal) and isinstance(event.cause, TopologyRefusedError)
    assert "streamfleet worker reset" in event.reason and "new application.id" in event.reason


def test_topics_that_do_not_fit_are_named(scene):
    narrow = create_topic(scene.bootstrap, partitions=2)
    joined = GroupSubTopology("0", (scene.topic, narrow), (), (), (), (((0, 1), ()),))
    member = scene.raw(GroupTopology(0, (joined,)), unique("joined"))

    def not_fitting() -> str | None:
        """Before the coordinator has seen a new topic, it is only missing."""
        statuses = member.beat().statuses
        return next(
            (each.detail for each in statuses if each.status is GroupStatus.INCORRECTLY_PARTITIONED_TOPICS), None
        )

    assert narrow in wait_for(not_fitting, "a status")
    missing = GroupTopology(0, (GroupSubTopology("0", ("nowhere-at-all",), (), (), (), ()),))
    [answer] = scene.raw(missing, unique("missing")).beat().statuses
    assert answer.status is GroupStatus.MISSING_SOURCE_TOPICS and "nowhere-at-all" in answer.detail


def test_the_two_protocols_do_not_mix_and_an_empty_group_goes_from_one_to_the_other(scene):
    classic = scene.classic()
    make_stable(classic)
    thread = scene.thread("one")
    settle(thread, until=lambda: bool(thread.events))
    [event] = thread.events
    assert isinstance(event, Fatal) and isinstance(event.cause, GroupFatalError)
    assert "group.protocol=classic" in event.reason
    classic.leave()
    member = scene.raw()
    member.until(lambda: len(member.owned.active) == TASKS)
    assert scene.classic().join().code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    member.leave()
    back = scene.classic()
    assert back.join().code is ErrorCode.NONE, "an empty streams group becomes a classic one"


def test_a_changelog_that_is_deleted_is_made_again_by_the_broker_and_the_member_that_sees_it_fails(scene, admin):
    changelog = f"{scene.group_id}-counts-changelog"
    thread = scene.thread("one")
    settle(thread, until=lambda: shared(thread, tasks=TASKS))
    before = admin.describe_topics([changelog])[changelog].topic_id
    admin.delete_topics([changelog])
    settle(thread, until=lambda: isinstance(thread.events[-1], Fatal))
    assert changelog in thread.events[-1].reason and "reset the app" in thread.events[-1].reason
    again = wait_for(lambda: admin.describe_topics([changelog]).get(changelog), "the broker to make it again")
    assert again.topic_id != before
