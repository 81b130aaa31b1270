from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer.group import HeartbeatResponse  # type: ignore[import-untyped]

from streamfleet.ids import TopicPartition
from streamfleet.kafka import wire
from streamfleet.kafka.address import Address
from streamfleet.kafka.connection_messages import API_KEYS, api_versions, sasl_authenticate, sasl_handshake, unsupported
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.group_messages import (
    ConsumerGroupMetadata,
    CoordinatorKind,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    sync_group,
)
from streamfleet.kafka.offset_messages import CommittedOffset, offset_commit, offset_fetch
from streamfleet.kafka.streams_group import heartbeat as streams_group
from streamfleet.kafka.streams_group.describe import describe
from streamfleet.kafka.streams_group.group_settings import set_group_settings
from streamfleet.kafka.streams_group.topology import GroupSubTopology, GroupTopology, InternalTopicInfo
from streamfleet.kafka.streams_group.values import BrokerTask, TaskSets
from streamfleet.kafka.transaction_messages import (
    add_offsets_to_txn,
    end_txn,
    init_producer_id,
    txn_offset_commit,
)
from streamfleet.ports import ProducerIdentity

ME = ConsumerGroupMetadata("group", 3, "me", "slot-0")
PRODUCER = ProducerIdentity("txn", 7, 2)
OFFSETS = {TopicPartition("t", 1): CommittedOffset(5, "note"), TopicPartition("t", 0): CommittedOffset(4)}
CHANGELOG = InternalTopicInfo("changelog", 0, -1, {"cleanup.policy": "compact"})
PART = GroupSubTopology("0", ("t",), (InternalTopicInfo("r", 2, 3, {}),), ("r",), (CHANGELOG,), (((0,), (0,)),))
FACTS = streams_group.MemberFacts(
    "group", "me", "process", GroupTopology(0, (PART,)), 9, Address("host", 65_000), "rack", {"zone": "a"}
)
EVERY_CALL = [
    api_versions("1"),
    sasl_handshake("PLAIN"),
    sasl_authenticate(b"token"),
    find_coordinator("group", CoordinatorKind.GROUP),
    join_group(ME, protocol="p", subscription=b"s", session_timeout_ms=1, rebalance_timeout_ms=2, reason="why"),
    sync_group(ME, protocol="p", assignments={"me": b"a"}),
    heartbeat(ME),
    leave_group(ME, reason="why"),
    offset_commit(ME, OFFSETS),
    offset_fetch("group", OFFSETS),
    init_producer_id("txn", transaction_timeout_ms=1),
    add_offsets_to_txn(PRODUCER, "group"),
    txn_offset_commit(PRODUCER, ME, OFFSETS),
    end_txn(PRODUCER, commit=True),
    streams_group.heartbeat(FACTS, member_epoch=0, owned=TaskSets(frozenset({BrokerTask("0", 1)}))),
    streams_group.heartbeat(FACTS, member_epoch=-1),
    describe("group"),
    set_group_settings("group", {"streams.num.standby.replicas": "1"}),
]


def test_there_is_a_call_for_every_pinned_version_and_a_number_for_every_call():
    assert {call.name for call in EVERY_CALL} == set(wire.PINNED) == set(API_KEYS.values())


@pytest.mark.parametrize("call", EVERY_CALL, ids=lambda call: call.name)
def test_every_call_reads_back_from_its_bytes_at_its_pinned_version(call):
    encoded = wire.encode(call, 42, "client")
    (length, key, version, correlation_id) = struct.unpack_from(">ihhi", encoded)
    assert length == len(encoded) - 4
    assert (API_KEYS[key], version, correlation_id) == (call.name, wire.PINNED[call.name], 42)
    again = type(call.request).decode(encoded[4:], version=version, header=True)
    assert repr(again) == repr(call.request)  # structs that two fields share are equal in nothing else


@pytest.mark.parametrize("call", EVERY_CALL, ids=lambda call: call.name)
def test_a_call_can_be_sent_again_with_another_correlation_id(call):
    first, second = wire.encode(call, 1, "client"), wire.encode(call, 2, "client")
    assert len(first) == len(second) and first != second


def heartbeat_frame(correlation_id: int, code: int, tagged: bytes = b"\x00") -> bytes:
    body = HeartbeatResponse(throttle_time_ms=0, error_code=code, version=4).encode(version=4)
    return struct.pack(">i", correlation_id) + tagged + bytes(body)


def test_an_answer_is_read_behind_its_header():
    assert wire.decode(heartbeat(ME), 9, heartbeat_frame(9, 27)).code is ErrorCode.REBALANCE_IN_PROGRESS


def test_tagged_fields_in_the_header_are_skipped():
    tagged = b"\x02" + b"\x00\x03abc" + b"\x01\x00"
    assert wire.decode(heartbeat(ME), 9, heartbeat_frame(9, 25, tagged)).code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_code_nobody_knows_is_still_an_error():
    assert wire.decode(heartbeat(ME), 9, heartbeat_frame(9, 999)).code is ErrorCode.UNKNOWN_CODE


def test_the_answer_to_another_request_is_not_taken():
    with pytest.raises(ConnectionError, match="answered request 8, not 9"):
        wire.decode(heartbeat(ME), 9, heartbeat_frame(8, 0))


@given(st.lists(st.binary(min_size=4, max_size=40), max_size=5), st.lists(st.integers(1, 30), min_size=1))
def test_frames_come_out_whole_however_they_arrive(frames, sizes):
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)
    buffer, got, position, turn = wire.FrameBuffer(), [], 0, 0
    while position < len(stream):
        asked = min(buffer.missing, sizes[turn % len(sizes)])
        assert asked > 0
        buffer.feed(stream[position : position + asked])
        position, turn = position + asked, turn + 1
        if (frame := buffer.take()) is not None:
            got.append(frame)
    assert got == frames
    assert buffer.take() is None


@pytest.mark.parametrize(
    "received",
    [b"\xff\xff\xff\xff", b"\x15\x03\x03\x00", b"HTTP"],
    ids=["negative", "an alert of TLS", "text"],
)
def test_a_length_that_cannot_be_is_not_waited_for(received):
    buffer = wire.FrameBuffer()
    buffer.feed(received)
    length = int.from_bytes(received, "big", signed=True)
    with pytest.raises(ConnectionError, match=f"frame of {length} bytes; is this a Kafka listener, and are TLS"):
        buffer.take()


def test_a_broker_without_a_pinned_version_is_named_with_what_it_has():
    good = {name: (0, version) for name, version in wire.PINNED.items()}
    assert unsupported(good) == []
    assert unsupported({**good, "JoinGroup": (0, 8)}) == ["JoinGroup 9 (the broker has 0 to 8)"]
    without = {name: both for name, both in good.items() if name != "EndTxn"}
    assert unsupported(without) == ["EndTxn 3 (the broker has none)"]


def test_only_members_of_streams_groups_need_a_broker_that_has_them():
    ranges = {name: (0, version) for name, version in wire.PINNED.items() if name not in wire.STREAMS_GROUPS}
    assert unsupported(ranges) == []
    assert unsupported(ranges, not_needed=()) == [
        "StreamsGroupHeartbeat 0 (the broker has none)",
        "StreamsGroupDescribe 0 (the broker has none)",
        "IncrementalAlterConfigs 1 (the broker has none)",
    ]
