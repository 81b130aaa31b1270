"""The values that travel: records in their three stages (consumed, processed, produced), windows and changes.

All are immutable. `gc=False` keeps them out of the collector's sight: they hold values but never form cycles, and millions of
them are made. What serialises them lives in serdes/, what routes them in compiler/ and task/.
"""

from __future__ import annotations

from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from streamfleet.errors import StreamsError

K = TypeVar("K")
V = TypeVar("V")

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
"""Record headers, in order; a name may stand more than once. A tuple, so that siblings in the graph can share it safely."""

NO_TIMESTAMP = -1


def _no_timestamp(number: int) -> StreamsError:
    return StreamsError(f"a record cannot have the timestamp {number}", hint="timestamps are milliseconds since 1970")


class Record(msgspec.Struct, Generic[K, V], frozen=True, gc=False):
    """What processors receive and forward."""

    key: K
    value: V
    timestamp: int
    headers: Headers = ()

    def with_key(self, key: Any) -> Record[Any, V]:
        return Record(key, self.value, self.timestamp, self.headers)

    def with_value(self, value: Any) -> Record[K, Any]:
        return Record(self.key, value, self.timestamp, self.headers)

    def with_timestamp(self, timestamp: int) -> Record[K, V]:
        if timestamp < 0:
            raise _no_timestamp(timestamp)
        return Record(self.key, self.value, timestamp, self.headers)

    def with_headers(self, headers: Headers) -> Record[K, V]:
        return Record(self.key, self.value, self.timestamp, headers)


class FixedKeyRecord(msgspec.Struct, Generic[K, V], frozen=True, gc=False):
    """What a FixedKeyProcessor receives and forwards: a Record whose key cannot be changed."""

    key: K
    value: V
    timestamp: int
    headers: Headers = ()

    def with_value(self, value: Any) -> FixedKeyRecord[K, Any]:
        return FixedKeyRecord(self.key, value, self.timestamp, self.headers)

    def with_timestamp(self, timestamp: int) -> FixedKeyRecord[K, V]:
        if timestamp < 0:
            raise _no_timestamp(timestamp)
        return FixedKeyRecord(self.key, self.value, timestamp, self.headers)

    def with_headers(self, headers: Headers) -> FixedKeyRecord[K, V]:
        return FixedKeyRecord(self.key, self.value, self.timestamp, headers)


class ConsumedRecord(msgspec.Struct, Generic[K, V], frozen=True, gc=False):
    """A record after the source's serdes: what a timestamp extractor sees. `timestamp` is still the broker's."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: K
    value: V
    headers: Headers = ()


class ProducerRecord(msgspec.Struct, frozen=True, gc=False):
    """A record on its way out. `partition` None leaves the choice to the producer; `timestamp` None to its clock."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int | None
    headers: Headers = ()
    partition: int | None = None


class RecordMetadata(msgspec.Struct, frozen=True, gc=False):
    """Where the input record under way came from."""

    topic: str
    partition: int
    offset: int


class RecordContext(msgspec.Struct, frozen=True, gc=False):
    """What is known of the record under way beyond what processors were given; stores and sinks take timestamp and headers from it.

    `key` and `value` are the input record's bytes, kept for dead letters; None where there is no input record.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()

    def derive(self, timestamp: int, headers: Headers) -> RecordContext:
        return RecordContext(self.topic, self.partition, self.offset, timestamp, self.key, self.value, headers)


class RawRecord(RecordContext, frozen=True, gc=False):
    """A record as it was read from a topic: bytes, before any serde. While nobody gives it another time it is its own context, so
    that an input record is made once.
    """


class ValueAndTimestamp(msgspec.Struct, Generic[V], frozen=True, gc=False):
    """What timestamped stores hold. `value` is never None: a missing value is a missing row."""

    value: V
    timestamp: int


class VersionedRecord(msgspec.Struct, Generic[V], frozen=True, gc=False):
    """A value with the time it is valid from, and the time until which it was (None: it is the latest)."""

    value: V
    timestamp: int
    valid_to: int | None = None


class Change(msgspec.Struct, Generic[V], frozen=True, gc=False):
    """What tables forward: the new value of a key and, where somebody downstream asked for it, the old one.

    `is_latest` is false for an out-of-order update of a versioned table: it changes history, not the current value.
    """

    new: V | None
    old: V | None
    is_latest: bool = True


class TimeWindow(msgspec.Struct, frozen=True, gc=False, order=True):
    """[start, end), except for sliding windows, which include their end."""

    start: int
    end: int


class SessionWindow(msgspec.Struct, frozen=True, gc=False, order=True):
    """[start, end], both inclusive."""

    start: int
    end: int


class Windowed(msgspec.Struct, Generic[K], frozen=True, gc=False):
    """The key of a windowed result."""

    key: K
    window: TimeWindow | SessionWindow

    def __str__(self) -> str:
        return f"[{self.key}@{self.window.start}/{self.window.end}]"
