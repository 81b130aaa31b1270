"""Timestamp extractors: which time a record has. Called by the record queue of a partition, once per record, in offset order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from streamfleet.clock import Clock, SystemClock
from streamfleet.errors import TimestampError
from streamfleet.records import ConsumedRecord


class TimestampExtractor(ABC):
    @abstractmethod
    def extract(self, record: ConsumedRecord[Any, Any], partition_time: int) -> int:
        """The record's timestamp; a negative one drops the record. `partition_time` is the highest seen so far, -1 at first."""


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


class WallclockTimestampExtractor(TimestampExtractor):
    """The time at which the record is read: processing time instead of event time."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()

    def extract(self, record: ConsumedRecord[Any, Any], partition_time: int) -> int:
        return self._clock.now_ms()
