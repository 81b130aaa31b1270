from __future__ import annotations

import pytest
from tests.unit.streamfleet.kafka.scripted_coordinator import HandClock, ScriptedCoordinator

from streamfleet.ids import TopicPartition
from streamfleet.kafka.coordinator import CoordinatorLine
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.errors import (
    AuthorizationError,
    CommitDeferredError,
    FencedInstanceError,
    GroupTimeoutError,
    OffsetRejectedError,
    TaskMigratedError,
    UnstableOffsetError,
)
from streamfleet.kafka.group_messages import ConsumerGroupMetadata
from streamfleet.kafka.offset_client import OffsetClient
from streamfleet.kafka.offset_messages import CommittedOffset, FetchAnswer, PartitionCodes

ME = ConsumerGroupMetadata("group", 4, "me", "slot-0")
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
OFFSETS = {P0: CommittedOffset(5, "note"), P1: CommittedOffset(6)}


@pytest.fixture
def broker():
    return ScriptedCoordinator(HandClock())


@pytest.fixture
def client(broker):
    return OffsetClient("group", CoordinatorLine(broker, broker.clock, "group"), broker.clock)


def codes(first: ErrorCode, second: ErrorCode = ErrorCode.NONE) -> PartitionCodes:
    return PartitionCodes({P0: first, P1: second})


def fetched(first: ErrorCode = ErrorCode.NONE, *, group: ErrorCode = ErrorCode.NONE) -> FetchAnswer:
    return FetchAnswer(group, {P0: first, P1: ErrorCode.NONE}, {P1: CommittedOffset(9, "here")})


def test_a_commit_says_who_commits_what(broker, client):
    broker.script("OffsetCommit", codes(ErrorCode.NONE))
    client.commit(ME, OFFSETS, 1_000)
    (request,) = broker.sent("OffsetCommit")
    assert (request.group_id, request.generation_id_or_member_epoch) == ("group", 4)
    assert (request.member_id, request.group_instance_id) == ("me", "slot-0")
    rows = [(row.partition_index, row.committed_offset, row.committed_metadata) for row in request.topics[0].partitions]
    assert rows == [(0, 5, "note"), (1, 6, "")]


def test_nothing_to_commit_or_fetch_is_not_sent(broker, client):
    client.commit(ME, {}, 1_000)
    assert client.committed([], 1_000) == {}
    assert broker.calls == []


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.ILLEGAL_GENERATION, TaskMigratedError),
        (ErrorCode.UNKNOWN_MEMBER_ID, TaskMigratedError),
        (ErrorCode.GROUP_ID_NOT_FOUND, TaskMigratedError),
        (ErrorCode.FENCED_INSTANCE_ID, FencedInstanceError),
        (ErrorCode.REBALANCE_IN_PROGRESS, CommitDeferredError),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, AuthorizationError),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, AuthorizationError),
        (ErrorCode.OFFSET_METADATA_TOO_LARGE, OffsetRejectedError),
        (ErrorCode.UNKNOWN_CODE, OffsetRejectedError),
    ],
)
def test_a_refused_commit_says_what_to_do_next(broker, client, code, error):
    broker.script("OffsetCommit", codes(ErrorCode.NONE, code))  # one bad partition is enough
    with pytest.raises(error) as raised:
        client.commit(ME, OFFSETS, 1_000)
    assert type(raised.value) is error
    assert len(broker.sent("OffsetCommit")) == 1


def test_a_topic_that_the_broker_does_not_know_yet_is_waited_for(broker, client):
    unknown = codes(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    broker.script("OffsetCommit", unknown, unknown, codes(ErrorCode.NONE))
    client.commit(ME, OFFSETS, 1_000)
    assert len(broker.sent("OffsetCommit")) == 3


def test_a_topic_that_does_not_come_is_named_in_the_end(broker, client):
    broker.default("OffsetCommit", codes(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    with pytest.raises(OffsetRejectedError, match="t-0: UNKNOWN_TOPIC_OR_PARTITION"):
        client.commit(ME, OFFSETS, 1_000)


@pytest.mark.parametrize(
    ("bad", "message"),
    [(CommittedOffset(-5), "is negative"), (CommittedOffset(1, "x" * 4097), "longer than 4096 bytes")],
)
def test_what_the_broker_would_swallow_or_refuse_is_not_sent(broker, client, bad, message):
    with pytest.raises(OffsetRejectedError, match=message):
        client.commit(ME, {P0: bad}, 1_000)
    assert broker.calls == []


def test_fetching_always_asks_for_stable_offsets_and_gives_those_there_are(broker, client):
    broker.script("OffsetFetch", fetched())
    assert client.committed([P1, P0], 1_000) == {P1: CommittedOffset(9, "here")}
    (request,) = broker.sent("OffsetFetch")
    assert request.require_stable is True
    assert request.groups[0].topics[0].partition_indexes == [0, 1]


def test_unstable_offsets_are_waited_for(broker, client):
    broker.script("OffsetFetch", *[fetched(ErrorCode.UNSTABLE_OFFSET_COMMIT)] * 5, fetched())
    assert client.committed([P0, P1], 1_000) == {P1: CommittedOffset(9, "here")}


def test_unstable_offsets_have_their_own_time_out_that_names_them(broker, client):
    broker.default("OffsetFetch", fetched(ErrorCode.UNSTABLE_OFFSET_COMMIT))
    began = broker.clock.now_ms()
    with pytest.raises(UnstableOffsetError, match="offsets of t-0 is still open"):
        client.committed([P0, P1], 1_000)
    assert 1_000 <= broker.clock.now_ms() - began <= 1_100


def test_a_broker_that_is_away_is_another_time_out(broker, client):
    broker.default("OffsetFetch", ConnectionResetError("gone"))
    with pytest.raises(GroupTimeoutError) as raised:
        client.committed([P0], 1_000)
    assert type(raised.value) is GroupTimeoutError


def test_offsets_that_may_not_be_read_name_the_acl(broker, client):
    broker.script("OffsetFetch", fetched(group=ErrorCode.GROUP_AUTHORIZATION_FAILED))
    with pytest.raises(AuthorizationError, match="grant READ"):
        client.committed([P0], 1_000)
