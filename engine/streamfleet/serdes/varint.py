"""Zig-zag varints, Kafka's variable-length integers: small numbers of either sign in few bytes."""

from __future__ import annotations


def write_varint(value: int) -> bytes:
    """A 32-bit signed integer in one to five bytes."""
    rest = (value << 1) ^ (value >> 31)
    rest &= 0xFFFFFFFF
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def read_varint(data: bytes, at: int = 0) -> tuple[int, int]:
    """The number at `at`, and where it ends."""
    result = shift = 0
    while True:
        if at >= len(data) or shift > 28:
            raise ValueError(f"not a varint: {data[:16]!r}")
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return (result >> 1) ^ -(result & 1), at
        shift += 7
