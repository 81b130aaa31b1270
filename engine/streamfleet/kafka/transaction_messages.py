"""Transactions on the wire, as far as the producer library does not do it: offsets into the transaction, the end of a
transaction without records, and the fencing of a producer that is gone.

Called by transaction_client.py. Versions stay below the second transaction protocol because the producer's half of
every transaction does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka.protocol.producer.transaction import (  # type: ignore[import-untyped]
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

from streamfleet.ids import TopicPartition
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.group_messages import ConsumerGroupMetadata, PlainAnswer
from streamfleet.kafka.offset_messages import CommittedOffset, PartitionCodes, committed_topics, partition_codes
from streamfleet.kafka.wire import PINNED, Call
from streamfleet.ports import ProducerIdentity


@dataclass(frozen=True)
class ProducerIdAnswer:
    code: ErrorCode
    producer_id: int
    producer_epoch: int


def init_producer_id(transactional_id: str, *, transaction_timeout_ms: int) -> Call[ProducerIdAnswer]:
    """Raises the epoch of an id: its open transaction is aborted and its old producer is fenced."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=transaction_timeout_ms,
        producer_id=-1,
        producer_epoch=-1,
        version=PINNED["InitProducerId"],
    )
    return Call("InitProducerId", request, InitProducerIdResponse, _producer_id)


def add_offsets_to_txn(producer: ProducerIdentity, group_id: str) -> Call[PlainAnswer]:
    request = AddOffsetsToTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        group_id=group_id,
        version=PINNED["AddOffsetsToTxn"],
    )
    return Call("AddOffsetsToTxn", request, AddOffsetsToTxnResponse, _plain)


def txn_offset_commit(
    producer: ProducerIdentity, metadata: ConsumerGroupMetadata, offsets: Mapping[TopicPartition, CommittedOffset]
) -> Call[PartitionCodes]:
    version = PINNED["TxnOffsetCommit"]
    topic_class = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    request = TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id,
        group_id=metadata.group_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        generation_id=metadata.generation_id,
        member_id=metadata.member_id,
        group_instance_id=metadata.group_instance_id,
        topics=committed_topics(topic_class, topic_class.TxnOffsetCommitRequestPartition, offsets, version),
        version=version,
    )
    return Call("TxnOffsetCommit", request, TxnOffsetCommitResponse, partition_codes)


def end_txn(producer: ProducerIdentity, *, commit: bool) -> Call[PlainAnswer]:
    request = EndTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=commit,
        version=PINNED["EndTxn"],
    )
    return Call("EndTxn", request, EndTxnResponse, _plain)


def _producer_id(response: Any) -> ProducerIdAnswer:
    return ProducerIdAnswer(ErrorCode.of(response.error_code), response.producer_id, response.producer_epoch)


def _plain(response: Any) -> PlainAnswer:
    return PlainAnswer(ErrorCode.of(response.error_code))
