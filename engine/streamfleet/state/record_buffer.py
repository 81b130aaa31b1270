"""RecordBuffer: stream records held back for some time, ordered by time. What a stream-table join with grace keeps.

On disk, behind a dirty buffer like every store. Rows, and records of the changelog (with 0x00 in front), are

    time (8) | key | sequence (4)    -> the record, in the layout of change_buffer.py, with nothing as prior and old value

Every record has a sequence number of its own, so equal ones do not replace each other. Changes are logged when they are made,
without timestamp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from streamfleet.records import RawRecord, RecordContext
from streamfleet.serdes.api import Serde
from streamfleet.state.api import StoreContext
from streamfleet.state.builders import Logging
from streamfleet.state.change_buffer import Held, decode_held, encode_held
from streamfleet.state.codec import StoreCodec
from streamfleet.state.raw_keys import MAX_SEQUENCE, pack_time
from streamfleet.state.store_home import StoreHome
from streamfleet.state.task_store import TaskStore

_LOG_PREFIX = b"\x00"
_TIME_SIZE = 8
_SEQUENCE_SIZE = 4


class HeldRecord(NamedTuple):
    key: Any
    value: Any
    context: RecordContext


class RecordBuffer(TaskStore):
    def __init__(self, builder: RecordBufferBuilder) -> None:
        self.name = builder.name
        self._builder = builder
        self._is_open = False

    @property
    def is_open(self) -> bool:
        return self._is_open

    @property
    def is_persistent(self) -> bool:
        return True

    def open(self, context: StoreContext) -> None:
        self.open_in(StoreHome(context))

    def open_in(self, home: StoreHome) -> None:
        builder = self._builder
        self._codec = StoreCodec(self.name, builder.key_serde, builder.value_serde, home.context, is_timestamped=False)
        rows = home.rows("rocksdb")
        self._rows, self._facts = rows.buffer(self.name), rows.facts(self.name)
        is_logged = builder.logging_enabled and home.context.changelog_topic(self.name) is not None
        self._log = home.context.log_change if is_logged else None
        self._is_open = True

    def put(self, key: Any, value: Any, context: RecordContext) -> bool:
        """False if the record is too late to be held back."""
        timestamp, facts = context.timestamp, self._facts
        if timestamp < facts.observed_time - self._builder.grace_ms:
            return False
        facts.observed_time = max(facts.observed_time, timestamp)
        facts.sequence = (facts.sequence + 1) & MAX_SEQUENCE
        raw, data = self._codec.key_bytes(key), self._codec.value_bytes(value)
        row = pack_time(timestamp) + raw + facts.sequence.to_bytes(_SEQUENCE_SIZE, "big")
        encoded = encode_held(Held(None, None, data, context), 0)
        self._rows.put(row, encoded)
        if self._log is not None:
            self._log(self.name, _LOG_PREFIX + row, encoded, None, ())
        return True

    def take_due(self, emit: Callable[[HeldRecord], None]) -> None:
        """Hand out, by time and key bytes, what was held back for as long as the grace."""
        due = self._facts.observed_time - self._builder.grace_ms
        if due < 0:
            return
        for row, encoded in self._rows.scan(b"", pack_time(due + 1)):
            held = decode_held(encoded)
            assert held.new is not None
            # First out of here: if it cannot be joined and is left out, it must not come again with every record after it.
            self._rows.delete(row)
            if self._log is not None:
                self._log(self.name, _LOG_PREFIX + row, None, None, ())
            key = self._codec.key_of(row[_TIME_SIZE:-_SEQUENCE_SIZE])
            emit(HeldRecord(key, self._codec.value_of(held.new), held.context))

    def restore(self, records: Iterable[RawRecord]) -> None:
        for record in records:
            if record.key is None:
                continue
            row = record.key[len(_LOG_PREFIX) :]
            facts, sequence = self._facts, int.from_bytes(row[-_SEQUENCE_SIZE:], "big")
            # Not simply the last one: what leaves is logged under the number it came with, and newer records may still be held.
            if facts.observed_time < 0 or _is_newer(sequence, facts.sequence):
                facts.sequence = sequence
            facts.observed_time = max(facts.observed_time, int.from_bytes(row[:_TIME_SIZE], "big"))
            if record.value is None:
                self._rows.delete(row)
            else:
                self._rows.put(row, record.value)

    def discard(self) -> None:
        """Nothing is kept beside the rows and the facts."""

    def close(self) -> None:
        self._is_open = False


def _is_newer(sequence: int, other: int) -> bool:
    """Numbers begin again at 0 some day, so ahead is what is less than half a round away."""
    return (sequence - other) & MAX_SEQUENCE <= MAX_SEQUENCE // 2


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordBufferBuilder:
    name: str
    grace_ms: int
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    logging: Logging = True
    kind: str = "rocksdb"
    caching_enabled: bool = False
    is_windowed: bool = False
    retention_ms: int | None = None

    @property
    def logging_enabled(self) -> bool:
        return self.logging is not False

    @property
    def log_config(self) -> Mapping[str, str]:
        return {} if isinstance(self.logging, bool) else self.logging

    def build(self) -> RecordBuffer:
        return RecordBuffer(self)
