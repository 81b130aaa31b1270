"""PartitionFacts: what the keys of one changelog partition add up to. Made by either engine, equal whichever; read by the rules.

A record is *live* if it is the last of its key and no tombstone, *superseded* if a later one has its key. Sizes are those of keys
and values, before compression.
"""

from __future__ import annotations

import msgspec

BINS = 64
"""Of the density profile: pieces of equal width between start and end."""
HOT_KEYS = 5
NAMED_KEYS = 10
FITS = ("murmur2", "crc32", "fnv1a")


class HotKey(msgspec.Struct, frozen=True):
    key: bytes
    records: int


class Question(msgspec.Struct, frozen=True):
    """What of a partition is counted."""

    start: int
    end: int
    closed_end: int
    """The base of the active segment: what lies before it can be compacted."""
    partitions: int
    suffix: int
    """Length of what follows the record's own key."""
    partitioner: str


class PartitionFacts(msgspec.Struct, frozen=True):
    partition: int
    records: int = 0
    tombstones: int = 0
    null_keys: int = 0
    keys: int = 0
    live_keys: int = 0
    total_bytes: int = 0
    latest_bytes: int = 0
    """Of the last record of every key, tombstones included: what compaction would leave."""
    closed_bytes: int = 0
    closed_superseded_bytes: int = 0
    """Of records with a later one of their key in closed segments: what compaction could remove now."""
    first_repeat: int | None = None
    """The first offset whose key was there before; None: there is none."""
    fits: dict[str, int] = {}
    """How many keys are where each partitioner puts them."""
    misplaced: int = 0
    misplaced_keys: tuple[bytes, ...] = ()
    """The first few in the order of bytes."""
    misplaced_fits: dict[str, int] = {}
    """Of the misplaced ones alone: how many each partitioner explains."""
    hot_keys: tuple[HotKey, ...] = ()
    live_bins: tuple[int, ...] = ()
    superseded_bins: tuple[int, ...] = ()
    tombstone_bins: tuple[int, ...] = ()
    """The last of its key, but a tombstone."""


def bin_width(start: int, end: int) -> int:
    """Of the profile: offset o is in bin (o - start) // width."""
    return max(1, -(-(end - start) // BINS))
