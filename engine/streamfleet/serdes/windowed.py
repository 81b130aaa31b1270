"""Keys of windowed results as they stand on topics.

    time windows       key | start (8)              the end is not written, so reading needs the window size
    session windows    key | end (8) | start (8)

Timestamps are big endian. The layouts inside stores are in state/.
"""

from __future__ import annotations

import struct
from typing import Any, Generic, TypeVar

from streamfleet.durations import LONG_MAX, Duration, duration_ms
from streamfleet.records import SessionWindow, TimeWindow, Windowed
from streamfleet.serdes.api import Serde, WrongTypeError

K = TypeVar("K")

_LONG = struct.Struct(">q")
_TWO_LONGS = struct.Struct(">qq")


class _WindowedSerde(Generic[K]):
    def __init__(self, inner: Serde[K]) -> None:
        self.inner = inner
        self.immutable = bool(getattr(inner, "immutable", False))

    def _key_bytes(self, topic: str, value: Windowed[K]) -> bytes:
        if not isinstance(value, Windowed):
            raise WrongTypeError(
                f"{self!r} takes a Windowed key, got {value!r} ({type(value).__name__}); "
                "use the plain serde where keys are not windowed"
            )
        key = self.inner.serialize(topic, value.key)
        if key is None:
            raise WrongTypeError(f"{self!r} takes a Windowed key, got one whose key is None")
        return key


class TimeWindowedSerde(_WindowedSerde[K]):
    """Windowed keys of time and sliding windows. For sliding windows the size is their time difference."""

    name = "windowed"

    def __init__(self, inner: Serde[K], size_ms: int | None) -> None:
        super().__init__(inner)
        self.size_ms = size_ms

    def __repr__(self) -> str:
        return f"windowed({self.inner!r}, size={self.size_ms})"

    def serialize(self, topic: str, value: Windowed[K] | None) -> bytes | None:
        if value is None:
            return None
        return self._key_bytes(topic, value) + _LONG.pack(value.window.start)

    def deserialize(self, topic: str, data: bytes | None) -> Windowed[K] | None:
        if data is None:
            return None
        if self.size_ms is None:
            raise ValueError(
                f"{self!r} cannot read a key: only the start of a window is written; "
                "give the size, as in windowed(inner, size=...)"
            )
        if len(data) < 8:
            raise ValueError(f"{self!r} reads a key and 8 bytes of time, got {len(data)} bytes: {data!r}")
        (start,) = _LONG.unpack_from(data, len(data) - 8)
        key: Any = self.inner.deserialize(topic, data[:-8])
        return Windowed(key, TimeWindow(start, min(start + self.size_ms, LONG_MAX)))


class SessionWindowedSerde(_WindowedSerde[K]):
    """Windowed keys of session windows."""

    name = "session_windowed"

    def __repr__(self) -> str:
        return f"session_windowed({self.inner!r})"

    def serialize(self, topic: str, value: Windowed[K] | None) -> bytes | None:
        if value is None:
            return None
        return self._key_bytes(topic, value) + _TWO_LONGS.pack(value.window.end, value.window.start)

    def deserialize(self, topic: str, data: bytes | None) -> Windowed[K] | None:
        if data is None:
            return None
        if len(data) < 16:
            raise ValueError(f"{self!r} reads a key and 16 bytes of time, got {len(data)} bytes: {data!r}")
        end, start = _TWO_LONGS.unpack_from(data, len(data) - 16)
        key: Any = self.inner.deserialize(topic, data[:-16])
        return Windowed(key, SessionWindow(start, end))


def windowed(inner: Serde[K], size: Duration | None = None) -> TimeWindowedSerde[K]:
    """Keys of time and sliding windows; `size` is needed to read them."""
    return TimeWindowedSerde(inner, None if size is None else duration_ms(size, "size of windowed()"))


def session_windowed(inner: Serde[K]) -> SessionWindowedSerde[K]:
    """Keys of session windows."""
    return SessionWindowedSerde(inner)
