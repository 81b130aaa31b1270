"""The buffered records of one input partition, in offset order. Owned by the partition group.

Only the head is deserialized and has a timestamp, because the timestamp extractor must see records in order and with
the partition time that the ones before have made. A record that cannot be used (unreadable, or with a negative
timestamp) is passed over; if it is the last one buffered it stays at the head as corrupted, so that its offset is
committed too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import msgspec

from streamfleet.compiler.program import TaskEnvironment
from streamfleet.errors import StreamsError, TimestampError
from streamfleet.ids import TopicPartition
from streamfleet.processor.timestamps import TimestampExtractor
from streamfleet.records import NO_TIMESTAMP, ConsumedRecord, RawRecord
from streamfleet.task.record_deserializer import RecordDeserializer


class StampedRecord(msgspec.Struct, frozen=True, gc=False):
    """A record with its time, ready to be processed."""

    raw: RawRecord
    key: Any
    value: Any
    timestamp: int
    is_corrupted: bool = False


class RecordQueue:
    """FIFO of one partition, read by one source."""

    def __init__(
        self,
        partition: TopicPartition,
        source: str,
        deserializer: RecordDeserializer,
        extractor: TimestampExtractor,
        environment: TaskEnvironment,
    ) -> None:
        self.partition = partition
        self.source = source
        self.partition_time = NO_TIMESTAMP
        self._deserializer = deserializer
        self._extractor = extractor
        self._environment = environment
        self._waiting: deque[RawRecord] = deque()
        self._head: StampedRecord | None = None

    def __len__(self) -> int:
        return len(self._waiting) + (self._head is not None)

    @property
    def head_timestamp(self) -> int:
        return NO_TIMESTAMP if self._head is None else self._head.timestamp

    @property
    def head_offset(self) -> int | None:
        """Offset of the next record to be processed; None if nothing is buffered."""
        return None if self._head is None else self._head.raw.offset

    def add(self, records: Iterable[RawRecord]) -> None:
        self._waiting.extend(records)
        self._update_head()

    def pop(self) -> StampedRecord | None:
        record = self._head
        if record is None:
            return None
        self._head = None
        self.partition_time = max(self.partition_time, record.timestamp)
        self._update_head()
        return record

    def clear(self) -> None:
        self._waiting.clear()
        self._head = None
        self.partition_time = NO_TIMESTAMP

    def _update_head(self) -> None:
        passed_over: RawRecord | None = None
        while self._head is None and self._waiting:
            raw = self._waiting.popleft()
            self._head = self._stamp(raw)
            if self._head is None:
                passed_over = raw
        if self._head is None and passed_over is not None:
            self._head = StampedRecord(passed_over, None, None, NO_TIMESTAMP, is_corrupted=True)

    def _stamp(self, raw: RawRecord) -> StampedRecord | None:
        record = self._deserializer.deserialize(raw)
        if record is None:
            return None
        timestamp = self._extract_timestamp(record)
        if timestamp < 0:
            self._environment.drop(self.source, "negative timestamp")
            return None
        return StampedRecord(raw, record.key, record.value, timestamp)

    def _extract_timestamp(self, record: ConsumedRecord[Any, Any]) -> int:
        try:
            return self._extractor.extract(record, self.partition_time)
        except StreamsError:
            raise
        except Exception as error:
            raise TimestampError(
                f"timestamp extractor {type(self._extractor).__qualname__} raised {type(error).__qualname__}: {error}",
                operator=self.source,
                topic=record.topic,
                partition=record.partition,
                offset=record.offset,
                hint="an extractor must return a number; a negative one leaves the record out",
            ) from error
