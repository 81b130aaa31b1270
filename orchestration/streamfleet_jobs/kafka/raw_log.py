"""Batch headers of a topic partition, over the wire: what no consumer shows, and no broker's disk is needed for.

A Fetch answer holds whole batches as they lie in the log. Their headers tell offsets, record counts, whether they are transaction
markers, and until when tombstones are kept. Nothing is decompressed and no key is looked at. An answer never spans two segments,
so one that ends with a whole batch before the end of the log also tells where a segment ends.

Plain connections only; who uses TLS or SASL gets RawLogUnavailableError, and less exact findings. Called by audit/first_dirty.py's
owner, job.py.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from streamfleet_jobs.errors import UnavailableError

_FETCH, _VERSION = 1, 4
_CLIENT = b"streamfleet-audit"
_HEADER = struct.Struct(">qi")
_BATCH = struct.Struct(">hiqqqhii")
_BATCH_AT = 21
_BATCH_SIZE = 61
_MAX_BYTES = 16 << 20
_LARGEST_BYTES = 1 << 30
_TIMEOUT_SECONDS = 30.0
_TRANSACTIONAL, _CONTROL, _DELETE_HORIZON = 0x10, 0x20, 0x40


class RawLogUnavailableError(UnavailableError):
    """The log cannot be read this way; say less instead of nothing."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch as it lies in the log."""

    base: int
    last: int
    count: int
    size: int
    is_control: bool
    is_transactional: bool
    delete_horizon_ms: int | None
    """When tombstones (and markers) in it may go; set by the first cleaning that kept them."""
    max_timestamp: int

    @property
    def has_holes(self) -> bool:
        return self.count < self.last - self.base + 1


@dataclass(frozen=True)
class RawLog:
    """Batches from the log's start to a pinned end, and where segments begin. The last of these may be the active one's."""

    batches: tuple[Batch, ...]
    segments: tuple[int, ...]
    high_watermark: int

    @property
    def active_base(self) -> int:
        return self.segments[-1]


class RawConnection:
    """To one broker, while it is open."""

    def __init__(self, host: str, port: int) -> None:
        try:
            self._socket = socket.create_connection((host, port), _TIMEOUT_SECONDS)
        except OSError as error:
            raise RawLogUnavailableError(
                f"the broker at {host}:{port} is not reachable: {error}", hint="try again"
            ) from error
        self._calls = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self._socket.close()

    def scan(
        self, topic: str, partition: int, start: int, end: int, told: Callable[[int], None] | None = None
    ) -> RawLog:
        """Headers of the batches with offsets in [start, end)."""
        batches: list[Batch] = []
        segments, at, max_bytes, high_watermark = [start], start, _MAX_BYTES, end
        while at < end:
            high_watermark, data = self._fetch(topic, partition, at, max_bytes)
            found, used = _parse(data, at)
            if not found:
                if at >= high_watermark:
                    break
                max_bytes = _doubled(max_bytes, topic, partition, at)  # a batch larger than the answer may be
                continue
            batches += found
            at = found[-1].last + 1
            if told is not None:
                told(at)
            if at < high_watermark and used == len(data) < max_bytes:
                segments.append(at)
        kept = tuple(batch for batch in batches if batch.base < end)
        return RawLog(kept, tuple(base for base in segments if base < max(end, start + 1)), high_watermark)

    def _fetch(self, topic: str, partition: int, offset: int, max_bytes: int) -> tuple[int, memoryview]:
        name = topic.encode()
        body = struct.pack(">iiiib", -1, 500, 1, max_bytes, 0)
        body += struct.pack(">ih", 1, len(name)) + name + struct.pack(">iiqi", 1, partition, offset, max_bytes)
        answer = self._call(_FETCH, _VERSION, body)
        at = 4 + 4  # throttle time, number of topics
        (length,) = struct.unpack_from(">h", answer, at)
        at += 2 + length + 4
        _, error, high_watermark, _, aborted = struct.unpack_from(">ihqqi", answer, at)
        at += 26 + 16 * max(0, aborted)
        if error:
            raise RawLogUnavailableError(
                f"the broker answers with error {error} for {topic} partition {partition} at {offset}",
                hint="its leader may have moved, or the log was cut: run the audit again",
            )
        (size,) = struct.unpack_from(">i", answer, at)
        return high_watermark, answer[at + 4 : at + 4 + max(0, size)]

    def _call(self, key: int, version: int, body: bytes) -> memoryview:
        self._calls += 1
        message = struct.pack(">hhih", key, version, self._calls, len(_CLIENT)) + _CLIENT + body
        try:
            self._socket.sendall(struct.pack(">i", len(message)) + message)
            (size,) = struct.unpack(">i", self._read(4))
            return memoryview(self._read(size))[4:]
        except OSError as error:
            raise RawLogUnavailableError(
                f"the broker ended the connection: {error}", hint="it may want TLS or SASL, which this scan cannot"
            ) from error

    def _read(self, size: int) -> bytes:
        buffer = bytearray(size)
        view = memoryview(buffer)
        while view:
            got = self._socket.recv_into(view)
            if not got:
                raise ConnectionResetError("closed in the middle of an answer")
            view = view[got:]
        return bytes(buffer)


def _doubled(max_bytes: int, topic: str, partition: int, offset: int) -> int:
    if max_bytes >= _LARGEST_BYTES:
        raise RawLogUnavailableError(
            f"{topic} partition {partition} gives no batch at {offset}",
            hint="its log may have been cut: run the audit again",
        )
    return 2 * max_bytes


def _parse(data: memoryview, start: int) -> tuple[list[Batch], int]:
    """Whole batches that reach `start` or beyond, and how many bytes whole batches take."""
    found: list[Batch] = []
    at = 0
    while len(data) - at >= _BATCH_SIZE:
        base, length = _HEADER.unpack_from(data, at)
        size = _HEADER.size + length
        if len(data) - at < size:
            break
        bits, last_delta, base_time, max_time, _, _, _, count = _BATCH.unpack_from(data, at + _BATCH_AT)
        if base + last_delta >= start:
            found.append(
                Batch(
                    base,
                    base + last_delta,
                    count,
                    size,
                    bool(bits & _CONTROL),
                    bool(bits & _TRANSACTIONAL),
                    base_time if bits & _DELETE_HORIZON else None,
                    max_time,
                )
            )
        at += size
    return found, at
