from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfleet.ids import TopicPartition
from streamfleet.kafka import consumer_protocol
from streamfleet.kafka.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from streamfleet.kafka.errors import MalformedGroupDataError

topics = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)
partitions = st.sets(st.builds(TopicPartition, topics, st.integers(0, 2**31 - 1))).map(lambda s: tuple(sorted(s)))
user_data = st.binary(min_size=1, max_size=50)


@given(st.sets(topics).map(lambda s: tuple(sorted(s))), partitions, user_data)
def test_subscriptions_read_back(names, owned, data):
    subscription = Subscription(names, owned, data)
    assert decode_subscription(encode_subscription(subscription)) == subscription


@given(partitions, user_data)
def test_assignments_read_back(assigned, data):
    assignment = Assignment(assigned, data)
    assert decode_assignment(encode_assignment(assignment)) == assignment


def test_the_bytes_are_kafkas_consumer_protocol_version_1():
    encoded = encode_subscription(Subscription(("t",), (TopicPartition("t", 3),), b"d"))
    assert encoded == (
        b"\x00\x01"  # version
        b"\x00\x00\x00\x01\x00\x01t"  # topics
        b"\x00\x00\x00\x01d"  # user data
        b"\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01\x00\x00\x00\x03"  # owned partitions
    )


def test_empty_user_data_is_refused_because_it_would_open_the_group_to_others():
    with pytest.raises(MalformedGroupDataError, match="has no user data"):
        encode_assignment(Assignment((), b""))
    with pytest.raises(MalformedGroupDataError, match="has no user data"):
        encode_subscription(Subscription(("t",), (), b""))


def test_bytes_that_would_wedge_the_group_are_not_sent(monkeypatch):
    """The version written twice: the broker would read a gigantic array, and never answer anybody again."""
    message_class = consumer_protocol.ConsumerProtocolSubscription
    right = message_class.encode
    monkeypatch.setattr(message_class, "encode", lambda self, version: b"\x00\x01" + right(self, version=version))
    with pytest.raises(MalformedGroupDataError):
        encode_subscription(Subscription(("t",), (), b"data"))


@pytest.mark.parametrize(
    "poison",
    [
        b"",
        b"\x00",
        b"\x00\x01\x00\x01\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01d\x00\x00\x00\x00",
        encode_subscription(Subscription(("t",), (), b"d")) + b"x",
        encode_subscription(Subscription(("t",), (), b"d"))[:-1],
        b"\x00\x01\x7f\xff\xff\xff",
    ],
    ids=["nothing", "half a version", "version twice", "too long", "too short", "a huge array"],
)
def test_bytes_of_others_that_cannot_be_read_are_named(poison):
    with pytest.raises(MalformedGroupDataError, match="cannot be read"):
        decode_subscription(poison)
