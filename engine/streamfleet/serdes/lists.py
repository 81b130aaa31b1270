"""Lists of one inner serde, in the layout of Java's ListSerde.

fixed-length inner serde     0x00 | number of nulls (4) | their indexes (4 each) | count (4) | items that are not null
any other                    0x01 | count (4) | per item: length (4, -1 for null) and bytes
"""

from __future__ import annotations

import struct
from typing import Any, Generic, TypeVar

from streamfleet.serdes.api import Serde, WrongTypeError, resolved

T = TypeVar("T")

_CONSTANT_SIZE = b"\x00"
_VARIABLE_SIZE = b"\x01"
_INT = struct.Struct(">i")
_NULL_ITEM = _INT.pack(-1)


class ListSerde(Generic[T]):
    """Lists over the serde of their items."""

    immutable = False
    name = "list_of"

    def __init__(self, inner: Serde[T]) -> None:
        self.inner = inner
        self._item_size: int | None = getattr(inner, "fixed_size", None)

    def __repr__(self) -> str:
        return f"list_of({self.inner!r})"

    def with_default(self, default: Serde[Any]) -> ListSerde[Any]:
        return ListSerde(resolved(self.inner, default) or default)

    def serialize(self, topic: str, value: list[T | None] | None) -> bytes | None:
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise WrongTypeError(f"{self!r} takes a list, got {value!r} ({type(value).__name__})")
        items = [None if item is None else self.inner.serialize(topic, item) for item in value]
        return _variable(items) if self._item_size is None else _constant(items)

    def deserialize(self, topic: str, data: bytes | None) -> list[T | None] | None:
        if data is None:
            return None
        try:
            items = self._split(data)
        except (struct.error, IndexError) as error:
            raise ValueError(f"{self!r} cannot read {data[:32]!r}: the bytes end too early") from error
        return [None if item is None else self.inner.deserialize(topic, item) for item in items]

    def _split(self, data: bytes) -> list[bytes | None]:
        flag = data[:1]
        if flag == _VARIABLE_SIZE:
            return _split_variable(data)
        if flag == _CONSTANT_SIZE and self._item_size is not None:
            return _split_constant(data, self._item_size)
        raise ValueError(f"{self!r} cannot read {data[:32]!r}: it is not a list of such items")


def _variable(items: list[bytes | None]) -> bytes:
    parts = [_VARIABLE_SIZE, _INT.pack(len(items))]
    for item in items:
        parts += (_NULL_ITEM,) if item is None else (_INT.pack(len(item)), item)
    return b"".join(parts)


def _constant(items: list[bytes | None]) -> bytes:
    nulls = [at for at, item in enumerate(items) if item is None]
    parts = [_CONSTANT_SIZE, _INT.pack(len(nulls)), *map(_INT.pack, nulls), _INT.pack(len(items))]
    return b"".join(parts + [item for item in items if item is not None])


def _split_variable(data: bytes) -> list[bytes | None]:
    (count,) = _INT.unpack_from(data, 1)
    items: list[bytes | None] = []
    at = 5
    for _ in range(count):
        (length,) = _INT.unpack_from(data, at)
        at += 4
        items.append(None if length < 0 else _slice(data, at, length))
        at += max(length, 0)
    return items


def _split_constant(data: bytes, item_size: int) -> list[bytes | None]:
    (null_count,) = _INT.unpack_from(data, 1)
    nulls = {_INT.unpack_from(data, 5 + 4 * at)[0] for at in range(null_count)}
    at = 5 + 4 * null_count
    (count,) = _INT.unpack_from(data, at)
    at += 4
    items: list[bytes | None] = []
    for index in range(count):
        if index in nulls:
            items.append(None)
            continue
        items.append(_slice(data, at, item_size))
        at += item_size
    return items


def _slice(data: bytes, at: int, length: int) -> bytes:
    if at + length > len(data):
        raise IndexError(at + length)
    return data[at : at + length]


def list_of(inner: Serde[T]) -> ListSerde[T]:
    """A list of values of one serde; items may be None."""
    return ListSerde(inner)
