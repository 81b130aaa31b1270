"""The buffered records of one input partition, in offset order. Owned by the partition group.

Only the head, and what is taken behind it, is deserialized and has a timestamp, because the timestamp extractor must see records
in order and with the partition time that the ones before have made. A record that cannot be used (unreadable, or with a negative
timestamp) is passed over; if it is the last one buffered it stays at the head, so that its offset is committed too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from streamfleet.compiler.program import InputRecord, TaskEnvironment
from streamfleet.errors import StreamsError, TaskInterruptedError, TimestampError
from streamfleet.ids import TopicPartition
from streamfleet.processor.timestamps import FailOnInvalidTimestamp, TimestampExtractor
from streamfleet.records import NO_TIMESTAMP, ConsumedRecord, RawRecord, RecordContext
from streamfleet.serdes.direct import DirectUse
from streamfleet.task.record_deserializer import RecordDeserializer


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
        self.taken_offset = -1
        """Of the last record that was taken."""
        self._deserializer = deserializer
        self._keys, self._values = deserializer.readers(partition.topic)
        self._extractor = extractor
        # The default takes the broker's time, if there is one: then nobody has to be asked.
        self._takes_given_time = type(extractor) is FailOnInvalidTimestamp
        self._environment = environment
        self._waiting: deque[RawRecord] = deque()
        self._head: InputRecord | None = None
        self._passed_over: RawRecord | None = None
        """Stands at the head while nothing usable is buffered."""

    def __len__(self) -> int:
        return len(self._waiting) + (self._head is not None or self._passed_over is not None)

    @property
    def head_timestamp(self) -> int:
        return NO_TIMESTAMP if self._head is None else self._head[0].timestamp

    @property
    def head_offset(self) -> int | None:
        """Offset of the next record to be processed; None if nothing is buffered."""
        if self._head is not None:
            return self._head[0].offset
        return None if self._passed_over is None else self._passed_over.offset

    def add(self, records: Iterable[RawRecord]) -> None:
        self._waiting.extend(records)
        if self._head is None and self._passed_over is None:
            self._move_into([], 0)

    def take(self, limit: int, before: int | None = None) -> list[InputRecord]:
        """The head and what follows it, at most `limit` records, and none that is not older than `before` but the head itself.
        Nothing if the head is a record that was passed over; it is gone then.
        """
        batch: list[InputRecord] = []
        passed_over = self._passed_over
        if passed_over is not None:
            self.taken_offset = passed_over.offset
            self._passed_over = None
            limit = 0
        self._move_into(batch, limit, before)
        if batch:
            self.taken_offset = batch[-1][0].offset
        return batch

    def clear(self) -> None:
        self._waiting.clear()
        self._head = None
        self._passed_over = None
        self.partition_time = NO_TIMESTAMP

    def _move_into(self, batch: list[InputRecord], limit: int, before: int | None = None) -> None:
        """Move the head, and what can be used of what waits behind it, into the batch as far as its limits allow; the next usable
        record is the head then. If there is none, but others, the last of them is kept as passed over.

        One loop without calls of its own, because it runs once per record.
        """
        waiting, raw = self._waiting, None
        key_of, value_of, takes_given_time = self._keys.call, self._values.call, self._takes_given_time
        head, self._head = self._head, None
        while True:
            if head is not None:
                timestamp = head[0].timestamp
                if len(batch) >= limit or (before is not None and batch and timestamp >= before):
                    self._head = head
                    return
                batch.append(head)
                if timestamp > self.partition_time:  # noqa: PLR1730  (once per record: a call costs more)
                    self.partition_time = timestamp
                head = raw = None
            if not waiting:
                self._passed_over = raw
                return
            raw = waiting.popleft()
            reader = self._keys
            try:  # as deserializer.deserialize(raw) does it
                key = None if raw.key is None else key_of(raw.key)
                reader = self._values
                value = None if raw.value is None else value_of(raw.value)
            except (TaskInterruptedError, MemoryError):
                raise
            except Exception as error:
                self._leave_out(raw, reader, error)
                continue
            context: RecordContext = raw
            if raw.timestamp < 0 or not takes_given_time:
                timestamp = self._extract_timestamp(raw, key, value)
                if timestamp < 0:
                    self._environment.drop(self.source, self._extractor.drop_reason(timestamp))
                    continue
                if timestamp != raw.timestamp:
                    context = raw.derive(timestamp, raw.headers)
            head = (context, key, value)

    def _leave_out(self, raw: RawRecord, reader: DirectUse, error: Exception) -> None:
        part, data = ("key", raw.key) if reader is self._keys else ("value", raw.value)
        assert data is not None
        self._deserializer.leave_out(raw, part, reader.reason(data, error))

    def _extract_timestamp(self, raw: RawRecord, key: Any, value: Any) -> int:
        record = ConsumedRecord(raw.topic, raw.partition, raw.offset, raw.timestamp, key, value, raw.headers)
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
