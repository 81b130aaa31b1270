from __future__ import annotations

import pytest
from tests.unit.streamfleet.kafka.scripted_coordinator import SILENCE, HandClock, ScriptedCoordinator

from streamfleet.ids import TopicPartition
from streamfleet.kafka.client_errors import FencedProducerError, UnknownTransactionOutcomeError
from streamfleet.kafka.coordinator import CoordinatorLine
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.errors import (
    AuthorizationError,
    GroupTimeoutError,
    OffsetRejectedError,
    TaskMigratedError,
    TransactionAbortableError,
)
from streamfleet.kafka.group_messages import ConsumerGroupMetadata, PlainAnswer
from streamfleet.kafka.offset_messages import CommittedOffset, PartitionCodes
from streamfleet.kafka.transaction_client import TransactionClient
from streamfleet.kafka.transaction_messages import ProducerIdAnswer
from streamfleet.ports import ProducerIdentity

ME = ConsumerGroupMetadata("group", 4, "me", None)
PRODUCER = ProducerIdentity("txn", 70, 3)
P0 = TopicPartition("t", 0)
OFFSETS = {P0: CommittedOffset(5)}
OK = PlainAnswer(ErrorCode.NONE)
BUSY = PlainAnswer(ErrorCode.CONCURRENT_TRANSACTIONS)


@pytest.fixture
def broker():
    scripted = ScriptedCoordinator(HandClock())
    for name, answer in (
        ("AddOffsetsToTxn", OK),
        ("EndTxn", OK),
        ("TxnOffsetCommit", PartitionCodes({P0: ErrorCode.NONE})),
        ("InitProducerId", ProducerIdAnswer(ErrorCode.NONE, 70, 4)),
    ):
        scripted.default(name, answer)
    return scripted


@pytest.fixture
def client(broker):
    return TransactionClient("group", lambda key, kind: CoordinatorLine(broker, broker.clock, key, kind), broker.clock)


def names(broker):
    return [call.name for call in broker.calls if call.name != "FindCoordinator"]


def test_offsets_are_announced_to_one_coordinator_and_sent_to_the_other(broker, client):
    client.add_offsets(PRODUCER, ME, OFFSETS, 1_000)
    assert names(broker) == ["AddOffsetsToTxn", "TxnOffsetCommit"]
    found = [(request.key_type, request.coordinator_keys) for request in broker.sent("FindCoordinator")]
    assert found == [(1, ["txn"]), (0, ["group"])]
    (request,) = broker.sent("TxnOffsetCommit")
    assert (request.transactional_id, request.producer_id, request.producer_epoch) == ("txn", 70, 3)
    assert (request.generation_id, request.member_id) == (4, "me")


def test_the_end_of_an_earlier_transaction_is_waited_for(broker, client):
    broker.script("AddOffsetsToTxn", BUSY, BUSY, OK)
    client.add_offsets(PRODUCER, ME, OFFSETS, 1_000)
    assert names(broker) == ["AddOffsetsToTxn"] * 3 + ["TxnOffsetCommit"]


def test_that_wait_ends_at_the_deadline(broker, client):
    broker.default("AddOffsetsToTxn", BUSY)
    with pytest.raises(GroupTimeoutError, match="waited in vain"):
        client.add_offsets(PRODUCER, ME, OFFSETS, 1_000)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.PRODUCER_FENCED, FencedProducerError),
        (ErrorCode.INVALID_PRODUCER_EPOCH, FencedProducerError),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, FencedProducerError),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, AuthorizationError),
        (ErrorCode.INVALID_TXN_STATE, TransactionAbortableError),
    ],
)
def test_a_refused_producer_says_what_to_do_next(broker, client, code, error):
    for name, attempt in (
        ("AddOffsetsToTxn", lambda: client.add_offsets(PRODUCER, ME, OFFSETS, 1_000)),
        ("EndTxn", lambda: client.end(PRODUCER, commit=True, timeout_ms=1_000)),
    ):
        broker.script(name, PlainAnswer(code))
        with pytest.raises(error):
            attempt()
    assert "TxnOffsetCommit" not in names(broker)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.ILLEGAL_GENERATION, TaskMigratedError),
        (ErrorCode.UNKNOWN_MEMBER_ID, TaskMigratedError),
        (ErrorCode.FENCED_INSTANCE_ID, TaskMigratedError),
        (ErrorCode.INVALID_PRODUCER_EPOCH, FencedProducerError),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, TransactionAbortableError),
    ],
)
def test_refused_offsets_say_what_to_do_next(broker, client, code, error):
    broker.script("TxnOffsetCommit", PartitionCodes({P0: code}))
    with pytest.raises(error):
        client.add_offsets(PRODUCER, ME, OFFSETS, 1_000)


def test_bad_offsets_do_not_touch_the_transaction(broker, client):
    with pytest.raises(OffsetRejectedError):
        client.add_offsets(PRODUCER, ME, {P0: CommittedOffset(-1)}, 1_000)
    assert broker.calls == []


def test_a_lost_connection_while_adding_offsets_is_mended(broker, client):
    broker.script("AddOffsetsToTxn", ConnectionResetError("gone"))
    broker.script("TxnOffsetCommit", ConnectionResetError("gone"))
    client.add_offsets(PRODUCER, ME, OFFSETS, 1_000)
    assert names(broker) == ["AddOffsetsToTxn"] * 2 + ["TxnOffsetCommit"] * 2


def test_offsets_that_may_still_arrive_a_second_time_are_not_taken_for_committed(broker, client):
    broker.script("TxnOffsetCommit", SILENCE)
    with pytest.raises(GroupTimeoutError, match="may arrive twice"):
        client.add_offsets(PRODUCER, ME, OFFSETS, 30_000)
    assert names(broker) == ["AddOffsetsToTxn"] + ["TxnOffsetCommit"] * 2


def test_the_end_of_a_transaction_is_never_sent_twice(broker, client):
    broker.script("EndTxn", ConnectionResetError("gone"))
    with pytest.raises(UnknownTransactionOutcomeError):
        client.end(PRODUCER, commit=True, timeout_ms=1_000)
    assert names(broker) == ["EndTxn"]


def test_an_end_that_waits_in_vain_has_an_unknown_outcome(broker, client):
    for _ in range(1000):
        broker.script("EndTxn", PlainAnswer(ErrorCode.CONCURRENT_TRANSACTIONS))
    with pytest.raises(UnknownTransactionOutcomeError, match="in vain"):
        client.end(PRODUCER, commit=True, timeout_ms=1_000)


def test_fencing_raises_the_epoch_of_the_id_and_waits_until_its_markers_are_written(broker, client):
    broker.script("InitProducerId", ProducerIdAnswer(ErrorCode.CONCURRENT_TRANSACTIONS, -1, -1))
    client.fence("dead", 1_000)
    asked = broker.sent("InitProducerId")
    assert [(request.transactional_id, request.producer_id) for request in asked] == [("dead", -1), ("dead", -1)]
