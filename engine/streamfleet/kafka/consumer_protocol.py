"""The bytes that travel through the group: what a member subscribes to, and what it is assigned.

Called by membership.py. They wrap our own user data (streamfleet.assignment.user_data) in Kafka's consumer protocol,
version 1, so that Kafka's tools can show topics and partitions of every member. Three things would go wrong silently
and are refused here instead:
- subscription bytes the broker cannot read are never answered and wedge the whole group, healthy members included;
- an assignment with empty user data lets a consumer of the newer protocol take the group over;
- assignment bytes that cannot be read make the tools fail.
So whatever is encoded is decoded again, and compared, before it leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from kafka.protocol.consumer.metadata import (  # type: ignore[import-untyped]
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from streamfleet.ids import TopicPartition
from streamfleet.kafka.errors import MalformedGroupDataError

VERSION = 1
BytesT = TypeVar("BytesT", "Subscription", "Assignment")


@dataclass(frozen=True)
class Subscription:
    """What a member says when it joins. Topics and partitions are sorted."""

    topics: tuple[str, ...]
    """Source and repartition topics: offsets of topics that nobody subscribes to may expire."""
    owned_partitions: tuple[TopicPartition, ...]
    user_data: bytes


@dataclass(frozen=True)
class Assignment:
    """What a member is told when the group is in sync. Partitions are sorted."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes


def encode_subscription(subscription: Subscription) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=list(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=_nested(ConsumerProtocolSubscription.TopicPartition, subscription.owned_partitions),
        version=VERSION,
    )
    return _checked(message.encode(version=VERSION), subscription, decode_subscription)


def decode_subscription(received: bytes) -> Subscription:
    message = _decoded(ConsumerProtocolSubscription, received, "subscription")
    return Subscription(
        tuple(sorted(message.topics)),
        _flat(message.owned_partitions or ()),
        bytes(message.user_data or b""),
    )


def encode_assignment(assignment: Assignment) -> bytes:
    message = ConsumerProtocolAssignment(
        assigned_partitions=_nested(ConsumerProtocolAssignment.TopicPartition, assignment.partitions),
        user_data=assignment.user_data,
        version=VERSION,
    )
    return _checked(message.encode(version=VERSION), assignment, decode_assignment)


def decode_assignment(received: bytes) -> Assignment:
    message = _decoded(ConsumerProtocolAssignment, received, "assignment")
    return Assignment(_flat(message.assigned_partitions), bytes(message.user_data or b""))


def _nested(topic_class: Any, partitions: Iterable[TopicPartition]) -> list[Any]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return [topic_class(topic=topic, partitions=indexes, version=VERSION) for topic, indexes in topics.items()]


def _flat(topics: Iterable[Any]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(TopicPartition(entry.topic, index) for entry in topics for index in entry.partitions))


def _checked(encoded: bytes, meant: BytesT, decode: Callable[[bytes], BytesT]) -> bytes:
    what = type(meant).__name__.lower()
    if not meant.user_data:
        raise MalformedGroupDataError(f"the {what} has no user data", hint="it must never be empty; this is a defect")
    if decode(encoded) != meant:
        raise MalformedGroupDataError(
            f"the {what} would not be read as it was meant", hint="it was not sent; this is a defect"
        )
    return encoded


def _decoded(message_class: Any, received: bytes, what: str) -> Any:
    try:
        message = message_class.decode(received)
        # Bytes behind the end, or a version written twice, show when the same message is encoded again.
        if bytes(message.encode(version=VERSION)) != received:
            raise ValueError("it does not read back the same")
    except Exception as error:
        raise MalformedGroupDataError(
            f"the {what} of {len(received)} bytes cannot be read: {error}",
            hint="is another kind of client in this group? its group id is the application id",
        ) from error
    return message
