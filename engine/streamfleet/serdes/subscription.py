"""What the two sides of a foreign-key join tell each other, in Kafka Streams' layout. Made by the DSL, not a public serde.

Subscription   version (1; top bit: no hash) | instruction (1) | hash (16) | primary key | primary partition (4)
Response       version (1; top bit: no hash) | hash (16) | foreign value
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from streamfleet.serdes.api import Serde, resolved

_HASH_SIZE = 16
_PARTITION_SIZE = 4
_NO_HASH = 0x80
_SUBSCRIPTION_VERSION = 1
_RESPONSE_VERSION = 0


class Instruction(enum.IntEnum):
    """What the foreign side does with a subscription."""

    DELETE_AND_STAY_SILENT = 0
    DELETE_AND_ANSWER = 1
    ANSWER_ALWAYS = 2
    """With null if there is no foreign value."""
    ANSWER_IF_THERE = 3


_INSTRUCTIONS = frozenset(Instruction)


class Subscription(NamedTuple):
    """A row of the primary table points to a row of the foreign one. `hash` is that of its value, None if it is deleted."""

    hash: bytes | None
    instruction: Instruction
    primary_key: Any
    primary_partition: int | None


class Response(NamedTuple):
    """The foreign row, for the version of the primary row that has this hash."""

    hash: bytes | None
    value: Any
    primary_partition: int | None
    """Where it goes to; not part of the bytes."""


class SubscriptionSerde:
    """Around the serde of primary keys, which sees a topic name of its own: that of the registration topic with `-pk`."""

    immutable = False
    name = "subscription"
    wraps_key = True

    def __init__(self, inner: Serde[Any] | None, topic: str, store: str) -> None:
        self._inner = inner
        self._topic = topic
        self._store = store

    def __repr__(self) -> str:
        return f"subscription({self._inner!r})"

    @property
    def inners(self) -> tuple[Serde[Any] | None, ...]:
        return (self._inner,)

    def with_default(self, default: Serde[Any]) -> SubscriptionSerde:
        return SubscriptionSerde(resolved(self._inner, default), self._topic, self._store)

    def serialize(self, topic: str, value: Subscription | None) -> bytes | None:
        if value is None:
            return None
        assert self._inner is not None
        key = self._inner.serialize(self._key_topic(topic), value.primary_key)
        if key is None:
            raise ValueError("the primary key became null")
        version = _SUBSCRIPTION_VERSION if value.primary_partition is not None else 0
        head = bytes((version | (_NO_HASH if value.hash is None else 0), value.instruction))
        partition = b"" if value.primary_partition is None else value.primary_partition.to_bytes(4, "big")
        return head + (value.hash or b"") + key + partition

    def deserialize(self, topic: str, data: bytes | None) -> Subscription | None:
        if data is None:
            return None
        assert self._inner is not None
        version = _version("subscription", data, _SUBSCRIPTION_VERSION)
        at = 2 if data[0] & _NO_HASH else 2 + _HASH_SIZE
        end = len(data) - (_PARTITION_SIZE if version > 0 else 0)
        if end < at or data[1] not in _INSTRUCTIONS:
            raise _unreadable("subscription", data)
        instruction = Instruction(data[1])
        partition = int.from_bytes(data[end:], "big") if version > 0 else None
        key = self._inner.deserialize(self._key_topic(topic), data[at:end])
        return Subscription(data[2:at] or None, instruction, key, partition)

    def _key_topic(self, topic: str) -> str:
        if not topic.endswith(self._topic):  # the changelog of the store of subscriptions
            topic = topic.removesuffix(f"{self._store}-changelog") + self._topic
        return f"{topic}-pk"


class ResponseSerde:
    """Around the serde of foreign values; None: the configured default."""

    immutable = False
    name = "response"

    def __init__(self, inner: Serde[Any] | None) -> None:
        self._inner = inner

    def __repr__(self) -> str:
        return f"response({self._inner!r})"

    @property
    def inners(self) -> tuple[Serde[Any] | None, ...]:
        return (self._inner,)

    def with_default(self, default: Serde[Any]) -> ResponseSerde:
        return ResponseSerde(resolved(self._inner, default))

    def serialize(self, topic: str, value: Response | None) -> bytes | None:
        if value is None:
            return None
        assert self._inner is not None
        foreign = None if value.value is None else self._inner.serialize(topic, value.value)
        version = _RESPONSE_VERSION | (_NO_HASH if value.hash is None else 0)
        return bytes((version,)) + (value.hash or b"") + (foreign or b"")

    def deserialize(self, topic: str, data: bytes | None) -> Response | None:
        if data is None:
            return None
        assert self._inner is not None
        _version("response", data, _RESPONSE_VERSION)
        at = 1 if data[0] & _NO_HASH else 1 + _HASH_SIZE
        if len(data) < at:
            raise _unreadable("response", data)
        foreign = self._inner.deserialize(topic, data[at:]) if len(data) > at else None
        return Response(data[1:at] or None, foreign, None)


def _version(what: str, data: bytes, newest: int) -> int:
    if not data:
        raise _unreadable(what, data)
    version = data[0] & ~_NO_HASH
    if version > newest:
        raise ValueError(
            f"a {what} of a foreign-key join has version {version}, and this is version {newest}; "
            "finish the upgrade: all members of a group must understand each other"
        )
    return version


def _unreadable(what: str, data: bytes) -> ValueError:
    return ValueError(
        f"{data[:32]!r} is no {what} of a foreign-key join; nobody but the app itself may write to its internal topics"
    )
