"""RecordCache: results held back in memory, shared by the cached stores of a task, bounded in bytes.

Each store has a StoreCache in it. A put stays there, dirty, until the store is flushed (at commit) or until the cache is full;
then the dirty entries are handed to the store's `flushed` function, which writes and forwards them. Flushed entries stay, clean,
for reads. Keys here are the stores' order keys: cached_rows.py makes them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from sortedcontainers import SortedList

from streamfleet.records import Headers, RecordContext

_ENTRY_BYTES = 24 + 1 + 8 + 8 + 4
"""Links, dirty mark, timestamp, offset and partition, as Kafka Streams counts them."""


class CacheEntry:
    """A value (None: deleted) with the record context of its last update."""

    __slots__ = ("context", "decoded", "size_bytes", "updated", "value")

    updated: int | None
    """The number of its last update, as long as it is dirty."""
    decoded: Any
    """What the bytes are as a value, once somebody has asked; for the store to keep, if nobody can change it."""

    def __init__(self, key: bytes, value: bytes | None, context: RecordContext | None) -> None:
        self.updated = self.decoded = None
        self.value = value
        self.context = context
        self.size_bytes = _entry_bytes(key, 0 if value is None else len(value), context)

    @property
    def is_deletion(self) -> bool:
        return self.value is None


class ObjectEntry(CacheEntry):
    """A value that is held as an object, and becomes bytes where bytes are asked for. `value_bytes` is how many those will be: the
    cache has its limit in bytes, and must evict what it would evict if it held them.
    """

    __slots__ = ("_encode", "held")

    def __init__(
        self,
        key: bytes,
        held: Any,
        value_bytes: int,
        context: RecordContext | None,
        encode: Callable[[Any], bytes | None],
    ) -> None:
        self.updated = None
        self.held = held
        self._encode = encode
        self.context = context
        self.size_bytes = _entry_bytes(key, value_bytes, context)

    @property
    def value(self) -> bytes | None:  # type: ignore[override]
        return self._encode(self.held)

    @property
    def is_deletion(self) -> bool:
        return False


Flushed = Callable[[list[tuple[bytes, CacheEntry]]], None]


class RecordCache:
    """The limit, and how much of it is used. A size of 0 flushes every put at once."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.size_bytes = 0

    def store_cache(self, flushed: Flushed) -> StoreCache:
        return StoreCache(self, flushed)

    def make_room(self, cache: StoreCache) -> None:
        """Evict from the cache that grew. It may be empty already: flushing it can fill the cache of another store."""
        while self.size_bytes > self.max_bytes and cache.evict():
            pass


class StoreCache:
    """One store's entries: last used, last updated, and, from the first scan on, in the order of their keys."""

    def __init__(self, cache: RecordCache, flushed: Flushed) -> None:
        self._cache = cache
        self._flushed = flushed
        self._entries: OrderedDict[bytes, CacheEntry] = OrderedDict()
        self._dirty: dict[bytes, None] = {}
        self._updates = 0
        self._sorted: SortedList[bytes] | None = None
        self._forget_used()

    def _forget_used(self) -> None:
        self._used_key: bytes | None = None
        """The last key that was used: mostly, a put is of the key that was read before."""
        self._used_entry: CacheEntry | None = None

    def get(self, key: bytes) -> CacheEntry | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
            self._used_key, self._used_entry = key, entry
        return entry

    def peek(self, key: bytes) -> CacheEntry | None:
        """As `get`, without counting as use."""
        return self._entries.get(key)

    def put(self, key: bytes, value: bytes | None, context: RecordContext | None) -> None:
        self.put_entry(key, CacheEntry(key, value, context))

    def put_entry(self, key: bytes, entry: CacheEntry) -> None:
        """An update: it will be flushed after all that were made before it."""
        self._set(key, entry)
        self._updates = entry.updated = self._updates + 1
        self._dirty[key] = None
        self._cache.make_room(self)

    def put_object(
        self,
        key: bytes,
        held: Any,
        value_bytes: int,
        context: RecordContext | None,
        encode: Callable[[Any], bytes | None],
    ) -> None:
        """`put_entry` of an ObjectEntry. One that is dirty already is changed where it stands: before the flush nobody
        else has it, and the flush begins by making it clean.
        """
        entry = self._used_entry if key is self._used_key else self.get(key)
        if type(entry) is not ObjectEntry or entry.updated is None:
            self.put_entry(key, ObjectEntry(key, held, value_bytes, context, encode))
            return
        entry.held, entry.context = held, context
        self._updates = entry.updated = self._updates + 1
        before, entry.size_bytes = entry.size_bytes, _entry_bytes(key, value_bytes, context)
        if entry.size_bytes != before:
            self._cache.size_bytes += entry.size_bytes - before
            self._cache.make_room(self)

    def put_clean(self, key: bytes, value: bytes) -> None:
        """What was read from the store, for the next read."""
        self._set(key, CacheEntry(key, value, None))
        self._cache.make_room(self)

    def scan(self, start: bytes, end: bytes | None, *, reverse: bool = False) -> list[tuple[bytes, bytes | None]]:
        """Entries with start <= key < end, deleted ones included, as they are now."""
        if not self._entries:
            return []
        if self._sorted is None:
            self._sorted = SortedList(self._entries)
        entries = self._entries
        return [(key, entries[key].value) for key in self._sorted.irange(start, end, (True, False), reverse)]

    def flush(self) -> None:
        self._flush(None)

    def evict(self) -> bool:
        """Remove what was not used for longest. If it is dirty all that is dirty is flushed, it first."""
        if not self._entries:
            return False
        key, entry = self._entries.popitem(last=False)
        self._forget_used()
        self._cache.size_bytes -= entry.size_bytes
        if self._sorted is not None:
            self._sorted.remove(key)
        if key in self._dirty:
            del self._dirty[key]
            self._flush((key, entry))
        return True

    def clear(self) -> None:
        """Forget everything, dirty or not."""
        self._cache.size_bytes -= sum(entry.size_bytes for entry in self._entries.values())
        self._entries.clear()
        self._forget_used()
        self._dirty.clear()
        self._sorted = None

    def _set(self, key: bytes, entry: CacheEntry) -> None:
        entries = self._entries
        old = entries.get(key)
        entries[key] = entry
        self._used_key, self._used_entry = key, entry
        if old is not None:
            entries.move_to_end(key)
            self._cache.size_bytes += entry.size_bytes - old.size_bytes
            return
        self._cache.size_bytes += entry.size_bytes
        if self._sorted is not None:
            self._sorted.add(key)

    def _flush(self, evicted: tuple[bytes, CacheEntry] | None) -> None:
        updates = [(key, self._entries[key]) for key in self._dirty]
        updates.sort(key=_update_of)
        deleted = [key for key, entry in updates if entry.is_deletion]
        if evicted is not None:
            updates.insert(0, evicted)
        # Clean before the hand-over: what is forwarded may come back to this store and make entries dirty again.
        self._dirty.clear()
        for _, entry in updates:
            entry.updated = None
        if updates:
            self._flushed(updates)
        for _, entry in updates:
            entry.context = (
                None  # it was for the flush; the input record's bytes in it must not stay as long as the result
            )
        self._remove_clean(deleted)

    def _remove_clean(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            entry = self._entries.get(key)
            if entry is None or not entry.is_deletion or key in self._dirty:
                continue
            del self._entries[key]
            self._forget_used()
            self._cache.size_bytes -= entry.size_bytes
            if self._sorted is not None:
                self._sorted.remove(key)


def _update_of(item: tuple[bytes, CacheEntry]) -> int:
    assert item[1].updated is not None
    return item[1].updated


def _entry_bytes(key: bytes, value_bytes: int, context: RecordContext | None) -> int:
    size = _ENTRY_BYTES + len(key) + value_bytes
    if context is not None:
        size += len(context.topic)
        if context.headers:
            size += _headers_bytes(context.headers)
    return size


def _headers_bytes(headers: Headers) -> int:
    return sum(len(name) + (0 if value is None else len(value)) for name, value in headers)
