"""TestOutputTopic: reads what the topology has produced to a topic, in order, each record once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from streamfleet.records import NO_TIMESTAMP, Record
from streamfleet.serdes.api import Serde
from streamfleet.testing.recording_producer import ProducedRecord

K = TypeVar("K")
V = TypeVar("V")


class TestOutputTopic(Generic[K, V]):
    """Made by `TopologyTestDriver.output_topic`. Two of the same topic read from the same records."""

    __test__ = False  # not a test, whatever its name makes pytest think

    def __init__(
        self,
        name: str,
        key_serde: Serde[K],
        value_serde: Serde[V],
        records: deque[ProducedRecord],
        topics_with_records: Callable[[], list[str]],
    ) -> None:
        self.name = name
        self._key_serde = key_serde
        self._value_serde = value_serde
        self._records = records
        self._topics_with_records = topics_with_records

    def __len__(self) -> int:
        """Number of records that were not read yet."""
        return len(self._records)

    @property
    def is_empty(self) -> bool:
        return not self._records

    def read(self) -> tuple[K | None, V | None]:
        """Key and value of the next record."""
        record = self.read_record()
        return record.key, record.value

    def read_record(self) -> Record[K | None, V | None]:
        """The next record with timestamp and headers; -1 stands for no timestamp."""
        if not self._records:
            others = ", ".join(self._topics_with_records()) or "none"
            raise LookupError(f"there is nothing to read from topic {self.name}; topics with unread records: {others}")
        raw = self._records.popleft()
        key = None if raw.key is None else self._key_serde.deserialize(self.name, raw.key)
        value = None if raw.value is None else self._value_serde.deserialize(self.name, raw.value)
        return Record(key, value, NO_TIMESTAMP if raw.timestamp is None else raw.timestamp, raw.headers)

    def read_all(self) -> list[tuple[K | None, V | None]]:
        """Key and value of everything that was not read yet."""
        return [self.read() for _ in range(len(self._records))]

    def read_all_records(self) -> list[Record[K | None, V | None]]:
        return [self.read_record() for _ in range(len(self._records))]

    def read_table(self) -> dict[K | None, V | None]:
        """Everything that was not read yet, as a table: the last value per key."""
        return dict(self.read_all())
