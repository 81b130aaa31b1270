"""What a serde is: an object that turns values into bytes and back. Users may bring their own; it needs only the two methods."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

from streamfleet.errors import ConfigError

T = TypeVar("T")


class WrongTypeError(TypeError):
    """The value is not of the kind that a serde is made for: a mistake in the topology, and no property of one record. At a sink
    the processing handler is asked about it, as about any other mistake in code, and not the production handler.
    """


class Serde(Protocol[T]):
    """`topic` is the real name of the topic (for stores: of the changelog), for serdes that keep schemas by topic.

    A None value is handed to `serialize` only by code that wants it encoded; the engine itself keeps None as a null key or value.
    A serde whose values cannot be changed in place (numbers, text, bytes, frozen structs) says so with an attribute
    `immutable = True`; then stores may hand out the same object twice. It may also have a method `exact_size(value)`: the number of
    bytes that serialize would give, or None unless it is sure that serialize will not fail and that deserialize would give the
    same value again. Then stores may serialize later, and not at all what is overwritten before.
    """

    def serialize(self, topic: str, value: T | None) -> bytes | None: ...

    def deserialize(self, topic: str, data: bytes | None) -> T | None: ...


@runtime_checkable
class NeedsDefault(Protocol):
    """A serde around another one that was left open: it becomes usable with the configured default."""

    def with_default(self, default: Serde[Any]) -> Serde[Any]: ...


def resolved_value(
    serde: Serde[Any] | None, key_default: Serde[Any] | None, value_default: Serde[Any] | None
) -> Serde[Any] | None:
    """As `resolved`, for the value side. What a value serde with `wraps_key = True` leaves open is the serde of a key."""
    return resolved(serde, key_default if getattr(serde, "wraps_key", False) else value_default)


def required(owner: str, side: str, serde: Serde[Any] | None) -> Serde[Any]:
    """The serde; an error that names its owner if there is none."""
    if serde is None:
        raise ConfigError(
            f"{owner} has no {side} serde, and default.{side}.serde is not set",
            hint=f"pass {side}_serde where it is declared, or set default.{side}.serde",
        )
    return serde


def resolved(serde: Serde[Any] | None, default: Serde[Any] | None) -> Serde[Any] | None:
    """The serde to use for a key or value: the given one, completed by the default, or the default itself."""
    if serde is None or default is None:
        return serde or default
    return serde.with_default(default) if isinstance(serde, NeedsDefault) else serde
