"""What a serde is: an object that turns values into bytes and back. Users may bring their own; it needs only the two methods."""

from __future__ import annotations

from typing import Protocol, TypeVar

T = TypeVar("T")


class Serde(Protocol[T]):
    """`topic` is the real name of the topic (for stores: of the changelog), for serdes that keep schemas by topic.

    A None value is handed to `serialize` only by code that wants it encoded; the engine itself keeps None as a null key or value.
    A serde whose values cannot be changed in place (numbers, text, bytes, frozen structs) says so with an attribute
    `immutable = True`; then stores may hand out the same object twice.
    """

    def serialize(self, topic: str, value: T | None) -> bytes | None: ...

    def deserialize(self, topic: str, data: bytes | None) -> T | None: ...
