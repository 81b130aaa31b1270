"""Rows, table files and changelog say the same, and a sample is computed again by the engine itself. Called by job.py.

Digests are those of audits (columns/row_digest.py), with timestamps, so that a later audit compares with the same words.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamfleet.partitioner import partition_for
from streamfleet_jobs.bootstrap.rows import logged_value
from streamfleet_jobs.bootstrap.spec import BootstrapSpec
from streamfleet_jobs.bootstrap.staging import Row
from streamfleet_jobs.columns.row_digest import BucketDigest, Digest, bucket_of, row_hash
from streamfleet_jobs.errors import RefusedError

_MASK = 2**64 - 1


def digest_of_records(rows: Iterable[Row]) -> Digest:
    found: dict[int, list[int]] = {}
    for key, value, timestamp in rows:
        hashed = row_hash(key, value, timestamp) & _MASK
        entry = found.setdefault(bucket_of(key), [0, 0, 0])
        entry[0] += 1
        entry[1] ^= hashed
        entry[2] = (entry[2] + hashed) & _MASK
    return {bucket: BucketDigest(*entry) for bucket, entry in found.items()}


def rows_of(digest: Digest) -> int:
    return sum(bucket.rows for bucket in digest.values())


def as_records(rows: Iterable[tuple[bytes, bytes]]) -> Iterable[Row]:
    """Rows of a store as its changelog has them."""
    return ((key, *logged_value(stored)) for key, stored in rows)


def check_placement(spec: BootstrapSpec, partition: int, rows: Iterable[Row]) -> Iterable[Row]:
    """The rows as they come, each checked by the engine's own partitioner."""
    for key, value, timestamp in rows:
        if (place := partition_for(key, spec.store.partitions)) != partition:
            raise RefusedError(
                f"a key of partition {partition} belongs into {place}",
                hint="this is a defect: do not publish this epoch",
            )
        yield key, value, timestamp


def check_equal(what: str, partition: int, found: Digest, wanted: Digest) -> None:
    if found != wanted:
        raise RefusedError(
            f"{what} of partition {partition} differ from what was computed ({rows_of(found)} rows, not {rows_of(wanted)})",
            hint="run the job again: it writes anew what cannot be proven",
        )


def to_detail(digest: Digest) -> dict[str, Any]:
    return {str(bucket): list(entry) for bucket, entry in sorted(digest.items())}


def from_detail(detail: dict[str, Any]) -> Digest:
    return {int(bucket): BucketDigest(*entry) for bucket, entry in detail.items()}
