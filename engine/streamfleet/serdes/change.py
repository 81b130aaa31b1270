"""Change on the repartition topics of grouped tables. Used by the DSL's sinks and sources around a KGroupedTable only.

    old | 0                                  remove the old value
    new | 1                                  add the new one
    varint len(new) | new | old | 2          both, when they meet under the same key
    3, 4, 5                                  the same three, with a byte before the flag: is this update the latest?

Flags 0 to 2 are written; all six are read, so that an app can move here from Kafka Streams without draining its topics.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from streamfleet.errors import ConfigError
from streamfleet.records import Change
from streamfleet.serdes.api import Serde, WrongTypeError
from streamfleet.serdes.varint import read_varint, write_varint

T = TypeVar("T")

_OLD, _NEW, _BOTH = 0, 1, 2
_WITH_IS_LATEST = 3


class ChangeSerde(Generic[T]):
    """Change values over the serde of the table's values."""

    name = "change"

    def __init__(self, inner: Serde[T]) -> None:
        self.inner = inner
        self.immutable = bool(getattr(inner, "immutable", False))

    def __repr__(self) -> str:
        return f"change({self.inner!r})"

    def serialize(self, topic: str, value: Change[T] | None) -> bytes | None:
        if not isinstance(value, Change):
            raise WrongTypeError(f"{self!r} takes a Change, got {value!r} ({type(value).__name__})")
        new = None if value.new is None else self.inner.serialize(topic, value.new)
        old = None if value.old is None else self.inner.serialize(topic, value.old)
        if new is None and old is None:
            raise ValueError(f"{self!r} cannot write a change without old and new value; do not send it")
        if new is None:
            return old + b"\x00" if old is not None else None
        if old is None:
            return new + b"\x01"
        return write_varint(len(new)) + new + old + b"\x02"

    def deserialize(self, topic: str, data: bytes | None) -> Change[T] | None:
        if data is None:
            return None
        flag, body, is_latest = _flag_of(data)
        read = self.inner.deserialize
        if flag == _OLD:
            return Change(None, read(topic, body), is_latest)
        if flag == _NEW:
            return Change(read(topic, body), None, is_latest)
        length, at = read_varint(body)
        if length < 0 or at + length > len(body):
            raise ValueError(f"{self!r} cannot read {data[:32]!r}: the new value has no {length} bytes")
        return Change(read(topic, body[at : at + length]), read(topic, body[at + length :]), is_latest)


def _flag_of(data: bytes) -> tuple[int, bytes, bool]:
    if not data or data[-1] > _BOTH + _WITH_IS_LATEST:
        raise ValueError(f"not a change: {data[:32]!r} does not end in a flag from 0 to 5")
    if data[-1] < _WITH_IS_LATEST:
        return data[-1], data[:-1], True
    if len(data) < 2:
        raise ValueError(f"not a change: {data!r} ends before it says whether it is the latest")
    return data[-1] - _WITH_IS_LATEST, data[:-2], data[-2] != 0


class OpenChangeSerde:
    """Change values of a table that was given no value serde: the configured default completes it."""

    name = "change"
    inners = (None,)

    def with_default(self, default: Serde[Any]) -> ChangeSerde[Any]:
        return ChangeSerde(default)

    def serialize(self, topic: str, value: Change[Any] | None) -> bytes | None:
        raise self._incomplete()

    def deserialize(self, topic: str, data: bytes | None) -> Change[Any] | None:
        raise self._incomplete()

    def __repr__(self) -> str:
        return "change(default)"

    @staticmethod
    def _incomplete() -> ConfigError:
        return ConfigError(
            "a grouped table has no value serde", hint="give group_by a value_serde=... or set default.value.serde"
        )


def change(inner: Serde[Any] | None) -> ChangeSerde[Any] | OpenChangeSerde:
    """Both sides of a table's update in one value."""
    return OpenChangeSerde() if inner is None else ChangeSerde(inner)
