"""The timestamp extractors that the scenario format names: the engine's own, and some that read the value."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.conformance.kit import MalformedScenarioError

import streamfleet as sf

_TIMESTAMP = re.compile("@([0-9]+)")


def _timestamp_in(record: sf.ConsumedRecord[Any, Any]) -> int:
    """The digits after `@` in a text value, -1 if there are none."""
    found = _TIMESTAMP.search(record.value) if isinstance(record.value, str) else None
    return int(found[1]) if found else -1


class ValueTimestamp(sf.TimestampExtractor):
    """Hands out what it found, -1 included."""

    def extract(self, record: sf.ConsumedRecord[Any, Any], partition_time: int) -> int:
        return _timestamp_in(record)


class ValueTimestampOrFail(sf.FailOnInvalidTimestamp):
    def extract(self, record: sf.ConsumedRecord[Any, Any], partition_time: int) -> int:
        found = _timestamp_in(record)
        return found if found >= 0 else self.on_invalid_timestamp(record, found, partition_time)


class ValueTimestampOrSkip(sf.LogAndSkipOnInvalidTimestamp):
    def extract(self, record: sf.ConsumedRecord[Any, Any], partition_time: int) -> int:
        found = _timestamp_in(record)
        return found if found >= 0 else self.on_invalid_timestamp(record, found, partition_time)


class ValueTimestampOrPartitionTime(sf.UsePartitionTimeOnInvalidTimestamp):
    def extract(self, record: sf.ConsumedRecord[Any, Any], partition_time: int) -> int:
        found = _timestamp_in(record)
        return found if found >= 0 else self.on_invalid_timestamp(record, found, partition_time)


_EXTRACTORS: dict[str, Callable[[], sf.TimestampExtractor]] = {
    "fail": sf.FailOnInvalidTimestamp,
    "log_and_skip": sf.LogAndSkipOnInvalidTimestamp,
    "use_partition_time": sf.UsePartitionTimeOnInvalidTimestamp,
    "wallclock": sf.WallclockTimestampExtractor,
    "value": ValueTimestamp,
    "value_or_fail": ValueTimestampOrFail,
    "value_or_skip": ValueTimestampOrSkip,
    "value_or_partition_time": ValueTimestampOrPartitionTime,
}


def extractor(name: str) -> sf.TimestampExtractor:
    if name not in _EXTRACTORS:
        raise MalformedScenarioError(f"unknown timestamp extractor {name}")
    return _EXTRACTORS[name]()
