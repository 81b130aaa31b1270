"""AuditEngine: what an audit needs done with many records. local_engine.py and spark_engine.py do it, with equal results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from streamfleet_jobs.audit.facts import PartitionFacts, Question
from streamfleet_jobs.audit.spec import StoreSpec
from streamfleet_jobs.columns.row_digest import Digest
from streamfleet_jobs.kafka.topics import TopicPin

Ranges = Sequence[tuple[int, int]]
"""Offsets, both inclusive."""


class AuditEngine(Protocol):
    """`landed` is the directory of a store's slim copy."""

    def land(self, store: StoreSpec, pin: TopicPin, landed: Path) -> int:
        """Copy [start, end) of every partition; the number of records. Begins anew what is not complete."""

    def facts(self, landed: Path, questions: Mapping[int, Question]) -> dict[int, PartitionFacts]: ...

    def tombstones_in(self, landed: Path, ranges: Mapping[int, Ranges]) -> dict[int, int]:
        """How many tombstones have their offset in one of the ranges."""

    def last_gaps(self, landed: Path) -> dict[int, int]:
        """The offset after the last gap in the offsets, by partition; absent: no gap."""

    def digests(self, landed: Path, store: StoreSpec, moments: Mapping[int, Moment]) -> dict[int, Digest]:
        """What the changelog says the store should hold, as of a moment, by partition."""

    def rows(
        self, landed: Path, store: StoreSpec, partition: int, buckets: Sequence[int], moment: Moment
    ) -> dict[bytes, int]:
        """The (signed) hashes behind some buckets of such a digest, by key."""


class Moment:
    """The changelog up to and including `offset`, without windows before `oldest_ms`."""

    __slots__ = ("offset", "oldest_ms")

    def __init__(self, offset: int, oldest_ms: int | None) -> None:
        self.offset = offset
        self.oldest_ms = oldest_ms
