"""PrefixedBuffer: a part of a store's DirtyBuffer, for stores that keep rows of two kinds."""

from __future__ import annotations

from collections.abc import Iterator

from streamfleet.state.dirty_buffer import DirtyBuffer, Row, successor


class PrefixedBuffer:
    """Reads and writes as a DirtyBuffer does; all its keys begin with the prefix, which nobody above sees."""

    def __init__(self, buffer: DirtyBuffer, prefix: bytes) -> None:
        self._buffer = buffer
        self._prefix = prefix
        self._end = successor(prefix)

    def get(self, key: bytes) -> bytes | None:
        return self._buffer.get(self._prefix + key)

    def put(self, key: bytes, value: bytes) -> None:
        self._buffer.put(self._prefix + key, value)

    def delete(self, key: bytes) -> None:
        self._buffer.delete(self._prefix + key)

    def delete_range(self, start: bytes, end: bytes) -> None:
        self._buffer.delete_range(self._prefix + start, self._prefix + end)

    def scan(self, start: bytes, end: bytes | None, *, reverse: bool = False) -> Iterator[Row]:
        prefix = self._prefix
        last = self._end if end is None else prefix + end
        for key, value in self._buffer.scan(prefix + start, last, reverse=reverse):
            yield key[len(prefix) :], value
