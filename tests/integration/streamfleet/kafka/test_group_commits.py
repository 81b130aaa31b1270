"""What the broker answers to a commit in every state of the group, transactional or not: the facts that fencing stands on."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient
from tests.integration.streamfleet.kafka.group_actors import (
    RawMember,
    RawTransaction,
    connector,
    create_topic,
    join_together,
    make_stable,
    plan,
    unique,
    wait_for,
)

from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.group_messages import JoinAnswer

OK = ErrorCode.NONE


@pytest.fixture(scope="module")
def topic(broker):
    return create_topic(broker.bootstrap_servers)


@pytest.fixture
def member(broker, topic):
    """Makes members of one group; those that are left leave."""
    group = unique("group")
    made: list[RawMember] = []

    def make(**options) -> RawMember:
        made.append(RawMember(connector(broker.bootstrap_servers), group, topic, **options))
        return made[-1]

    yield make
    for each in made:
        if each.member_id:
            each.leave()
        each.close()


@pytest.fixture
def transaction(broker):
    made: list[RawTransaction] = []

    def make(member: RawMember, transactional_id: str | None = None) -> RawTransaction:
        made.append(RawTransaction(connector(broker.bootstrap_servers), member, transactional_id))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_dynamic_member_is_given_an_id_before_it_may_join(member):
    new = member()
    new.begin_join()
    asked = new.end_join()
    assert asked.code is ErrorCode.MEMBER_ID_REQUIRED and asked.member_id
    new.begin_join()
    joined = new.end_join()
    assert (joined.code, joined.member_id, joined.leader) == (OK, asked.member_id, asked.member_id)
    assert joined.protocol_name == "streamfleet-1"
    assert [each.member_id for each in joined.members] == [asked.member_id]


def test_a_static_member_joins_without_that_round(member):
    new = member(instance="slot-0")
    new.begin_join()
    assert new.end_join().code is OK


def test_stable_group_accepts_its_own_generation_and_no_other(member, transaction):
    alone = member()
    make_stable(alone)
    txn = transaction(alone)
    for commit in (alone.commit, txn.commit_offset):
        assert commit() is OK
        assert commit(generation_id=alone.generation - 1) is ErrorCode.ILLEGAL_GENERATION
        assert commit(generation_id=alone.generation + 1) is ErrorCode.ILLEGAL_GENERATION
        assert commit(member_id="nobody") is ErrorCode.UNKNOWN_MEMBER_ID
        assert commit(group_instance_id="slot-9") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_without_generation_is_refused_by_a_live_group_unless_it_is_transactional(member, transaction):
    alone = member()
    make_stable(alone)
    outside = {"generation_id": -1, "member_id": ""}
    assert alone.commit(**outside) is ErrorCode.UNKNOWN_MEMBER_ID
    assert transaction(alone).commit_offset(**outside) is OK  # so nothing but the generation fences a transaction


def test_an_empty_group_accepts_commits_without_generation_only(member, transaction):
    gone = member()
    make_stable(gone)
    txn = transaction(gone)
    assert gone.leave() is OK
    for commit in (gone.commit, txn.commit_offset):
        assert commit() is ErrorCode.UNKNOWN_MEMBER_ID
        assert commit(generation_id=-1, member_id="") is OK
    assert gone.leave() is ErrorCode.UNKNOWN_MEMBER_ID  # told by the inner code


def test_while_others_wait_for_us_commits_with_the_old_generation_are_good(member, transaction):
    old, new = member(), member()
    make_stable(old)
    txn = transaction(old)
    new.begin_join()
    new.end_join()
    new.begin_join()
    wait_for(lambda: new.pending() and old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS, "the rebalance")
    assert old.commit() is OK
    assert txn.commit_offset() is OK
    assert old.join().code is OK and new.end_join().code is OK


def test_between_join_and_sync_only_transactions_of_the_new_generation_are_good(member, transaction):
    alone = member()
    make_stable(alone)
    txn = transaction(alone)
    before = alone.generation
    assert alone.join(b"changed").generation_id > before
    assert alone.commit() is ErrorCode.REBALANCE_IN_PROGRESS
    assert alone.commit(generation_id=before) is ErrorCode.ILLEGAL_GENERATION
    assert txn.commit_offset() is OK
    assert txn.commit_offset(generation_id=before) is ErrorCode.ILLEGAL_GENERATION
    assert alone.sync(alone).code is OK
    assert alone.commit() is OK


def test_a_deleted_group_is_not_found(broker, member):
    gone = member()
    make_stable(gone)
    gone.leave()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_consumer_groups([gone.group])[gone.group].result(10)
    assert gone.commit() is ErrorCode.GROUP_ID_NOT_FOUND
    assert gone.commit(generation_id=-1, member_id="") is OK
    gone.member_id = ""


@pytest.mark.parametrize("is_transactional", [False, True])
def test_a_group_that_is_not_there_is_founded_by_a_commit_without_generation(member, transaction, is_transactional):
    nobody = member()
    assert (nobody.generation, nobody.member_id) == (-1, "")
    assert (transaction(nobody).commit_offset(5) if is_transactional else nobody.commit(5)) is OK
    stable = wait_for(lambda: (got := nobody.committed())[0] is OK and got[1], "the offset")
    assert stable.offset == 5


def test_a_group_that_is_not_there_knows_no_generation(member, transaction):
    nobody, anything = member(), {"generation_id": 3, "member_id": "somebody"}
    assert nobody.commit(**anything) is ErrorCode.GROUP_ID_NOT_FOUND
    assert transaction(nobody).commit_offset(**anything) is ErrorCode.ILLEGAL_GENERATION


def test_a_commit_beside_an_open_transaction_wins_over_the_transactions_offset(member, transaction):
    alone = member()
    make_stable(alone)
    txn = transaction(alone)
    assert txn.add_offset(12) is OK
    assert alone.commit(20) is OK
    assert txn.end(commit=True) is OK
    stable = wait_for(lambda: (got := alone.committed())[0] is OK and got[1], "the offset")
    assert stable.offset == 20


def test_metadata_and_partitions_are_checked_but_ownership_and_sign_are_not(member, transaction):
    alone = member()
    make_stable(alone)
    assert alone.commit(partition=3) is OK  # partition 0 is the assigned one
    assert alone.commit(-5) is OK
    assert transaction(alone).commit_offset(-5) is OK
    assert alone.commit(meta="x" * 4096) is OK
    assert alone.commit(meta="x" * 4097) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert alone.commit(partition=77) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_follower_with_unchanged_bytes_gets_the_current_generation_and_with_changed_ones_a_new_one(member):
    first, second = member(), member()
    leader = make_stable(first, second)
    follower = second if leader is first else first
    before = leader.generation
    assert follower.join(b"data").generation_id == before
    follower.begin_sync()
    assert follower.end_sync().code is OK
    assert leader.heartbeat() is OK
    follower.begin_join(b"changed")
    wait_for(lambda: follower.pending() and leader.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS, "the rebalance")
    leader.begin_join()
    leader.pending()
    assert leader.end_join().generation_id == follower.end_join().generation_id > before


def test_a_static_member_that_replaced_another_fences_it_everywhere(member, topic):
    old, new = member(instance="slot-0"), member(instance="slot-0")
    make_stable(old)
    answer: JoinAnswer = new.join()
    assert (answer.code, answer.generation_id, answer.skip_assignment) == (OK, old.generation, True)
    assert new.sync().assignment == plan(topic, (old,), b"data")[old.member_id]
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert (old.heartbeat(), old.commit(), old.leave()) == (fenced, fenced, fenced)
    assert old.sync().code is fenced
    assert new.commit() is OK
    old.member_id = ""


def test_offsets_of_an_open_transaction_are_unstable_until_it_ends(member, transaction):
    alone = member()
    make_stable(alone)
    assert alone.commit(11) is OK
    txn = transaction(alone)
    assert txn.add_offset(12) is OK
    assert alone.committed()[0] is ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert alone.committed(require_stable=False)[1].offset == 11
    assert txn.end(commit=True) is OK
    stable = wait_for(lambda: (got := alone.committed())[0] is OK and got[1], "the offset")
    assert stable.offset == 12


def test_followers_see_no_members_and_the_leader_sees_all(member):
    answers = join_together(member(), member())
    assert sorted(len(answer.members) for answer in answers) == [0, 2]
    assert len({answer.generation_id for answer in answers}) == 1
