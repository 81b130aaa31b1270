"""OwnVersionedStore: the typed store of a key's values over time, and its builder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

from streamfleet.durations import Duration, duration_ms
from streamfleet.errors import OptionError
from streamfleet.records import RawRecord, VersionedRecord
from streamfleet.serdes.api import Serde
from streamfleet.state.api import FlushListener, StoreContext, VersionedKeyValueStore
from streamfleet.state.builders import Logging, check_store_name
from streamfleet.state.changelog import EachChange
from streamfleet.state.codec import StoreCodec
from streamfleet.state.dirty_buffer import DirtyBuffer
from streamfleet.state.store_home import RowsHome, StoreHome
from streamfleet.state.task_store import QueryableStore
from streamfleet.state.versioned_rows import Version, VersionedRows

K = TypeVar("K")
V = TypeVar("V")

COMPACTION_SLACK_MS = 24 * 60 * 60 * 1000
"""The changelog keeps all versions for that much longer than the store, in case clocks disagree."""


class OwnVersionedStore(QueryableStore, VersionedKeyValueStore[K, V]):
    def __init__(self, builder: VersionedStoreBuilder) -> None:
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
        self._context = home.context
        self._codec = StoreCodec(self.name, builder.key_serde, builder.value_serde, home.context, is_timestamped=False)
        self._rows = self._make_rows(home)
        # Every version counts, so none is left out of the changelog.
        self._log = home.changelog(self.name, EachChange) if builder.logging_enabled else None
        self._is_open = True

    def _make_rows(self, home: RowsHome) -> VersionedRows:
        builder, rows = self._builder, home.rows("rocksdb")
        buffer, facts = rows.buffer(self.name), rows.facts(self.name)
        return VersionedRows(buffer, facts, builder.history_retention_ms, builder.segment_interval_ms)

    @property
    def is_timestamped(self) -> bool:
        return False

    @property
    def remembers_commit(self) -> bool:
        return True

    @property
    def _scanned(self) -> DirtyBuffer:
        return self._rows.buffer

    def current_view(self) -> QueryableStore:
        """Without a cache, reading leaves no trace."""
        return self

    def committed_view(self, home: RowsHome) -> QueryableStore:
        view: OwnVersionedStore[K, V] = OwnVersionedStore(self._builder)
        view._codec, view._rows = self._codec, view._make_rows(home)
        return view

    def put(self, key: K, value: V | None, timestamp: int) -> int:
        raw, data = self._codec.key_bytes(key), self._codec.value_bytes(value)
        valid_to = self._put(raw, data, timestamp)
        if self._log is not None:
            self._log.log(raw, data, timestamp)  # too old or not: so it is in the original
        return valid_to

    def _put(self, raw: bytes, data: bytes | None, timestamp: int) -> int:
        if self._rows.is_too_old(timestamp):
            self._context.drop(self.name, "expired")
            return self.NOT_PUT
        valid_to = self._rows.put(raw, data, timestamp)
        return self.VALID_TO_UNDEFINED if valid_to is None else valid_to

    def delete(self, key: K, timestamp: int) -> VersionedRecord[V] | None:
        raw = self._codec.key_bytes(key)
        there = None if self._rows.is_too_old(timestamp) else self._rows.as_of(raw, timestamp)
        self.put(key, None, timestamp)
        return self._decoded(there)

    def get(self, key: K, as_of: int | None = None) -> VersionedRecord[V] | None:
        raw = self._codec.key_bytes(key)
        return self._decoded(self._rows.latest(raw) if as_of is None else self._rows.as_of(raw, as_of))

    def versions(self, key: K, *, reverse: bool = False) -> Iterator[VersionedRecord[V]]:
        for version in self._rows.versions(self._codec.key_bytes(key), reverse=reverse):
            record = self._decoded(version)
            assert record is not None
            yield record

    def set_flush_listener(self, _listener: FlushListener, *, send_old_values: bool) -> bool:
        """It has no cache."""
        return False

    def restore(self, records: Iterable[RawRecord]) -> None:
        rows = self._rows
        for record in records:
            if record.key is not None and not rows.is_too_old(record.timestamp):
                rows.put(record.key, record.value, record.timestamp)

    def discard(self) -> None:
        self._rows.reload()

    def close(self) -> None:
        self._is_open = False

    def _decoded(self, version: Version | None) -> VersionedRecord[V] | None:
        if version is None or version.value is None:
            return None
        return VersionedRecord(self._codec.value_of(version.value), version.valid_from, version.valid_to)


@dataclass(frozen=True, eq=False, kw_only=True)
class VersionedStoreBuilder:
    """Stores of all versions that were valid within the history. Always on disk, never cached."""

    name: str
    history_retention_ms: int
    segment_interval_ms: int
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
        given = {} if isinstance(self.logging, bool) else self.logging
        return {"min.compaction.lag.ms": str(self.history_retention_ms + COMPACTION_SLACK_MS), **given}

    def with_serdes(self, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None) -> Self:
        return replace(self, key_serde=key_serde or self.key_serde, value_serde=value_serde or self.value_serde)

    def with_logging(self, logging: Logging = True) -> Self:
        return replace(self, logging=logging)

    def with_caching(self, _caching: bool = True) -> Self:
        return self

    def build(self) -> OwnVersionedStore[Any, Any]:
        return OwnVersionedStore(self)


def versioned_builder(
    name: str, history_retention: Duration, segment_interval: Duration | None, **options: Any
) -> VersionedStoreBuilder:
    check_store_name(name)
    history_ms = duration_ms(history_retention, f"history_retention of store {name}")
    interval_ms = (
        _usual_interval_ms(history_ms)
        if segment_interval is None
        else duration_ms(segment_interval, f"segment_interval of store {name}")
    )
    if interval_ms < 1:
        raise OptionError(f"segment_interval of store {name} must be at least 1 ms, got {segment_interval!r}")
    return VersionedStoreBuilder(name=name, history_retention_ms=history_ms, segment_interval_ms=interval_ms, **options)


def _usual_interval_ms(history_ms: int) -> int:
    """Few segments for a short history, more for a long one: each costs a lookup, and holds rows longer than needed."""
    if history_ms <= 60_000:
        return max(history_ms // 3, 2_000)
    if history_ms <= 300_000:
        return max(history_ms // 5, 20_000)
    if history_ms <= 3_600_000:
        return max(history_ms // 12, 60_000)
    return max(history_ms // 24, 300_000)
