"""Requests and answers as bytes: one Call is a message of a pinned version together with the way to read its answer.

The message modules (group_messages, offset_messages, transaction_messages, connection_messages, streams_group/heartbeat) make
Calls out of kafka-python's message classes; connection.py sends them. Only these modules know kafka-python, and nothing of it but
its message classes is used: no sockets, no clients. Kafka frames every message by its length, and every answer starts
with the correlation id of its request.

Versions are pinned, not negotiated: what was tried against a real broker is what is spoken. `PINNED` is checked
against the broker's ranges on every new connection.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar

from streamfleet.kafka.error_codes import ErrorCode

PINNED: Mapping[str, int] = MappingProxyType(
    {
        "ApiVersions": 3,
        "FindCoordinator": 4,
        "JoinGroup": 9,
        "SyncGroup": 5,
        "Heartbeat": 4,
        "LeaveGroup": 5,
        "OffsetCommit": 9,  # version 10 names topics by id
        "OffsetFetch": 9,
        "InitProducerId": 4,
        "AddOffsetsToTxn": 3,  # these three stay below the second transaction protocol, like the producer's half
        "TxnOffsetCommit": 3,
        "EndTxn": 3,
        "SaslHandshake": 1,
        "SaslAuthenticate": 2,
        "StreamsGroupHeartbeat": 0,
        "StreamsGroupDescribe": 0,
        "IncrementalAlterConfigs": 1,
    }
)

STREAMS_GROUPS = frozenset({"StreamsGroupHeartbeat", "StreamsGroupDescribe", "IncrementalAlterConfigs"})
"""Needed by members of streams groups only: other members do without."""

MAX_FRAME_BYTES = 2**28
"""No answer comes near it. A larger number is text, or an alert of TLS, and whoever waited for so much would do so for ever."""

_LENGTH = struct.Struct(">i")
_CORRELATION = struct.Struct(">i")


class Answered(Protocol):
    """What every answer has: the one code that speaks for it."""

    @property
    def code(self) -> ErrorCode: ...


AnswerT = TypeVar("AnswerT", bound=Answered)


@dataclass(frozen=True)
class Call(Generic[AnswerT]):
    """One request, ready to be sent as often as it takes."""

    name: str
    """Kafka's name of the request, a key of PINNED."""
    request: Any
    """A kafka-python request message."""
    response_class: Any
    read: Callable[[Any], AnswerT]
    """Turns the decoded kafka-python response into a value of ours."""

    @property
    def version(self) -> int:
        return PINNED[self.name]


def encode(call: Call[Any], correlation_id: int, client_id: str) -> bytes:
    """The framed request."""
    call.request.API_VERSION = call.version
    call.request.with_header(correlation_id=correlation_id, client_id=client_id)
    return bytes(call.request.encode(header=True, framed=True))


def decode(call: Call[AnswerT], correlation_id: int, frame: bytes) -> AnswerT:
    """The answer in one frame (without its length)."""
    (answered,) = _CORRELATION.unpack_from(frame)
    if answered != correlation_id:
        raise ConnectionError(f"the broker answered request {answered}, not {correlation_id}")
    body = _CORRELATION.size
    # The header of a flexible version ends in tagged fields; that of ApiVersions never has them, so that a client
    # can read the answer before it knows the broker's versions.
    if call.response_class.flexible_version_q(call.version) and call.name != "ApiVersions":
        body = _skip_tagged_fields(frame, body)
    return call.read(call.response_class.decode(frame[body:], version=call.version))


class FrameBuffer:
    """Collects bytes as they arrive and gives frames out whole."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    @property
    def missing(self) -> int:
        """How many more bytes the next frame, or its length, needs."""
        if len(self._bytes) < _LENGTH.size:
            return _LENGTH.size - len(self._bytes)
        return _LENGTH.size + self._next_length() - len(self._bytes)

    def feed(self, received: bytes) -> None:
        self._bytes += received

    def take(self) -> bytes | None:
        """The next whole frame, None while it is not complete."""
        if len(self._bytes) < _LENGTH.size or self.missing > 0:
            return None
        end = _LENGTH.size + self._next_length()
        frame = bytes(self._bytes[_LENGTH.size : end])
        del self._bytes[:end]
        return frame

    def _next_length(self) -> int:
        length: int = _LENGTH.unpack_from(self._bytes)[0]
        if not _CORRELATION.size <= length <= MAX_FRAME_BYTES:
            raise ConnectionError(
                f"the broker announced a frame of {length} bytes; is this a Kafka listener, and are TLS and "
                "security.protocol the same on both sides?"
            )
        return length


def _skip_tagged_fields(frame: bytes, position: int) -> int:
    count, position = _unsigned_varint(frame, position)
    for _ in range(count):
        _, position = _unsigned_varint(frame, position)
        size, position = _unsigned_varint(frame, position)
        position += size
    return position


def _unsigned_varint(frame: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = frame[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
