"""Members that fall silent at one step of the protocol: who finds out, when, and what the others are told."""

from __future__ import annotations

import pytest
from tests.integration.streamfleet.kafka.group_actors import (
    CLOCK,
    RawMember,
    connector,
    create_topic,
    join_together,
    make_stable,
    unique,
    wait_for,
)

from streamfleet.kafka.error_codes import ErrorCode

OK = ErrorCode.NONE
SESSION_MS = 6_000
"""The least that brokers accept."""
REBALANCE_MS = 2_000
EARLY_MS, LATE_MS = 1_000, 4_000
"""How much before and behind its time something may happen: the clocks of two processes, of which one may be busy."""


@pytest.fixture(scope="module")
def topic(broker):
    return create_topic(broker.bootstrap_servers)


@pytest.fixture
def member(broker, topic):
    """Makes members of one group."""
    group = unique("group")
    made: list[RawMember] = []

    def make(session_ms: int = SESSION_MS, rebalance_ms: int = 10_000) -> RawMember:
        new = RawMember(connector(broker.bootstrap_servers), group, topic)
        new.session_timeout_ms, new.rebalance_timeout_ms = session_ms, rebalance_ms
        made.append(new)
        return new

    yield make
    for each in made:
        each.close()


def leader_and_follower(*members: RawMember) -> tuple[RawMember, RawMember]:
    """In one generation, neither of them in sync."""
    answers = join_together(*members)
    leader = next(m for m, a in zip(members, answers, strict=True) if a.leader == m.member_id)
    (follower,) = set(members) - {leader}
    return leader, follower


def goes_on_alone(follower: RawMember) -> None:
    before = follower.generation
    joined = follower.join()
    assert (joined.code, joined.leader) == (OK, follower.member_id)
    assert joined.generation_id > before and [each.member_id for each in joined.members] == [follower.member_id]
    assert follower.sync(follower).code is OK
    assert follower.commit() is OK


def test_a_follower_that_waits_in_sync_is_told_when_the_session_of_its_dead_leader_is_over(member):
    leader, follower = leader_and_follower(member(), member())
    follower.begin_sync()
    assert follower.pending()
    leader.close()  # which nobody notices
    began_ms = CLOCK.now_ms()
    assert follower.end_sync().code is ErrorCode.REBALANCE_IN_PROGRESS
    assert SESSION_MS - EARLY_MS < CLOCK.now_ms() - began_ms < SESSION_MS + LATE_MS
    goes_on_alone(follower)


def test_a_leader_that_lives_and_never_syncs_is_out_after_the_rebalance_time_out(member):
    leader, follower = leader_and_follower(member(rebalance_ms=REBALANCE_MS), member(rebalance_ms=REBALANCE_MS))
    follower.begin_sync()
    began_ms = CLOCK.now_ms()

    def told() -> bool:
        leader.heartbeat()
        return not follower.pending()

    wait_for(told, "an answer to the follower")
    assert follower.end_sync().code is ErrorCode.REBALANCE_IN_PROGRESS
    assert CLOCK.now_ms() - began_ms < REBALANCE_MS + LATE_MS
    assert leader.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    goes_on_alone(follower)


def test_a_follower_that_lives_and_never_syncs_is_out_after_the_rebalance_time_out(member):
    leader, follower = leader_and_follower(member(rebalance_ms=REBALANCE_MS), member(rebalance_ms=REBALANCE_MS))
    assert leader.sync(leader, follower).code is OK
    began_ms = CLOCK.now_ms()

    def out() -> bool:
        return follower.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID

    wait_for(out, "the follower to be thrown out")
    assert REBALANCE_MS - EARLY_MS < CLOCK.now_ms() - began_ms < REBALANCE_MS + LATE_MS
    assert leader.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    goes_on_alone(leader)


def test_heartbeats_without_joining_again_keep_nobody_in_the_group_for_longer_than_the_rebalance_time_out(member):
    old, new = member(rebalance_ms=REBALANCE_MS), member(rebalance_ms=REBALANCE_MS)
    make_stable(old)
    new.begin_join()
    new.end_join()  # is given its id
    new.begin_join()
    began_ms = CLOCK.now_ms()
    answers: list[ErrorCode] = []

    def out() -> bool:
        new.pending()
        answers.append(old.heartbeat())
        return answers[-1] is ErrorCode.UNKNOWN_MEMBER_ID

    wait_for(out, "the old member to be thrown out")
    assert ErrorCode.REBALANCE_IN_PROGRESS in answers
    assert CLOCK.now_ms() - began_ms < REBALANCE_MS + LATE_MS
    assert old.commit() is ErrorCode.UNKNOWN_MEMBER_ID
    joined = new.end_join()
    assert (joined.code, joined.leader) == (OK, new.member_id)


def test_commits_count_as_heartbeats(member):
    alone = member()
    make_stable(alone)
    until_ms = CLOCK.now_ms() + SESSION_MS + 1_500
    while CLOCK.now_ms() < until_ms:
        assert alone.commit() is OK
        CLOCK.pause_ms(200)
    assert alone.heartbeat() is OK
