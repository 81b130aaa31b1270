"""The test driver's producer: keeps what is sent, in order. Every topic exists and has one partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from streamfleet.records import Headers, ProducerRecord


class ProducedRecord(msgspec.Struct, frozen=True):
    """A record as it would be in its topic. `timestamp` is None when the producer was given none and would take the
    time.
    """

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    timestamp: int | None
    headers: Headers = ()


class RecordingProducer:
    """Implements Producer."""

    def __init__(self) -> None:
        self._untaken: list[ProducedRecord] = []
        self._counts: Counter[str] = Counter()

    def send(self, record: ProducerRecord) -> None:
        self._counts[record.topic] += 1
        self._untaken.append(
            ProducedRecord(
                record.topic, record.partition or 0, record.key, record.value, record.timestamp, record.headers
            )
        )

    def partition_count(self, topic: str) -> int:
        return 1

    def take(self) -> list[ProducedRecord]:
        """What was sent since the last call."""
        taken, self._untaken = self._untaken, []
        return taken

    def end_offsets(self) -> Mapping[str, int]:
        """Offset of the last record of every topic."""
        return {topic: count - 1 for topic, count in self._counts.items()}
