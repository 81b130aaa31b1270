"""What a row of a store, or the changelog record it came from, weighs: a hash per row, and sums of hashes in any order.

    hash     BLAKE2b, 8 bytes, of: length of the key (4, big endian) | timestamp (8, signed; -2^63 if rows have none) | key | value
    bucket   CRC-32 of the key, last 8 bits: a changed value stays in its bucket
    digest   per bucket: how many rows, xor and sum (mod 2^64) of their hashes

Workers compute the same of their stores (streamfleet/query/store_digest.py); a test holds both to the same bytes. Called by the
landing of both engines, by the comparison, and by bootstraps for what they write.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from streamfleet_jobs.columns.binary import Int64s

BUCKETS = 256
NO_TIMESTAMP = -(2**63)
_MASK = 2**64 - 1
_HEAD = struct.Struct(">iq")
_SIGNED = struct.Struct(">q")


class BucketDigest(NamedTuple):
    """Hashes are unsigned here."""

    rows: int
    xor: int
    sum: int


Digest = dict[int, BucketDigest]
"""By bucket; a bucket without rows is absent."""


def row_hash(key: bytes, value: bytes, timestamp: int = NO_TIMESTAMP) -> int:
    """Signed, as columns hold it."""
    digest = blake2b(_HEAD.pack(len(key), timestamp) + key + value, digest_size=8).digest()
    hashed: int = _SIGNED.unpack(digest)[0]
    return hashed


def row_hashes(
    keys: Iterable[bytes | None], values: Iterable[bytes | None], timestamps: Iterable[int] | None
) -> list[int | None]:
    """None for a tombstone, and for a record without key."""
    stamped = zip(keys, values, timestamps, strict=True) if timestamps is not None else _unstamped(keys, values)
    return [None if key is None or value is None else row_hash(key, value, at) for key, value, at in stamped]


def _unstamped(
    keys: Iterable[bytes | None], values: Iterable[bytes | None]
) -> Iterable[tuple[bytes | None, bytes | None, int]]:
    return ((key, value, NO_TIMESTAMP) for key, value in zip(keys, values, strict=True))


def bucket_of(key: bytes) -> int:
    return zlib.crc32(key) & (BUCKETS - 1)


def digest_of(buckets: Int64s, hashes: Int64s) -> Digest:
    """Of the rows with these buckets and (signed) hashes."""
    unsigned = hashes.view(np.uint64)
    counts = np.bincount(buckets, minlength=BUCKETS)
    xors, sums = np.zeros(BUCKETS, np.uint64), np.zeros(BUCKETS, np.uint64)
    np.bitwise_xor.at(xors, buckets, unsigned)
    np.add.at(sums, buckets, unsigned)  # wraps, as a sum mod 2^64 should
    return {
        int(bucket): BucketDigest(int(counts[bucket]), int(xors[bucket]), int(sums[bucket]))
        for bucket in np.flatnonzero(counts)
    }


def digest_of_rows(rows: Iterable[tuple[bytes, bytes]]) -> Digest:
    """Of rows without timestamps, one by one."""
    found: dict[int, list[int]] = {}
    for key, value in rows:
        hashed = row_hash(key, value) & _MASK
        entry = found.setdefault(bucket_of(key), [0, 0, 0])
        entry[0] += 1
        entry[1] ^= hashed
        entry[2] = (entry[2] + hashed) & _MASK
    return {bucket: BucketDigest(*entry) for bucket, entry in found.items()}


def differing_buckets(one: Digest, other: Digest) -> list[int]:
    return sorted(bucket for bucket in one.keys() | other.keys() if one.get(bucket) != other.get(bucket))


def content_checksum(digest: Digest) -> str:
    """One word for all of it: equal if and only if the digests are."""
    text = ";".join(f"{bucket}:{d.rows}:{d.xor:x}:{d.sum:x}" for bucket, d in sorted(digest.items()))
    return blake2b(text.encode(), digest_size=16).hexdigest()
