"""TestInputTopic: pipes typed records into a topic of the driver, with a time of its own for those that bring none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from streamfleet.durations import Duration, duration_ms
from streamfleet.records import Headers, Record
from streamfleet.serdes.api import Serde

K = TypeVar("K")
V = TypeVar("V")

PipeRaw = Callable[[str, bytes | None, bytes | None, int, Headers], None]
"""pipe_raw of the driver."""


class TestInputTopic(Generic[K, V]):
    """Made by `TopologyTestDriver.input_topic`."""

    __test__ = False  # not a test, whatever its name makes pytest think

    def __init__(
        self,
        name: str,
        key_serde: Serde[K],
        value_serde: Serde[V],
        pipe_raw: PipeRaw,
        start_ms: int,
        auto_advance: Duration,
    ) -> None:
        self.name = name
        self._key_serde = key_serde
        self._value_serde = value_serde
        self._pipe_raw = pipe_raw
        self._time_ms = start_ms
        self._auto_advance_ms = duration_ms(auto_advance, "auto_advance")

    def pipe(self, key: K | None, value: V | None, timestamp: int | None = None, headers: Headers = ()) -> None:
        """Process one record, and all that follows from it. Without timestamp it gets the topic's time, which then
        advances.
        """
        if timestamp is None:
            timestamp = self._time_ms
            self._time_ms += self._auto_advance_ms
        key_bytes = None if key is None else self._key_serde.serialize(self.name, key)
        value_bytes = None if value is None else self._value_serde.serialize(self.name, value)
        self._pipe_raw(self.name, key_bytes, value_bytes, timestamp, headers)

    def pipe_record(self, record: Record[K, V]) -> None:
        self.pipe(record.key, record.value, record.timestamp, record.headers)

    def pipe_list(self, records: Iterable[tuple[K | None, V | None] | Record[K, V]]) -> None:
        """Pipe one after the other: pairs of key and value, or whole Records."""
        for record in records:
            if isinstance(record, Record):
                self.pipe_record(record)
            else:
                self.pipe(*record)

    def advance_time(self, duration: Duration) -> None:
        """Move the time that records without timestamp get. The driver's wall clock is not touched."""
        self._time_ms += duration_ms(duration, "the step of the topic's time")
