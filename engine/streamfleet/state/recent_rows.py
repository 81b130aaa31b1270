"""RecentRows: the latest rows of a windowed store, in memory and by key, for operators that look back with every record.

A session looks for its neighbours, a record of a join for its partners: both among rows that are seconds old, most of which are not
even committed. Where all of them are known to be here, no iterator of the engine has to be made for the question. They are all
here from `_complete_from` on: what was put since then was seen, and nothing before then is so late.

Used by the key-first rows of windows and sessions, below cache and log. Memory is bounded twice: by time, because an operator says
how far it looks back, and by ObjectMemory. Who holds a quarter of that has more than it was meant for, and forgets everything; what
it needs is known again after the next look-back.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamfleet.state.dirty_buffer import Row
from streamfleet.state.object_cache import ENTRY_OVERHEAD_BYTES, ObjectMemory
from streamfleet.state.raw_keys import pack_time

SLACK_MS = 1000
"""Records that are late by that much are still looked up in memory."""
_UNKNOWN = 1 << 63
_AFTER_TIME = b"\xff" * 8


class RecentRows:
    """`suffix` is the length of what follows the key in a raw key; it begins with the row's time."""

    def __init__(self, suffix: int, memory: ObjectMemory) -> None:
        self._suffix = suffix
        self._keep_ms = 0
        self._memory = memory
        self._rows: dict[bytes, dict[bytes, bytes]] = {}
        self._complete_from = _UNKNOWN
        self._prune_at = 0
        self._latest = 0
        self._size_bytes = 0
        memory.join(self)

    def look_back(self, look_back_ms: int) -> None:
        """Somebody looks back so far. Of several who do, the one who looks furthest counts."""
        self._keep_ms = max(self._keep_ms, 2 * look_back_ms + SLACK_MS)

    @property
    def knows_nothing(self) -> bool:
        return self._complete_from == _UNKNOWN

    def begin(self, observed_ms: int) -> None:
        """Nothing that was written so far is later than that."""
        self._complete_from = observed_ms + 1
        self._latest = observed_ms
        self._prune_at = observed_ms + self._keep_ms

    def forget(self) -> None:
        """Rows were written, or undone, that were not seen here."""
        self._rows.clear()
        self._size_bytes = 0
        self._complete_from = _UNKNOWN

    def put(self, raw: bytes, value: bytes | None, time: int) -> None:
        if time < self._complete_from:
            return
        key, suffix = raw[: -self._suffix], raw[-self._suffix :]
        rows = self._rows.get(key)
        if value is None:
            if rows is not None and (old := rows.pop(suffix, None)) is not None:
                self._size_bytes -= len(raw) + len(old) + ENTRY_OVERHEAD_BYTES
                if not rows:
                    del self._rows[key]
            return
        if rows is None:
            rows = self._rows[key] = {}
        old = rows.get(suffix)
        rows[suffix] = value
        if time > self._latest:  # noqa: PLR1730  (once per record: a call costs more)
            self._latest = time
        if old is not None:
            self._size_bytes += len(value) - len(old)
            return
        size_bytes = len(raw) + len(value) + ENTRY_OVERHEAD_BYTES
        self._size_bytes += size_bytes
        self._memory.take(size_bytes)  # may let go of rows, of this one too
        if time >= self._prune_at:
            self._prune()

    def between(self, key: bytes, time_from: int, time_to: int, *, reverse: bool) -> Iterator[Row] | None:
        """All rows of the key with these times, in their order; None if some of them may not be here."""
        if time_from < self._complete_from:
            return None
        rows = self._rows.get(key)
        if rows is None:
            return iter(())
        low, high = pack_time(time_from), pack_time(time_to) + _AFTER_TIME
        return iter([(key + suffix, rows[suffix]) for suffix in sorted(rows, reverse=reverse) if low <= suffix <= high])

    def age(self) -> None:
        """Called when the memory of the thread has been used up once more."""
        if not self.knows_nothing:
            self._prune()
            if self._size_bytes > self._memory.max_bytes // 4:
                self.forget()

    def close(self) -> None:
        self._memory.leave(self)
        self._rows.clear()

    def _prune(self) -> None:
        """Let go of rows that are older than anybody looks back to. Each is looked at about twice in its life."""
        self._complete_from = max(self._complete_from, self._latest - self._keep_ms)
        self._prune_at = self._latest + self._keep_ms
        oldest = pack_time(self._complete_from)
        for key, rows in list(self._rows.items()):
            for suffix in [suffix for suffix in rows if suffix < oldest]:
                self._size_bytes -= len(key) + len(suffix) + len(rows.pop(suffix)) + ENTRY_OVERHEAD_BYTES
            if not rows:
                del self._rows[key]
