"""Kafka's partitioners over whole columns of keys: where a record should be, and which partitioner put it where it is.

    murmur2    Kafka's own default, the engine's, librdkafka's `murmur2*`
    crc32      librdkafka's default (`consistent_random`)
    fnv1a      librdkafka's `fnv1a*`, Sarama's default

The work is one numpy pass per 4 bytes (murmur2) or per byte of the longest key, over those keys that are long enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from streamfleet_jobs.columns.binary import BinaryValues, Int64s, UInt32s

_SEED = 0x9747B28C
_M = np.uint32(0x5BD1E995)
_POSITIVE = np.uint32(0x7FFFFFFF)

Partitions = npt.NDArray[np.int32]


def murmur2(keys: BinaryValues) -> UInt32s:
    """Kafka's murmur2 of every key, unsigned."""
    starts, lengths = keys.starts, keys.lengths
    h = np.uint32(_SEED) ^ lengths.astype(np.uint32)
    if not len(h):
        return h
    padded = np.concatenate([keys.data, np.zeros(4, np.uint8)])
    word = np.ndarray((len(padded) - 3,), "<u4", padded.data, strides=(1,))  # the 4 bytes at any place
    blocks = lengths >> 2
    for block in range(int(blocks.max())):
        at = np.flatnonzero(blocks > block)
        k = word[starts[at] + 4 * block] * _M
        k ^= k >> np.uint32(24)
        h[at] = (h[at] * _M) ^ (k * _M)
    tail = lengths & 3
    at = np.flatnonzero(tail)
    keep = (np.uint32(1) << (tail[at].astype(np.uint32) * np.uint32(8))) - np.uint32(1)
    h[at] = (h[at] ^ (word[starts[at] + (blocks[at] << 2)] & keep)) * _M
    h ^= h >> np.uint32(13)
    h *= _M
    return h ^ (h >> np.uint32(15))


def crc32(keys: BinaryValues) -> UInt32s:
    h = np.full(len(keys.starts), 0xFFFFFFFF, np.uint32)
    for at, byte in _bytes(keys):
        h[at] = _CRC_TABLE[(h[at] ^ byte) & np.uint32(0xFF)] ^ (h[at] >> np.uint32(8))
    return h ^ np.uint32(0xFFFFFFFF)


def fnv1a(keys: BinaryValues) -> UInt32s:
    h = np.full(len(keys.starts), 0x811C9DC5, np.uint32)
    for at, byte in _bytes(keys):
        h[at] = (h[at] ^ byte) * np.uint32(0x01000193)
    return h


def murmur2_partitions(keys: BinaryValues, partitions: int) -> Partitions:
    return ((murmur2(keys) & _POSITIVE) % np.uint32(partitions)).astype(np.int32)


def _crc32_partitions(keys: BinaryValues, partitions: int) -> Partitions:
    return (crc32(keys) % np.uint32(partitions)).astype(np.int32)


def _fnv1a_partitions(keys: BinaryValues, partitions: int) -> Partitions:
    # Both known users take the hash as signed and its absolute value.
    signed = fnv1a(keys).astype(np.int32).astype(np.int64)
    return (np.abs(signed) % partitions).astype(np.int32)


PARTITIONERS: Mapping[str, Callable[[BinaryValues, int], Partitions]] = {
    "murmur2": murmur2_partitions,
    "crc32": _crc32_partitions,
    "fnv1a": _fnv1a_partitions,
}


def fitting(keys: BinaryValues, found: Partitions, partitions: int) -> dict[str, int]:
    """How many keys are where each partitioner would have put them."""
    return {name: int((place(keys, partitions) == found).sum()) for name, place in PARTITIONERS.items()}


def _bytes(keys: BinaryValues) -> Iterator[tuple[Int64s, UInt32s]]:
    """For every position: which keys are that long, and their byte there."""
    for position in range(int(keys.lengths.max()) if len(keys.lengths) else 0):
        at = np.flatnonzero(keys.lengths > position)
        yield at, keys.data[keys.starts[at] + position].astype(np.uint32)


def _crc_table() -> UInt32s:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> np.uint32(1)) ^ np.uint32(0xEDB88320), table >> np.uint32(1))
    return table.astype(np.uint32)


_CRC_TABLE = _crc_table()
