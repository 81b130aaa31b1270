"""What is committed for an input partition: the next offset, and with it the time and the numbers that must survive a
restart.

Made by StreamTask at a commit and given back to it when it starts again. Byte for byte the metadata of Kafka Streams,
so that a group's offsets can be read by either: base64 of a version byte, the partition time and the processor
metadata.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from streamfleet.records import NO_TIMESTAMP

TIME_ONLY_VERSION = 1
VERSION = 2

_HEAD = struct.Struct(">Bq")
_LENGTH = struct.Struct(">i")
_VALUE = struct.Struct(">q")


@dataclass(frozen=True)
class CommittedOffset:
    """`offset` is the next record to process. `metadata` is the text that is committed beside it."""

    offset: int
    partition_time: int = NO_TIMESTAMP
    processor_metadata: Mapping[str, int] = field(default_factory=dict)

    @property
    def metadata(self) -> str:
        parts = [_HEAD.pack(VERSION, self.partition_time)]
        if self.processor_metadata:
            parts.append(_LENGTH.pack(len(self.processor_metadata)))
            for key, value in self.processor_metadata.items():
                name = key.encode()
                parts += [_LENGTH.pack(len(name)), name, _VALUE.pack(value)]
        return base64.b64encode(b"".join(parts)).decode("ascii")

    @classmethod
    def parse(cls, offset: int, metadata: str) -> CommittedOffset:
        """From what the broker kept. Metadata that somebody else wrote, or none, means that no time is known."""
        try:
            data = base64.b64decode(metadata, validate=True)
            version, partition_time = _HEAD.unpack_from(data)
            if version == TIME_ONLY_VERSION:
                return cls(offset, partition_time)
            if version == VERSION:
                return cls(offset, partition_time, _processor_metadata(data[_HEAD.size :]))
        except (binascii.Error, struct.error, UnicodeDecodeError, ValueError):
            pass
        return cls(offset)


def _processor_metadata(data: bytes) -> dict[str, int]:
    if not data:
        return {}
    (count,) = _LENGTH.unpack_from(data)
    position = _LENGTH.size
    metadata: dict[str, int] = {}
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        name = data[position : position + length].decode()
        (metadata[name],) = _VALUE.unpack_from(data, position + length)
        position += length + _VALUE.size
    return metadata
