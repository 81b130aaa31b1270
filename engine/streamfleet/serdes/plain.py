"""Text, raw bytes, truth values, UUIDs and nothing at all, as Kafka's Java serdes write them."""

from __future__ import annotations

import builtins
import uuid as uuids

from streamfleet.serdes.api import WrongTypeError


def _wrong_type(name: str, expected: str, value: object) -> WrongTypeError:
    return WrongTypeError(
        f"{name}() takes {expected}, got {value!r} ({type(value).__name__}); use the serde that fits the type"
    )


class StringSerde:
    """UTF-8."""

    immutable = True
    name = "string"

    def __repr__(self) -> str:
        return "string()"

    def exact_size(self, value: object) -> int | None:
        return len(value) if type(value) is str and value.isascii() else None

    def serialize(self, topic: str, value: str | None) -> builtins.bytes | None:
        if value is None:
            return None
        try:
            return str.encode(value)
        except TypeError as error:
            raise _wrong_type("string", "text", value) from error

    def deserialize(self, topic: str, data: builtins.bytes | None) -> str | None:
        if data is None:
            return None
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise ValueError(
                f"string() reads UTF-8, got {data[:32]!r}; was this topic written with another serde?"
            ) from error


class BytesSerde:
    """What is there, unchanged."""

    immutable = True
    name = "bytes"

    def __repr__(self) -> str:
        return "bytes()"

    def exact_size(self, value: object) -> int | None:
        return len(value) if type(value) is builtins.bytes else None

    def serialize(self, topic: str, value: builtins.bytes | bytearray | memoryview | None) -> builtins.bytes | None:
        if value is None or isinstance(value, builtins.bytes):
            return value
        if isinstance(value, bytearray | memoryview):
            return builtins.bytes(value)
        raise _wrong_type("bytes", "bytes", value)

    def deserialize(self, topic: str, data: builtins.bytes | None) -> builtins.bytes | None:
        return data


class BooleanSerde:
    """One byte, 0 or 1."""

    immutable = True
    name = "boolean"

    def __repr__(self) -> str:
        return "boolean()"

    def serialize(self, topic: str, value: bool | None) -> builtins.bytes | None:
        if value is True:
            return b"\x01"
        if value is False:
            return b"\x00"
        if value is None:
            return None
        raise _wrong_type("boolean", "True or False", value)

    def deserialize(self, topic: str, data: builtins.bytes | None) -> bool | None:
        if data is None:
            return None
        if data == b"\x01":
            return True
        if data == b"\x00":
            return False
        raise ValueError(
            f"boolean() reads one byte, 0 or 1, got {data[:32]!r}; was this topic written with another serde?"
        )


class UuidSerde:
    """The 36 characters of a UUID, as text: what Java's serde writes."""

    immutable = True
    name = "uuid"
    fixed_size = 36

    def __repr__(self) -> str:
        return "uuid()"

    def serialize(self, topic: str, value: uuids.UUID | None) -> builtins.bytes | None:
        if value is None:
            return None
        if not isinstance(value, uuids.UUID):
            raise _wrong_type("uuid", "a uuid.UUID", value)
        return str(value).encode()

    def deserialize(self, topic: str, data: builtins.bytes | None) -> uuids.UUID | None:
        if data is None:
            return None
        try:
            return uuids.UUID(data.decode())
        except ValueError as error:
            raise ValueError(
                f"uuid() reads the text of a UUID, got {data[:40]!r}; was this topic written with another serde?"
            ) from error


class VoidSerde:
    """Only None: for keys or values that are always null."""

    immutable = True
    name = "void"

    def __repr__(self) -> str:
        return "void()"

    def serialize(self, topic: str, value: None) -> builtins.bytes | None:
        if value is not None:
            raise _wrong_type("void", "only None", value)
        return None

    def deserialize(self, topic: str, data: builtins.bytes | None) -> None:
        if data is not None:
            raise ValueError(f"void() reads only null, got {len(data)} bytes: {data[:32]!r}; use the serde that fits")


_STRING = StringSerde()
_BYTES = BytesSerde()
_BOOLEAN = BooleanSerde()
_UUID = UuidSerde()
_VOID = VoidSerde()


def string() -> StringSerde:
    """UTF-8 text."""
    return _STRING


def bytes() -> BytesSerde:
    """Raw bytes."""
    return _BYTES


def boolean() -> BooleanSerde:
    """True or False in one byte."""
    return _BOOLEAN


def uuid() -> UuidSerde:
    """uuid.UUID as text."""
    return _UUID


def void() -> VoidSerde:
    """Always null."""
    return _VOID
