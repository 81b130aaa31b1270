"""Kafka's default partitioning of keyed records: murmur2 of the key bytes. Called by the record collector and by who
asks where a key lives; it must agree byte for byte with the Java clients, or co-partitioned topics drift apart.
"""

from __future__ import annotations

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The 32-bit hash as Java shows it: signed."""
    length = len(data)
    h = _SEED ^ length
    words = length & ~3
    for at in range(0, words, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = h * _M & _MASK ^ k
    if words < length:
        h = (h ^ int.from_bytes(data[words:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    h ^= h >> 15
    return h - 0x100000000 if h & 0x80000000 else h


def partition_for(key: bytes, partitions: int) -> int:
    """The partition that a record with this key belongs to. Null keys have none: the producer chooses."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
