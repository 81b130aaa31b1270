"""HoldingStore: an OwnStore that may hold values as objects, so that a row that changes often is decoded and encoded seldom.

    without a cache    objects until the commit, and after it for reads: ObjectCache
    with a cache       objects instead of bytes in the record cache: ObjectEntry

Only timestamped stores do: the changes of others are stamped with the time of the record under way. And only for values that nobody
can change in place, that come back from their bytes as they were, and of which the serde knows the size (`exact_size`). Others
that nobody can change, such as frozen structs, become bytes when they are put; what was decoded is kept for the next reader.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from streamfleet.records import RawRecord, ValueAndTimestamp
from streamfleet.state.cached_rows import CachedRows
from streamfleet.state.logged_rows import TIMESTAMP_SIZE
from streamfleet.state.object_cache import ObjectCache, ObjectMemory
from streamfleet.state.own_store import OwnStore
from streamfleet.state.record_cache import CacheEntry, ObjectEntry
from streamfleet.state.store_home import StoreHome


class HoldingStore(OwnStore):
    """Reads and writes rows by their raw keys."""

    _objects: ObjectCache | None = None
    _object_entries: CachedRows | None = None
    _hold_object: Callable[[bytes, Any, int], None] | None = None
    """The `put` of either: raw key, object, and its size in bytes. None: objects are kept for reads only, if at all."""
    _read_memory: ObjectMemory | None = None
    """Where objects may be kept for reads, once there is somebody who only reads."""
    _seen: HoldingStore | None = None

    def open_in(self, home: StoreHome) -> None:
        super().open_in(home)
        codec, memory = self._codec, home.context.caches.objects
        holds, keeps = codec.exact_size is not None, codec.gives_immutables
        if not self._may_hold_objects() or not self._is_timestamped or not (holds or keeps):
            return
        if self._cache is not None:
            self._object_entries = self._cache
            if holds:
                self._cache.encode_objects_with(codec.value_bytes, TIMESTAMP_SIZE)
                self._hold_object = self._cache.put_object
        elif memory.max_bytes > 0 and holds and not self._logs_each_change(home):
            self._objects = ObjectCache(memory)
            self._hold_object = self._objects.put
        elif memory.max_bytes > 0 and keeps:
            self._read_memory = memory

    def _keep_what_is_read(self) -> None:
        """Called when somebody reads who does not write the row again at once, as joins do; aggregations would keep in vain."""
        assert self._read_memory is not None
        self._objects, self._read_memory = ObjectCache(self._read_memory), None

    @abstractmethod
    def _may_hold_objects(self) -> bool:
        """Whether the rows of this store are such that an object stands for its row until the commit."""

    def _logs_each_change(self, home: StoreHome) -> bool:
        """Then a value must become bytes when it is put."""
        return self._builder.logging_enabled and not home.context.deduplicate_changelog

    def current_view(self) -> OwnStore:
        view = super().current_view()
        assert isinstance(view, HoldingStore)
        view._seen = self  # noqa: SLF001  (a view finds the objects of the store that it is a view of)
        return view

    def peek(self, raw: bytes) -> Any:
        """The value as an object, if it is held as one; without counting as use."""
        return None if self._objects is None else self._objects.peek(raw)

    def get_at(self, raw: bytes) -> Any:
        objects = self._objects
        if objects is not None:
            value = objects.changed(raw)
            if value is None:
                value = objects.get(raw)
            if value is not None:
                return value
        elif self._object_entries is not None:
            entry = self._object_entries.entry(raw)
            if entry is not None:
                return entry.held if type(entry) is ObjectEntry else self._decoded_entry(entry)
        elif self._seen is not None and (value := self._seen.peek(raw)) is not None:
            return value
        data = self._top.get(raw)
        if data is None:
            return None
        value = self._codec.value_of(data)
        if objects is not None:
            objects.keep(raw, value, len(data))
        return value

    def _decoded_entry(self, entry: CacheEntry) -> Any:
        value, data = entry.decoded, entry.value
        if value is None and data is not None:
            value = self._codec.value_of(data)
            if self._codec.gives_immutables:
                entry.decoded = value
        return value

    def _hold(self, raw: bytes, value: Any) -> bool:
        """Keep the value as an object, if it is one of those; else it must be written as bytes."""
        return type(value) is ValueAndTimestamp and self._hold_row(raw, value.value, value.timestamp)

    def _hold_row(self, raw: bytes, value: Any, timestamp: int) -> bool:
        """`_hold`, for who has the parts of the row."""
        hold = self._hold_object
        if hold is None or value is None or (size := self._codec.exact_size(value)) is None:
            return False
        hold(raw, ValueAndTimestamp(value, timestamp), size)
        return True

    def _forget(self, raw: bytes) -> None:
        if self._objects is not None:
            self._objects.forget(raw)

    def settle(self) -> None:
        if self._seen is not None:
            self._seen.settle()
        if self._objects is not None:
            value_bytes = self._codec.value_bytes
            for raw, value in self._objects.take_pending().items():
                self._settle(raw, value_bytes(value))

    def _settle(self, raw: bytes, data: bytes | None) -> None:
        self._top.put(raw, data)

    def restore(self, records: Iterable[RawRecord]) -> None:
        if self._objects is not None:
            self._objects.clear()  # a task that ran before may be brought up to date like any other
        super().restore(records)

    @property
    def unsettled_bytes(self) -> int:
        return 0 if self._objects is None else self._objects.pending_bytes

    def discard(self) -> None:
        if self._objects is not None:
            self._objects.clear()
        super().discard()

    def close(self) -> None:
        if self._objects is not None:
            self._objects.close()
            self._objects = None
        self._object_entries = self._hold_object = self._read_memory = None
        super().close()
