"""What the store of a left or outer stream join holds: records that wait for a partner, in Kafka Streams' layout.

    key      timestamp (8) | side (1: the left one) | key       so rows come out by time, then the right side first
    value    side (1: the left one) | value

Made by the DSL; not part of the public serdes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from streamfleet.serdes.api import Serde, resolved

_TIMESTAMP_SIZE = 8
_HEAD_SIZE = _TIMESTAMP_SIZE + 1
_LEFT = b"\x01"
_RIGHT = b"\x00"


class SidedKey(NamedTuple):
    """Whose record waits: its timestamp, whether it came from the left stream, its key."""

    timestamp: int
    is_left: bool
    key: Any


class SidedValue(NamedTuple):
    is_left: bool
    value: Any


class SidedKeySerde:
    """Around the serde of the joined streams' keys; None: the configured default."""

    name = "sided_key"

    def __init__(self, inner: Serde[Any] | None) -> None:
        self._inner = inner
        self.immutable = bool(getattr(inner, "immutable", False))

    def __repr__(self) -> str:
        return f"sided_key({self._inner!r})"

    @property
    def inners(self) -> tuple[Serde[Any] | None, ...]:
        return (self._inner,)

    def with_default(self, default: Serde[Any]) -> SidedKeySerde:
        return SidedKeySerde(resolved(self._inner, default))

    def serialize(self, topic: str, value: SidedKey | None) -> bytes | None:
        if value is None:
            return None
        assert self._inner is not None
        key = self._inner.serialize(topic, value.key)
        if key is None:
            raise ValueError("the key became null")
        return value.timestamp.to_bytes(_TIMESTAMP_SIZE, "big", signed=True) + _side(value.is_left) + key

    def deserialize(self, topic: str, data: bytes | None) -> SidedKey | None:
        if data is None:
            return None
        assert self._inner is not None
        timestamp = int.from_bytes(data[:_TIMESTAMP_SIZE], "big", signed=True)
        is_left = data[_TIMESTAMP_SIZE:_HEAD_SIZE] == _LEFT
        return SidedKey(timestamp, is_left, self._inner.deserialize(topic, data[_HEAD_SIZE:]))


class SidedValueSerde:
    """Around the serdes of the two streams' values; None: the configured default."""

    name = "sided_value"

    def __init__(self, left: Serde[Any] | None, right: Serde[Any] | None) -> None:
        self._left = left
        self._right = right
        self.immutable = False

    def __repr__(self) -> str:
        return f"sided_value({self._left!r}, {self._right!r})"

    @property
    def inners(self) -> tuple[Serde[Any] | None, ...]:
        return (self._left, self._right)

    def with_default(self, default: Serde[Any]) -> SidedValueSerde:
        return SidedValueSerde(resolved(self._left, default), resolved(self._right, default))

    def serialize(self, topic: str, value: SidedValue | None) -> bytes | None:
        if value is None:
            return None
        data = self._inner(value.is_left).serialize(topic, value.value)
        if data is None:
            raise ValueError("the value became null")
        return _side(value.is_left) + data

    def deserialize(self, topic: str, data: bytes | None) -> SidedValue | None:
        if data is None:
            return None
        is_left = data[:1] == _LEFT
        return SidedValue(is_left, self._inner(is_left).deserialize(topic, data[1:]))

    def _inner(self, is_left: bool) -> Serde[Any]:
        inner = self._left if is_left else self._right
        assert inner is not None
        return inner


def _side(is_left: bool) -> bytes:
    return _LEFT if is_left else _RIGHT
