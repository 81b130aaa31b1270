"""CachedRows: puts stay in the record cache until it is flushed; reads and scans see cache and rows together.

A cache keeps its entries in the order in which the rows below come out of a scan, because a scan merges the two. For windowed
stores that is by segment first; so the keys of the cache are made from raw keys by an `order` function, and turned back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from streamfleet.durations import LONG_MAX
from streamfleet.state.dirty_buffer import Row
from streamfleet.state.raw_keys import (
    SESSION_SUFFIX,
    WINDOW_SUFFIX,
    is_between,
    pack_time,
    session_bounds,
    window_start,
)
from streamfleet.state.record_cache import CacheEntry
from streamfleet.state.rows_api import KeyValueScans, Rows, SessionScans, WindowScans
from streamfleet.state.store_home import StoreHome

RawListener = Callable[[bytes, CacheEntry, bytes | None, int], None]
"""listener(raw key, new value, old value, timestamp)"""

Order = Callable[[bytes], bytes]
Entry = tuple[bytes, bytes | None]

_SEGMENT_SIZE = 8
_FEW_SEGMENTS = 4


class CachedRows:
    """What is common to all kinds: get, put and the flush. `below` is where flushed entries are written."""

    def __init__(self, below: Rows, home: StoreHome) -> None:
        self._below = below
        self._context = home.context
        self._cache = home.record_cache.store_cache(self._flushed)
        self._listener: RawListener | None = None
        self._send_old_values = False
        self._encode: Callable[[Any], bytes | None] | None = None
        self._encoded_overhead = 0

    def encode_objects_with(self, encode: Callable[[Any], bytes | None], overhead_bytes: int) -> None:
        """Objects may be put from now on. They become bytes when they leave the cache, so many more than is said at the put."""
        self._encode = encode
        self._encoded_overhead = overhead_bytes

    def set_listener(self, listener: RawListener, *, send_old_values: bool) -> None:
        self._listener = listener
        self._send_old_values = send_old_values

    def get(self, raw: bytes) -> bytes | None:
        entry = self._cache.get(self._order(raw))
        return self._below.get(raw) if entry is None else entry.value

    def entry(self, raw: bytes) -> CacheEntry | None:
        """What is held of a key."""
        return self._cache.get(self._order(raw))

    def put_object(self, raw: bytes, value: Any, size_bytes: int) -> None:
        """`put` of an object; see `encode_objects_with`."""
        assert self._encode is not None
        size_bytes += self._encoded_overhead
        self._cache.put_object(self._order(raw), value, size_bytes, self._context.record_context, self._encode)

    def peek(self, raw: bytes) -> CacheEntry | None:
        """What is held back of a key, without counting as use."""
        return self._cache.peek(self._order(raw))

    def put(self, raw: bytes, value: bytes | None) -> None:
        self._cache.put(self._order(raw), value, self._context.record_context)

    def remove(self, raw: bytes) -> None:
        self.put(raw, None)

    def flush(self) -> None:
        self._cache.flush()

    def clear(self) -> None:
        self._cache.clear()

    def _order(self, raw: bytes) -> bytes:
        return raw

    def _raw(self, ordered: bytes) -> bytes:
        return ordered

    def _flushed(self, updates: list[tuple[bytes, CacheEntry]]) -> None:
        context = self._context
        for ordered, entry in updates:
            raw = self._raw(ordered)
            listener = self._listener
            old = None
            if listener is not None and (entry.is_deletion or self._send_old_values):
                old = self._below.get(raw)
                if entry.is_deletion and old is None:
                    continue  # put and deleted again between two flushes: nobody has seen it, nobody needs to
            before = context.record_context
            context.record_context = entry.context
            try:
                self._below.put(raw, entry.value)
                if listener is not None:
                    timestamp = -1 if entry.context is None else entry.context.timestamp
                    listener(raw, entry, old if self._send_old_values else None, timestamp)
            finally:
                context.record_context = before


class CachedKeyValueRows(CachedRows):
    """Key-value rows. What is read from below stays in the cache as well."""

    def __init__(self, below: Rows, scans: KeyValueScans, home: StoreHome) -> None:
        super().__init__(below, home)
        self._scans = scans
        self.entry = self._cache.get  # type: ignore[method-assign, assignment]  # raw keys are in order; a call less per record

    def get(self, raw: bytes) -> bytes | None:
        entry = self._cache.get(raw)
        if entry is not None:
            return entry.value
        value = self._below.get(raw)
        if value is not None:
            self._cache.put_clean(raw, value)
        return value

    def scan(self, start: bytes, end: bytes | None, *, reverse: bool) -> Iterator[Row]:
        cached = self._cache.scan(start, end, reverse=reverse)
        return merged(cached, self._scans.scan(start, end, reverse=reverse), _same, reverse=reverse)


class _SegmentedCache(CachedRows):
    """Entries ordered by segment, then raw key. `suffix` is the length of a raw key's suffix, which begins with its time."""

    def __init__(self, below: Rows, home: StoreHome, interval_ms: int, suffix: int) -> None:
        super().__init__(below, home)
        self._interval_ms = interval_ms
        self._suffix = suffix
        self._latest = -1
        self._ordered_last = (b"", b"")

    def put(self, raw: bytes, value: bytes | None) -> None:
        self._latest = max(self._latest, self._time(raw))
        super().put(raw, value)

    def put_object(self, raw: bytes, value: Any, size_bytes: int) -> None:
        time = self._time(raw)
        if time > self._latest:  # noqa: PLR1730  (once per record: a call costs more)
            self._latest = time
        super().put_object(raw, value, size_bytes)

    def _time(self, raw: bytes) -> int:
        at = len(raw) - self._suffix
        return int.from_bytes(raw[at : at + 8], "big")

    def _order(self, raw: bytes) -> bytes:
        known, ordered = self._ordered_last
        if raw is not known:  # a put is mostly of the key that was read before
            ordered = pack_time(self._time(raw) // self._interval_ms) + raw
            self._ordered_last = raw, ordered
        return ordered

    def _raw(self, ordered: bytes) -> bytes:
        return ordered[_SEGMENT_SIZE:]

    def _entries(self, key: bytes | None, time_from: int, time_to: int, *, reverse: bool) -> Iterator[Entry]:
        """Entries of all segments that touch the times, in order: a superset of what is wanted. With a key, mostly its own."""
        first = time_from // self._interval_ms
        last = min(time_to, self._latest) // self._interval_ms
        if key is None or last - first > _FEW_SEGMENTS:
            ranges = [(pack_time(first), pack_time(last + 1))] if first <= last else []
        else:
            segments = range(first, last + 1)
            prefixes = [pack_time(segment) + key for segment in (reversed(segments) if reverse else segments)]
            ranges = [(prefix, prefix + b"\xff" * self._suffix) for prefix in prefixes]
        for low, high in ranges:
            for ordered, value in self._cache.scan(low, high, reverse=reverse):
                yield self._raw(ordered), value


class CachedWindowRows(_SegmentedCache):
    """Window rows, key first or (in memory) every millisecond its own segment."""

    def __init__(self, below: Rows, scans: WindowScans, home: StoreHome, interval_ms: int) -> None:
        super().__init__(below, home, interval_ms, WINDOW_SUFFIX)
        self._scans = scans

    def fetch(self, key: bytes, time_from: int, time_to: int, *, reverse: bool) -> Iterator[Row]:
        stored = self._scans.fetch(key, time_from, time_to, reverse=reverse)
        return self._merge(self._window_entries(key, key, time_from, time_to, reverse=reverse), stored, reverse=reverse)

    def fetch_range(
        self, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int, *, reverse: bool
    ) -> Iterator[Row]:
        stored = self._scans.fetch_range(key_from, key_to, time_from, time_to, reverse=reverse)
        entries = self._window_entries(key_from, key_to, time_from, time_to, reverse=reverse)
        return self._merge(entries, stored, reverse=reverse)

    def all(self, *, reverse: bool) -> Iterator[Row]:
        """Also what the rows below have expired since: the cache does not expire."""
        entries = list(self._entries(None, 0, LONG_MAX, reverse=reverse))
        return self._merge(entries, self._scans.all(reverse=reverse), reverse=reverse)

    def _window_entries(
        self, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int, *, reverse: bool
    ) -> list[Entry]:
        key = key_from if key_from == key_to else None
        return [
            entry
            for entry in self._entries(key, time_from, time_to, reverse=reverse)
            if time_from <= window_start(entry[0]) <= time_to
            and is_between(entry[0][:-WINDOW_SUFFIX], key_from, key_to)
        ]

    def _merge(self, entries: list[Entry], stored: Iterator[Row], *, reverse: bool) -> Iterator[Row]:
        return merged(entries, stored, self._order, reverse=reverse)


class CachedTimeFirstWindowRows(CachedWindowRows):
    """Window rows in the order of time. Scans of a key, or of a range of keys, come out by key all the same, as from below."""

    def fetch_range(
        self, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int, *, reverse: bool
    ) -> Iterator[Row]:
        if key_from is None and key_to is None:
            return super().fetch_range(None, None, time_from, time_to, reverse=reverse)
        entries = self._window_entries(key_from, key_to, time_from, time_to, reverse=reverse)
        by_key = super(CachedWindowRows, self)._order
        entries.sort(key=lambda entry: by_key(entry[0]), reverse=reverse)
        stored = self._scans.fetch_range(key_from, key_to, time_from, time_to, reverse=reverse)
        return merged(entries, stored, by_key, reverse=reverse)

    def _order(self, raw: bytes) -> bytes:
        at = len(raw) - WINDOW_SUFFIX
        return raw[at : at + 8] + raw[:at] + raw[at + 8 :]

    def _raw(self, ordered: bytes) -> bytes:
        return ordered[8:-4] + ordered[:8] + ordered[-4:]

    def _entries(self, key: bytes | None, time_from: int, time_to: int, *, reverse: bool) -> Iterator[Entry]:
        last = min(time_to, self._latest)
        for ordered, value in self._cache.scan(pack_time(time_from), pack_time(max(last, -1) + 1), reverse=reverse):
            yield self._raw(ordered), value


class CachedSessionRows(_SegmentedCache):
    """Session rows."""

    def __init__(self, below: Rows, scans: SessionScans, home: StoreHome, interval_ms: int) -> None:
        super().__init__(below, home, interval_ms, SESSION_SUFFIX)
        self._scans = scans

    def find(self, key: bytes, earliest_end: int, latest_start: int, *, reverse: bool) -> Iterator[Row]:
        stored = self._scans.find(key, earliest_end, latest_start, reverse=reverse)
        entries = self._session_entries(key, key, earliest_end, latest_start, reverse=reverse)
        return merged(entries, stored, self._order, reverse=reverse)

    def find_range(
        self, key_from: bytes | None, key_to: bytes | None, earliest_end: int, latest_start: int, *, reverse: bool
    ) -> Iterator[Row]:
        stored = self._scans.find_range(key_from, key_to, earliest_end, latest_start, reverse=reverse)
        entries = self._session_entries(key_from, key_to, earliest_end, latest_start, reverse=reverse)
        return merged(entries, stored, self._order, reverse=reverse)

    def find_ended(self, earliest_end: int, latest_end: int) -> Iterator[Row]:
        found: dict[bytes, bytes | None] = dict(self._scans.find_ended(earliest_end, latest_end))
        entries = self._entries(None, earliest_end, latest_end, reverse=False)
        found |= {raw: value for raw, value in entries if earliest_end <= session_bounds(raw)[0] <= latest_end}
        for raw in sorted(found, key=_by_session_time):
            value = found[raw]
            if value is not None:
                yield raw, value

    def _session_entries(
        self, key_from: bytes | None, key_to: bytes | None, earliest_end: int, latest_start: int, *, reverse: bool
    ) -> list[Entry]:
        key = key_from if key_from == key_to else None
        chosen = []
        for entry in self._entries(key, earliest_end, LONG_MAX, reverse=reverse):
            end, start = session_bounds(entry[0])
            if (
                end >= earliest_end
                and start <= latest_start
                and is_between(entry[0][:-SESSION_SUFFIX], key_from, key_to)
            ):
                chosen.append(entry)
        return chosen


def merged(entries: list[Entry], stored: Iterator[Row], order: Order, *, reverse: bool) -> Iterator[Row]:
    """Both in one order, an entry of the cache taking the place of the row with its key.

    Where the rows below come in another order than `order` (sessions in memory that end together), a row may pass its entry and
    come out as well; Kafka Streams' merge does the same.
    """
    row = next(stored, None)
    for raw, value in entries:
        ordered = order(raw)
        while row is not None:
            row_ordered = order(row[0])
            if row_ordered == ordered:
                row = next(stored, None)
                break
            if (row_ordered > ordered) is not reverse:
                break
            yield row
            row = next(stored, None)
        if value is not None:
            yield raw, value
    while row is not None:
        yield row
        row = next(stored, None)


def _same(raw: bytes) -> bytes:
    return raw


def _by_session_time(raw: bytes) -> bytes:
    return raw[-SESSION_SUFFIX:] + raw[:-SESSION_SUFFIX]
