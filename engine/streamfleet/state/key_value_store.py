"""OwnKeyValueStore: the typed key-value store, plain, timestamped or LRU. Built by KeyValueStoreBuilder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from streamfleet.records import ValueAndTimestamp
from streamfleet.serdes.api import Serde
from streamfleet.state.api import KeyValueStore, StoreIterator
from streamfleet.state.builders import KeyValueStoreBuilder
from streamfleet.state.cached_rows import CachedKeyValueRows, CachedRows
from streamfleet.state.dirty_buffer import successor
from streamfleet.state.holding_store import HoldingStore
from streamfleet.state.key_value_rows import LruRows, MemoryKeyValueRows, RocksDBKeyValueRows
from streamfleet.state.logged_rows import LoggedRows
from streamfleet.state.own_store import RowIterator
from streamfleet.state.rows_api import BottomRows, KeyValueRows, Rows
from streamfleet.state.store_home import RowsHome, StoreHome

K = TypeVar("K")
V = TypeVar("V")


class OwnKeyValueStore(HoldingStore, KeyValueStore[K, V]):
    """Its raw keys are the serialized keys."""

    def __init__(self, builder: KeyValueStoreBuilder[K, V]) -> None:
        super().__init__(builder, is_timestamped=builder.is_timestamped)
        self._max_entries = builder.max_entries

    def _may_hold_objects(self) -> bool:
        return self._max_entries is None and not self._builder.forgets_timestamps

    def get(self, key: K) -> V | None:
        if self._read_memory is not None:
            self._keep_what_is_read()
        value: V | None = self.get_at(self._codec.key_bytes(key))
        return value

    def put(self, key: K, value: V | None) -> None:
        self._put(self._codec.key_bytes(key), value)

    # for who reads a row and writes it again: the key is serialized once

    @property
    def raw_key(self) -> Callable[[K], bytes]:
        return self.codec.key_bytes

    def put_row(self, raw: bytes, value: Any, timestamp: int) -> bool:
        """`put` of a timestamped store; a value of None deletes. True: it is the newest of its key."""
        hold = self._hold_object  # as _hold_row does it: a call less per record
        if hold is not None and value is not None and (size := self._codec.exact_size(value)) is not None:
            hold(raw, ValueAndTimestamp(value, timestamp), size)
        else:
            self._write(raw, None if value is None else ValueAndTimestamp(value, timestamp))
        return True

    def _put(self, raw: bytes, value: Any) -> None:
        if not self._hold(raw, value):
            self._write(raw, value)

    def _write(self, raw: bytes, value: Any) -> None:
        self._forget(raw)
        self._top.put(raw, self._codec.value_bytes(value))

    def put_if_absent(self, key: K, value: V | None) -> V | None:
        raw = self._codec.key_bytes(key)
        there: V | None = self.get_at(raw)
        if there is None:
            self._put(raw, value)
        return there

    def put_all(self, entries: Iterable[tuple[K, V | None]]) -> None:
        for key, value in entries:
            self.put(key, value)

    def delete(self, key: K) -> V | None:
        raw = self._codec.key_bytes(key)
        there: V | None = self.get_at(raw)
        self._put(raw, None)
        return there

    def range(self, key_from: K | None, key_to: K | None) -> StoreIterator[tuple[K, V]]:
        return self._range(key_from, key_to, reverse=False)

    def reverse_range(self, key_from: K | None, key_to: K | None) -> StoreIterator[tuple[K, V]]:
        return self._range(key_from, key_to, reverse=True)

    def all(self) -> StoreIterator[tuple[K, V]]:
        return self._range(None, None, reverse=False)

    def reverse_all(self) -> StoreIterator[tuple[K, V]]:
        return self._range(None, None, reverse=True)

    def prefix_scan(self, prefix: Any, prefix_serde: Serde[Any]) -> StoreIterator[tuple[K, V]]:
        start = prefix_serde.serialize(self._codec.topic, prefix)
        if start is None:
            raise TypeError(f"store {self.name} was given None as a prefix; use all() to scan everything")
        self.settle()
        return RowIterator(self._scans.scan(start, successor(start), reverse=False), self._decoded)

    def approximate_num_entries(self) -> int:
        self.settle()
        count: int = self._bottom.count()
        return count

    def _range(self, key_from: K | None, key_to: K | None, *, reverse: bool) -> StoreIterator[tuple[K, V]]:
        start = self._codec.bound_bytes(key_from) or b""
        last = self._codec.bound_bytes(key_to)
        end = None if last is None else last + b"\x00"
        self.settle()
        return RowIterator(self._scans.scan(start, end, reverse=reverse), self._decoded)

    def _decoded(self, raw: bytes, value: bytes) -> tuple[K, V]:
        return self._codec.key_of(raw), self._codec.value_of(value)

    def _listened_key(self, raw: bytes) -> Any:
        return self._codec.key_of(raw)

    def _make_rows(self, home: RowsHome) -> KeyValueRows:
        rows = home.rows(self._builder.kind)
        buffer = rows.buffer(self.name)
        if self._max_entries is not None and not home.is_read_only:
            return LruRows(buffer, self._max_entries)
        if self.is_persistent:
            return RocksDBKeyValueRows(buffer, rows.facts(self.name))
        return MemoryKeyValueRows(buffer)

    def _make_cache(self, below: Rows, bottom: KeyValueRows, home: StoreHome) -> CachedRows:
        return CachedKeyValueRows(below, bottom, home)

    def _on_logged(self, bottom: BottomRows, logged: LoggedRows) -> None:
        """Evictions are logged in plain LRU stores only: those of tables are not, as in Kafka Streams."""
        if isinstance(bottom, LruRows) and not self._is_timestamped:
            bottom.on_evict = logged.log_removal
