"""Murmur3 of 128 bits, as Kafka Streams computes it (x64, with its own seed): fingerprints of values in foreign-key joins."""

from __future__ import annotations

_SEED = 104_729
_MASK = 0xFFFF_FFFF_FFFF_FFFF
_C1 = 0x87C3_7B91_1142_53D5
_C2 = 0x4CF5_AD43_2745_937F


def hash128(data: bytes) -> bytes:
    """16 bytes, big endian."""
    h1 = h2 = _SEED
    whole = len(data) & ~15
    for at in range(0, whole, 16):
        h1 ^= _scrambled(int.from_bytes(data[at : at + 8], "little"), _C1, 31, _C2)
        h1 = (_rotated(h1, 27) + h2) * 5 + 0x52DC_E729 & _MASK
        h2 ^= _scrambled(int.from_bytes(data[at + 8 : at + 16], "little"), _C2, 33, _C1)
        h2 = (_rotated(h2, 31) + h1) * 5 + 0x3849_5AB5 & _MASK
    if whole < len(data):
        # Missing bytes count as zeros, which change nothing.
        h1 ^= _scrambled(int.from_bytes(data[whole : whole + 8], "little"), _C1, 31, _C2)
        h2 ^= _scrambled(int.from_bytes(data[whole + 8 :], "little"), _C2, 33, _C1)
    h1 ^= len(data)
    h2 ^= len(data)
    h1 = h1 + h2 & _MASK
    h2 = h2 + h1 & _MASK
    h1, h2 = _mixed(h1), _mixed(h2)
    h1 = h1 + h2 & _MASK
    h2 = h2 + h1 & _MASK
    return h1.to_bytes(8, "big") + h2.to_bytes(8, "big")


def _scrambled(block: int, first: int, bits: int, second: int) -> int:
    return _rotated(block * first & _MASK, bits) * second & _MASK


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> 64 - bits) & _MASK


def _mixed(number: int) -> int:
    number ^= number >> 33
    number = number * 0xFF51_AFD7_ED55_8CCD & _MASK
    number ^= number >> 33
    number = number * 0xC4CE_B9FE_1A85_EC53 & _MASK
    return number ^ number >> 33
