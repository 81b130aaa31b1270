"""What the engine needs from outside, one Protocol per outside system. Each has one production adapter, the only module that
imports the library behind it. The clock's port is in clock.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from streamfleet.records import ProducerRecord


class Producer(Protocol):
    """Where results, repartition records, changelog records and dead letters leave a task."""

    def send(self, record: ProducerRecord) -> None:
        """Hand over one record. Raises what the client raises when it refuses the record."""

    def partition_count(self, topic: str) -> int | None:
        """Number of partitions of a topic, None if it is not known (then no partitioner can run)."""


class StoreEngine(Protocol):
    """Ordered bytes to bytes, below the stores: one per task and kind (memory, RocksDB). Keys order as unsigned bytes."""

    def get(self, key: bytes) -> bytes | None: ...

    def scan(self, start: bytes, end: bytes | None, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """Rows with start <= key < end (None: no upper bound), in key order or its reverse."""

    def write(
        self,
        puts: Iterable[tuple[bytes, bytes]],
        deletes: Iterable[bytes],
        range_deletes: Iterable[tuple[bytes, bytes]],
    ) -> None:
        """Apply range deletes (start <= key < end), then deletes and puts, as one atomic batch."""

    def flush(self) -> None:
        """Make everything written so far durable."""

    def close(self) -> None: ...
