"""DirtyBuffer: what a store has written since the last commit, in front of the engine's rows.

Every store has one. Reads and scans see both; the engine sees the changes only when the task commits (`write_batches`), so an
aborted transaction is undone by `discard`. Keys here are local to the store: the buffer adds the store's prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sortedcontainers import SortedList

from streamfleet.errors import ScanTooLargeError
from streamfleet.ports import StoreEngine

Row = tuple[bytes, bytes]

ROW_OVERHEAD_BYTES = 64
"""A guess at what Python adds to a row, so that many small rows count for what they cost."""

MAX_BATCH_BYTES = 4 * 2**20
"""A larger write batch would keep other threads waiting for too long."""


class ScanBudget:
    """How many rows may still be looked at, over all scans for one question."""

    def __init__(self, rows: int) -> None:
        self._rows = self._left = rows

    def counted(self, rows: Iterator[Row], dirty: int) -> Iterator[Row]:
        """`dirty` rows were looked at already."""
        self._left -= dirty
        for row in rows:
            self._left -= 1
            if self._left < 0:
                break
            yield row
        if self._left < 0:
            raise ScanTooLargeError(
                f"the answer is not among the {self._rows} rows that may be looked at for it",
                hint="ask for a smaller range of keys or times",
            )


class DirtyBuffer:
    """An ordered overlay. The order of keys is built with the first scan: stores that are never scanned do not pay for it."""

    __slots__ = ("_end", "_engine", "_engine_get", "_prefix", "_ranges", "_rows", "_sorted", "budget", "size_bytes")

    def __init__(self, engine: StoreEngine, prefix: bytes) -> None:
        self._engine = engine
        self._engine_get = engine.get
        self._prefix = prefix
        self._end = successor(prefix)
        self._rows: dict[bytes, bytes | None] = {}
        self._sorted: SortedList[bytes] | None = None
        self._ranges: list[tuple[bytes, bytes]] = []
        self.size_bytes = 0
        self.budget: ScanBudget | None = None
        """Limits scans while it is set; see OwnStore.scanning_at_most."""

    def get(self, key: bytes) -> bytes | None:
        try:
            return self._rows[key]
        except KeyError:
            if self._ranges and self._is_in_deleted_range(key):
                return None
            return self._engine_get(self._prefix + key)

    def put(self, key: bytes, value: bytes) -> None:
        self._forget(key)
        self._rows[key] = value
        self.size_bytes += len(value)

    def delete(self, key: bytes) -> None:
        self._forget(key)
        self._rows[key] = None

    def delete_range(self, start: bytes, end: bytes) -> None:
        """Delete all keys with start <= key < end."""
        if start >= end:
            return
        for key, value in self._dirty(start, end, reverse=False):
            del self._rows[key]
            self._keys().remove(key)
            self.size_bytes -= len(key) + len(value or b"") + ROW_OVERHEAD_BYTES
        self._ranges = [held for held in self._ranges if not (start <= held[0] and held[1] <= end)]
        self._ranges.append((start, end))

    def scan(self, start: bytes, end: bytes | None, *, reverse: bool = False) -> Iterator[Row]:
        """Rows with start <= key < end (None: to the store's last). The scan does not see later changes of the buffer, so it
        is safe to write while it is open.
        """
        if end is not None and start >= end:
            return iter(())
        dirty = self._dirty(start, end, reverse=reverse)
        prefix = self._prefix
        clean = self._engine.scan(prefix + start, self._end if end is None else prefix + end, reverse=reverse)
        if self.budget is not None:
            clean = self.budget.counted(clean, len(dirty))
        if dirty or self._ranges:
            return _merged(dirty, clean, len(prefix), tuple(self._ranges), reverse)
        return _without_prefix(clean, len(prefix))

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Changed keys with their new value, None for deleted ones, in the order of the last change. Without ranges."""
        return iter(self._rows.items())

    def write_batch(self) -> tuple[list[Row], list[bytes], list[tuple[bytes, bytes]]]:
        """Puts, deletes and range deletes, with the store's prefix, as a StoreEngine wants them."""
        prefix = self._prefix
        puts = [(prefix + key, value) for key, value in self._rows.items() if value is not None]
        deletes = [prefix + key for key, value in self._rows.items() if value is None]
        return puts, deletes, [(prefix + start, prefix + end) for start, end in self._ranges]

    def apply(self) -> None:
        """Write the changes of this buffer alone to the engine."""
        write_batches(self._engine, [self])

    def discard(self) -> None:
        """Forget the changes."""
        self._rows.clear()
        self._sorted = None
        self._ranges = []
        self.size_bytes = 0

    def _forget(self, key: bytes) -> None:
        """Make room for a new value at the end of the order of changes."""
        rows = self._rows
        if key in rows:
            old = rows.pop(key)
            if old is not None:
                self.size_bytes -= len(old)
            return
        self.size_bytes += len(key) + ROW_OVERHEAD_BYTES
        if self._sorted is not None:
            self._sorted.add(key)

    def _keys(self) -> SortedList[bytes]:
        if self._sorted is None:
            self._sorted = SortedList(self._rows)
        return self._sorted

    def _dirty(self, start: bytes, end: bytes | None, *, reverse: bool) -> list[tuple[bytes, bytes | None]]:
        rows = self._rows
        if not rows:
            return []
        return [(key, rows[key]) for key in self._keys().irange(start, end, (True, False), reverse)]

    def _is_in_deleted_range(self, key: bytes) -> bool:
        return any(start <= key < end for start, end in self._ranges)


def successor(prefix: bytes) -> bytes | None:
    """The first key after all that begin with `prefix`; None if there is none (the prefix is all 0xFF)."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes((stem[-1] + 1,)) if stem else None


def write_batches(engine: StoreEngine, buffers: Iterable[DirtyBuffer], last: Iterable[Row] = ()) -> None:
    """Write all changes of `buffers`, and the rows `last`, as one batch or, where they are many, as several of bounded size.
    The rows `last` are in the last batch: what they say (changelog offsets) must not be there before the rest. Then the
    buffers are empty.
    """
    buffers = list(buffers)
    puts: list[Row] = []
    deletes: list[bytes] = []
    ranges: list[tuple[bytes, bytes]] = []
    for buffer in buffers:
        more_puts, more_deletes, more_ranges = buffer.write_batch()
        puts += more_puts
        deletes += more_deletes
        ranges += more_ranges
    *chunks, rest = _chunks(puts)
    for chunk in chunks:
        engine.write(chunk, deletes, ranges)
        deletes, ranges = [], []
    rest += last
    if rest or deletes or ranges:
        engine.write(rest, deletes, ranges)
    for buffer in buffers:
        buffer.discard()


def _chunks(puts: list[Row]) -> list[list[Row]]:
    chunks: list[list[Row]] = [[]]
    size = 0
    for row in puts:
        row_size = len(row[0]) + len(row[1])
        if size + row_size > MAX_BATCH_BYTES and chunks[-1]:
            chunks.append([])
            size = 0
        chunks[-1].append(row)
        size += row_size
    return chunks


def _without_prefix(clean: Iterator[Row], prefix_length: int) -> Iterator[Row]:
    for key, value in clean:
        yield key[prefix_length:], value


def _merged(
    dirty: list[tuple[bytes, bytes | None]],
    clean: Iterator[Row],
    prefix_length: int,
    ranges: tuple[tuple[bytes, bytes], ...],
    reverse: bool,
) -> Iterator[Row]:
    at = 0
    for stored_key, stored_value in clean:
        key = stored_key[prefix_length:]
        while at < len(dirty) and (dirty[at][0] > key if reverse else dirty[at][0] < key):
            dirty_key, dirty_value = dirty[at]
            at += 1
            if dirty_value is not None:
                yield dirty_key, dirty_value
        if at < len(dirty) and dirty[at][0] == key:
            dirty_value = dirty[at][1]
            at += 1
            if dirty_value is not None:
                yield key, dirty_value
        elif not any(start <= key < end for start, end in ranges):
            yield key, stored_value
    for dirty_key, dirty_value in dirty[at:]:
        if dirty_value is not None:
            yield dirty_key, dirty_value
