"""Numbers as Kafka's Java serdes write them: fixed length, big endian, two's complement or IEEE 754.

Negative integers therefore sort after positive ones where keys are compared as bytes (range scans); so they do in Java.
"""

from __future__ import annotations

import struct
from typing import Generic, TypeVar

from streamfleet.serdes.api import WrongTypeError

N = TypeVar("N", int, float)


class NumberSerde(Generic[N]):
    """One struct format with a name. Errors say what was given: a wrong serde is the most common mistake of all."""

    immutable = True

    def __init__(self, name: str, code: str, limits: str) -> None:
        layout = struct.Struct(f">{code}")
        self.name = name
        self.fixed_size = layout.size
        self._limits = limits
        self._bound = 0 if code in "fd" else 1 << (8 * layout.size - 1)
        self._is_double = code == "d"
        self._pack = layout.pack
        self._unpack = layout.unpack

    def __repr__(self) -> str:
        return f"{self.name}()"

    def exact_size(self, value: object) -> int | None:
        """A 32-bit float does not give back what it was given."""
        if type(value) is int:
            bound = self._bound
            return self.fixed_size if -bound <= value < bound else None
        return self.fixed_size if type(value) is float and self._is_double else None

    def serialize(self, topic: str, value: N | None) -> bytes | None:
        if value is None:
            return None
        try:
            return self._pack(value)
        except (struct.error, OverflowError) as error:
            raise self._refusal(value) from error

    def deserialize(self, topic: str, data: bytes | None) -> N | None:
        if data is None:
            return None
        try:
            number: N = self._unpack(data)[0]
        except struct.error as error:
            raise ValueError(
                f"{self.name}() reads exactly {self.fixed_size} bytes, got {len(data)}: {data[:32]!r}; "
                "was this topic written with another serde?"
            ) from error
        return number

    def _refusal(self, value: object) -> Exception:
        kind = type(value).__name__
        if isinstance(value, int | float) and not (self._limits.startswith("an integer") and isinstance(value, float)):
            return ValueError(f"{self.name}() cannot hold {value!r}; it takes {self._limits}")
        return WrongTypeError(f"{self.name}() takes {self._limits}, got {value!r} ({kind}); use the serde that fits")


def _integer_limits(size: int) -> str:
    return f"an integer from {-(2 ** (8 * size - 1))} to {2 ** (8 * size - 1) - 1}"


_SHORT = NumberSerde[int]("short", "h", _integer_limits(2))
_INTEGER = NumberSerde[int]("integer", "i", _integer_limits(4))
_LONG = NumberSerde[int]("long", "q", _integer_limits(8))
_FLOAT = NumberSerde[float]("float_", "f", "a number within single precision")
_DOUBLE = NumberSerde[float]("double", "d", "a number")


def short() -> NumberSerde[int]:
    """2 bytes."""
    return _SHORT


def integer() -> NumberSerde[int]:
    """4 bytes."""
    return _INTEGER


def long() -> NumberSerde[int]:
    """8 bytes; what `count()` writes."""
    return _LONG


def float_() -> NumberSerde[float]:
    """4 bytes: digits beyond single precision are lost."""
    return _FLOAT


def double() -> NumberSerde[float]:
    """8 bytes."""
    return _DOUBLE
