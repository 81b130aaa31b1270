"""ChangeBuffer: updates of a table held back, at most one per key, ordered by time. What `suppress` keeps.

In memory, behind a dirty buffer like every store: an abort goes back to the last commit. Rows are

    'k' | key               -> time (8)                              where a key's update is
    't' | time (8) | key    -> the update, in the layout of its changelog record (version 3 of Kafka Streams'):
                               record context | prior | old | new | time (8), values as length (4, -1 for null) and bytes

A later update of a key takes the place of the earlier one, but keeps its time and its prior value: what the table held before
anything was held back, and so what readers of the suppressed table must still see. Changes are logged at commit, without timestamp.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import msgspec

from streamfleet.durations import LONG_MAX
from streamfleet.errors import StateStoreError
from streamfleet.records import NO_TIMESTAMP, Change, Headers, RawRecord, RecordContext, ValueAndTimestamp
from streamfleet.serdes.api import Serde
from streamfleet.state.api import StoreContext
from streamfleet.state.builders import Logging
from streamfleet.state.codec import StoreCodec
from streamfleet.state.store_home import StoreHome
from streamfleet.state.task_store import TaskStore

_BY_KEY = b"k"
_BY_TIME = b"t"
_AFTER_TIMES = b"u"
_VERSION: Headers = (("v", b"\x03"),)
_TIME = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_NULL = -1
_SAME_AS_PRIOR = -2


class Held(NamedTuple):
    """One update, values as bytes."""

    prior: bytes | None
    old: bytes | None
    new: bytes | None
    context: RecordContext


class Eviction(NamedTuple):
    """One update that leaves the buffer."""

    key: Any
    change: Change[Any]
    context: RecordContext


class ChangeBuffer(TaskStore):
    def __init__(self, builder: ChangeBufferBuilder) -> None:
        self.name = builder.name
        self._builder = builder
        self._is_open = False
        self.num_records = 0
        self.size_bytes = 0
        """As Kafka Streams measures it: what buffers are bounded by."""
        self.min_time = LONG_MAX
        """Of the update that leaves first."""
        self._inputs: dict[bytes, tuple[bytes | None, bytes | None]] | None = None

    def remember_inputs(self) -> None:
        """Keep the bytes of the records that the updates came from as well, for dead letters. In memory only: there is no place for
        them in the changelog's layout.
        """
        self._inputs = {}

    @property
    def is_open(self) -> bool:
        return self._is_open

    @property
    def is_persistent(self) -> bool:
        return False

    def open(self, context: StoreContext) -> None:
        self.open_in(StoreHome(context))

    def open_in(self, home: StoreHome) -> None:
        builder = self._builder
        self._codec = StoreCodec(self.name, builder.key_serde, builder.value_serde, home.context, is_timestamped=False)
        self._rows = home.rows("in_memory").buffer(self.name)
        logs = home.changelog(self.name, _ChangedKeys) if builder.logging_enabled else None
        self._changed = None if logs is None else logs.reading_from(self._logged)
        self._recount()
        self._is_open = True

    def put(self, time: int, key: Any, change: Change[Any], context: RecordContext) -> None:
        raw = self._codec.key_bytes(key)
        old, new = self._codec.value_bytes(change.old), self._codec.value_bytes(change.new)
        there = self._rows.get(_BY_KEY + raw)
        if there is None:
            self._rows.put(_BY_KEY + raw, _TIME.pack(time))
            self.min_time = min(self.min_time, time)
            self._set(raw, time, Held(old, old, new, context), None)
        else:
            (time,) = _TIME.unpack(there)
            before = self._held(raw, time)
            self._set(raw, time, Held(before.prior, old, new, context), before)
        if self._inputs is not None:
            self._inputs[raw] = context.key, context.value
        self._note(raw)

    def evict_while(self, is_too_much: Callable[[], bool], emit: Callable[[Eviction], None]) -> None:
        """Hand out the earliest updates, ordered by time and key bytes, as long as there is too much."""
        while is_too_much():
            row = next(self._rows.scan(_BY_TIME, _AFTER_TIMES), None)
            if row is None:
                return
            raw = row[0][9:]
            (time,) = _TIME.unpack(row[0][1:9])
            held = decode_held(row[1])
            value_of = self._value_of
            change = Change(value_of(held.new), value_of(held.old))
            emit(Eviction(self._codec.key_of(raw), change, self._with_input(raw, held.context)))
            self._remove(raw, time, held)
            self._note(raw)

    def prior(self, key: Any) -> tuple[bool, ValueAndTimestamp[Any] | None]:
        """Whether an update of the key is held back, and what the table showed before it. Its time is not known any more."""
        raw = self._codec.key_bytes(key)
        there = self._rows.get(_BY_KEY + raw)
        if there is None:
            return False, None
        prior = self._value_of(self._held(raw, _TIME.unpack(there)[0]).prior)
        return True, None if prior is None else ValueAndTimestamp(prior, NO_TIMESTAMP)

    def restore(self, records: Iterable[RawRecord]) -> None:
        for record in records:
            if record.key is None:
                continue
            there = self._rows.get(_BY_KEY + record.key)
            if there is not None:
                (time,) = _TIME.unpack(there)
                self._remove(record.key, time, self._held(record.key, time))
            if record.value is not None:
                self._check_version(record)
                (time,) = _TIME.unpack(record.value[-_TIME.size :])
                self._rows.put(_BY_KEY + record.key, _TIME.pack(time))
                self.min_time = min(self.min_time, time)
                self._set(record.key, time, decode_held(record.value), None)

    def flush_cache(self) -> None:
        """Changes are logged when caches are flushed, not later: also if the flush of a store before this one has failed. So the
        changelog has in it what the original's has.
        """
        if self._changed is not None:
            self._changed.flush()

    def discard(self) -> None:
        if self._inputs is not None:
            self._inputs = {}
        self._recount()

    def close(self) -> None:
        self._is_open = False

    # rows

    def _set(self, raw: bytes, time: int, held: Held, before: Held | None) -> None:
        if before is None:
            self.num_records += 1
        self.size_bytes += _size(raw, held) - (0 if before is None else _size(raw, before))
        self._rows.put(_BY_TIME + _TIME.pack(time) + raw, encode_held(held, time))

    def _remove(self, raw: bytes, time: int, held: Held) -> None:
        self._rows.delete(_BY_TIME + _TIME.pack(time) + raw)
        self._rows.delete(_BY_KEY + raw)
        if self._inputs is not None:
            self._inputs.pop(raw, None)
        self.num_records -= 1
        self.size_bytes -= _size(raw, held)
        self.min_time = self._earliest()

    def _with_input(self, raw: bytes, context: RecordContext) -> RecordContext:
        if self._inputs is None or raw not in self._inputs:
            return context
        key, value = self._inputs[raw]
        return msgspec.structs.replace(context, key=key, value=value)

    def _held(self, raw: bytes, time: int) -> Held:
        encoded = self._rows.get(_BY_TIME + _TIME.pack(time) + raw)
        assert encoded is not None
        return decode_held(encoded)

    def _earliest(self) -> int:
        row = next(self._rows.scan(_BY_TIME, _AFTER_TIMES), None)
        return LONG_MAX if row is None else int(_TIME.unpack(row[0][1:9])[0])

    def _recount(self) -> None:
        self.num_records = 0
        self.size_bytes = 0
        for key, encoded in self._rows.scan(_BY_TIME, _AFTER_TIMES):
            self.num_records += 1
            self.size_bytes += _size(key[9:], decode_held(encoded))
        self.min_time = self._earliest()

    def _value_of(self, data: bytes | None) -> Any:
        return None if data is None else self._codec.value_of(data)

    # changelog

    def _note(self, raw: bytes) -> None:
        if self._changed is not None:
            self._changed.log(raw, None, None)

    def _logged(self, raw: bytes) -> bytes | None:
        there = self._rows.get(_BY_KEY + raw)
        return None if there is None else self._rows.get(_BY_TIME + there + raw)

    def _check_version(self, record: RawRecord) -> None:
        if dict(record.headers).get("v") != _VERSION[0][1]:
            raise StateStoreError(
                f"changelog record {record.topic}-{record.partition}@{record.offset} of suppressed updates is in a layout "
                "that is not known here",
                hint="it was written by Kafka Streams before 2.6: let a newer one, or a reset, write it again",
            )


class _ChangedKeys:
    """Which keys have changed since the last commit; what they changed to is asked then."""

    def __init__(self, context: StoreContext, store_name: str) -> None:
        self._send = context.log_change
        self._store_name = store_name
        self.keys: dict[bytes, None] = {}

    def reading_from(self, value_of: Callable[[bytes], bytes | None]) -> Self:
        self._value_of = value_of
        return self

    def log(self, key: bytes, value: bytes | None, timestamp: int | None, headers: Headers = ()) -> None:
        """The value is not kept: what the key holds at the commit is what counts."""
        self.keys[key] = None

    def flush(self) -> None:
        keys, self.keys = self.keys, {}
        for key in keys:
            value = self._value_of(key)
            self._send(self._store_name, key, value, None, () if value is None else _VERSION)

    def discard(self) -> None:
        self.keys = {}


@dataclass(frozen=True, eq=False, kw_only=True)
class ChangeBufferBuilder:
    name: str
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    logging: Logging = True
    kind: str = "in_memory"
    caching_enabled: bool = False
    is_windowed: bool = False
    retention_ms: int | None = None

    @property
    def logging_enabled(self) -> bool:
        return self.logging is not False

    @property
    def log_config(self) -> Mapping[str, str]:
        return {} if isinstance(self.logging, bool) else self.logging

    def with_serdes(self, key_serde: Serde[Any] | None, value_serde: Serde[Any] | None) -> Self:
        return replace(self, key_serde=key_serde or self.key_serde, value_serde=value_serde or self.value_serde)

    def build(self) -> ChangeBuffer:
        return ChangeBuffer(self)


def _size(raw: bytes, held: Held) -> int:
    context = held.context
    size = 8 + len(raw) + len(held.prior or b"") + len(held.new or b"")
    if held.old is not None and held.old != held.prior:
        size += len(held.old)
    size += 8 + 8 + len(context.topic) + 4
    return size + sum(len(name) + len(value or b"") for name, value in context.headers)


def encode_held(held: Held, time: int) -> bytes:
    old = _LENGTH.pack(_SAME_AS_PRIOR) if held.old is not None and held.old == held.prior else _sized(held.old)
    return _encode_context(held.context) + _sized(held.prior) + old + _sized(held.new) + _TIME.pack(time)


def _encode_context(context: RecordContext) -> bytes:
    parts = [
        _TIME.pack(context.timestamp),
        _TIME.pack(context.offset),
        _sized(context.topic.encode()),
        _LENGTH.pack(context.partition),
        _LENGTH.pack(len(context.headers)),
    ]
    for name, value in context.headers:
        parts += (_sized(name.encode()), _sized(value))
    return b"".join(parts)


def _sized(data: bytes | None) -> bytes:
    return _LENGTH.pack(_NULL) if data is None else _LENGTH.pack(len(data)) + data


def decode_held(encoded: bytes) -> Held:
    reader = _Reader(encoded)
    timestamp, offset = reader.number(_TIME), reader.number(_TIME)
    topic = (reader.sized() or b"").decode()
    partition = reader.number(_LENGTH)
    headers = tuple(((reader.sized() or b"").decode(), reader.sized()) for _ in range(reader.number(_LENGTH)))
    prior = reader.sized()
    old = reader.sized(same=prior)
    return Held(prior, old, reader.sized(), RecordContext(topic, partition, offset, timestamp, headers=headers))


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, layout: struct.Struct) -> int:
        (number,) = layout.unpack_from(self._data, self._at)
        self._at += layout.size
        return int(number)

    def sized(self, same: bytes | None = None) -> bytes | None:
        length = self.number(_LENGTH)
        if length == _SAME_AS_PRIOR:
            return same
        if length == _NULL:
            return None
        self._at += length
        return self._data[self._at - length : self._at]
