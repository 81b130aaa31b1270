"""Timestamp extractors: which time a record has. Called by the record queue of a partition, once per record, in offset order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from typing import Any

from streamfleet.clock import Clock, SystemClock
from streamfleet.durations import Duration, duration_ms
from streamfleet.errors import TimestampError
from streamfleet.records import ConsumedRecord


class TimestampExtractor(ABC):
    @abstractmethod
    def extract(self, record: ConsumedRecord[Any, Any], partition_time: int) -> int:
        """The record's timestamp; a negative one drops the record. `partition_time` is the highest seen so far, -1 at first."""

    def drop_reason(self, _timestamp: int) -> str:
        """What a record is counted as that was dropped for this (negative) timestamp."""
        return "negative timestamp"


class ExtractRecordMetadataTimestamp(TimestampExtractor):
    """The timestamp the producer or broker gave the record; subclasses say what to do if that is negative."""

    def extract(self, record: ConsumedRecord[Any, Any], partition_time: int) -> int:
        if record.timestamp < 0:
            return self.on_invalid_timestamp(record, record.timestamp, partition_time)
        return record.timestamp

    @abstractmethod
    def on_invalid_timestamp(self, record: ConsumedRecord[Any, Any], timestamp: int, partition_time: int) -> int: ...


class FailOnInvalidTimestamp(ExtractRecordMetadataTimestamp):
    """The default."""

    def on_invalid_timestamp(self, record: ConsumedRecord[Any, Any], timestamp: int, partition_time: int) -> int:
        raise TimestampError(
            f"input record has the invalid (negative) timestamp {timestamp}",
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            hint="set another timestamp extractor (LogAndSkipOnInvalidTimestamp, UsePartitionTimeOnInvalidTimestamp or "
            "one of your own) on the source or as default.timestamp.extractor",
        )


class LogAndSkipOnInvalidTimestamp(ExtractRecordMetadataTimestamp):
    """Drop the record (counted in dropped-records)."""

    def on_invalid_timestamp(self, record: ConsumedRecord[Any, Any], timestamp: int, partition_time: int) -> int:
        return timestamp


class UsePartitionTimeOnInvalidTimestamp(ExtractRecordMetadataTimestamp):
    """Take the highest timestamp seen in the partition; fails as long as there is none."""

    def on_invalid_timestamp(self, record: ConsumedRecord[Any, Any], timestamp: int, partition_time: int) -> int:
        if partition_time < 0:
            raise TimestampError(
                f"input record has the invalid (negative) timestamp {timestamp} and its partition has no time yet",
                topic=record.topic,
                partition=record.partition,
                offset=record.offset,
                hint="set a timestamp extractor that does not depend on earlier records",
            )
        return partition_time


class SkipFutureTimestamp(TimestampExtractor):
    """Drops records that are ahead of the clock by more than `max_future` (counted in dropped-records): a single one would move
    stream time so far that the records after it come too late for every window. `extractor` says which time a record has.
    """

    TOO_FAR = -(2**63)

    def __init__(
        self,
        max_future: Duration = timedelta(hours=1),
        extractor: TimestampExtractor | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._max_future_ms = duration_ms(max_future, "max_future")
        self._extractor = extractor or FailOnInvalidTimestamp()
        self._clock = clock or SystemClock()

    def extract(self, record: ConsumedRecord[Any, Any], partition_time: int) -> int:
        timestamp = self._extractor.extract(record, partition_time)
        return self.TOO_FAR if timestamp > self._clock.now_ms() + self._max_future_ms else timestamp

    def drop_reason(self, timestamp: int) -> str:
        return "timestamp in the future" if timestamp == self.TOO_FAR else self._extractor.drop_reason(timestamp)


class WallclockTimestampExtractor(TimestampExtractor):
    """The time at which the record is read: processing time instead of event time."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()

    def extract(self, record: ConsumedRecord[Any, Any], partition_time: int) -> int:
        return self._clock.now_ms()
