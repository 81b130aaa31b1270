"""Key-value rows in the engine: the raw key is the row key. Plain, and as an LRU map."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator

from streamfleet.state.dirty_buffer import DirtyBuffer, Row
from streamfleet.state.engine_rows import StoreFacts
from streamfleet.state.rows_api import KeyValueRows

_RECOUNT_AFTER_UPDATES = 10_000


class MemoryKeyValueRows(KeyValueRows):
    """Rows in the memory engine: counted exactly, when somebody asks."""

    def __init__(self, buffer: DirtyBuffer) -> None:
        self.buffer = buffer

    def get(self, raw: bytes) -> bytes | None:
        return self.buffer.get(raw)

    def put(self, raw: bytes, value: bytes | None) -> None:
        if value is None:
            self.buffer.delete(raw)
        else:
            self.buffer.put(raw, value)

    def remove(self, raw: bytes) -> None:
        self.buffer.delete(raw)

    def restore(self, raw: bytes, value: bytes | None) -> None:
        self.put(raw, value)

    def reload(self) -> None: ...

    def raw_key(self, stored: bytes) -> bytes | None:
        return stored

    def scan(self, start: bytes, end: bytes | None, *, reverse: bool) -> Iterator[Row]:
        return self.buffer.scan(start, end, reverse=reverse)

    def count(self) -> int:
        return sum(1 for _ in self.buffer.scan(b"", None))


class RocksDBKeyValueRows(MemoryKeyValueRows):
    """Rows on RocksDB. Counting them would read them all, so their number is estimated as RocksDB does it: puts less deletes.
    That counts a key again with every update; after many updates the next question is answered by counting after all.
    """

    def __init__(self, buffer: DirtyBuffer, facts: StoreFacts) -> None:
        super().__init__(buffer)
        self._facts = facts

    def put(self, raw: bytes, value: bytes | None) -> None:
        facts = self._facts
        facts.updates += 1
        if value is None:
            facts.entries -= 1
            self.buffer.delete(raw)
        else:
            facts.entries += 1
            self.buffer.put(raw, value)

    def remove(self, raw: bytes) -> None:
        self.put(raw, None)

    def count(self) -> int:
        facts = self._facts
        if facts.updates > _RECOUNT_AFTER_UPDATES:
            facts.entries = super().count()
            facts.updates = 0
        return max(0, facts.entries)


class LruRows(KeyValueRows):
    """At most `max_entries` rows: a put too many removes the one that was not used for longest. How long ago that was is not
    kept: after a restart, a restore or an abort the order of use begins as that of the keys.
    """

    def __init__(self, buffer: DirtyBuffer, max_entries: int) -> None:
        self.buffer = buffer
        self._max_entries = max_entries
        self._used: OrderedDict[bytes, None] = OrderedDict()
        self.on_evict: Callable[[bytes], None] | None = None
        self.reload()

    def get(self, raw: bytes) -> bytes | None:
        if raw not in self._used:
            return None
        self._used.move_to_end(raw)
        return self.buffer.get(raw)

    def peek(self, raw: bytes) -> bytes | None:
        return self.buffer.get(raw)

    def put(self, raw: bytes, value: bytes | None) -> None:
        evicted = self._put(raw, value)
        if evicted is not None and self.on_evict is not None:
            self.on_evict(evicted)

    def remove(self, raw: bytes) -> None:
        self._put(raw, None)

    def restore(self, raw: bytes, value: bytes | None) -> None:
        self._put(raw, value)

    def reload(self) -> None:
        self._used = OrderedDict((key, None) for key, _ in self.buffer.scan(b"", None))

    def raw_key(self, stored: bytes) -> bytes | None:
        return stored

    def scan(self, start: bytes, end: bytes | None, *, reverse: bool) -> Iterator[Row]:
        return self.buffer.scan(start, end, reverse=reverse)

    def count(self) -> int:
        return len(self._used)

    def _put(self, raw: bytes, value: bytes | None) -> bytes | None:
        """The key that had to go."""
        if value is None:
            self._used.pop(raw, None)
            self.buffer.delete(raw)
            return None
        self.buffer.put(raw, value)
        self._used[raw] = None
        self._used.move_to_end(raw)
        if len(self._used) <= self._max_entries:
            return None
        evicted, _ = self._used.popitem(last=False)
        self.buffer.delete(evicted)
        return evicted
