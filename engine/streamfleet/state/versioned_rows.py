"""VersionedRows: the values of each key over time, as far back as the history reaches.

    0x00 | key                                        -> valid from (8) | value                       the latest
    0x01 | segment (8) | key | valid to (8)           -> valid from (8) | 0x01 value, or 0x00 deleted  those before it

Versions of a key follow each other without gaps: one is valid until the next begins. A former version lies in the segment of the
time until which it was valid, so that whole segments can be forgotten when no time in them is within the history any more. A key
that is deleted has no latest row; that its last version ended is known from the former ones, of which one may be empty and valid
for no time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamfleet.durations import LONG_MAX
from streamfleet.state.dirty_buffer import DirtyBuffer
from streamfleet.state.engine_rows import StoreFacts
from streamfleet.state.prefixed_buffer import PrefixedBuffer
from streamfleet.state.raw_keys import pack_time
from streamfleet.state.segments import Segments

_TIME_SIZE = 8
_AFTER_TIMES = b"\xff" * (_TIME_SIZE + 1)
_DELETED = b"\x00"
_VALUE = b"\x01"


class Version(NamedTuple):
    """`valid_to` None: it is the latest. `value` None: the key was deleted."""

    value: bytes | None
    valid_from: int
    valid_to: int | None


class VersionedRows:
    def __init__(self, buffer: DirtyBuffer, facts: StoreFacts, history_ms: int, interval_ms: int) -> None:
        self.buffer = buffer
        self._facts = facts
        self._history_ms = history_ms
        self._latest = PrefixedBuffer(buffer, b"\x00")
        self._former = PrefixedBuffer(buffer, b"\x01")
        self._segments = Segments(self._former, facts, history_ms, interval_ms, _nothing)

    def reload(self) -> None:
        self._segments.reload()

    def is_too_old(self, time: int) -> bool:
        return time < self._facts.observed_time - self._history_ms

    def latest(self, raw: bytes) -> Version | None:
        row = self._latest.get(raw)
        return None if row is None else Version(row[_TIME_SIZE:], _time(row), None)

    def as_of(self, raw: bytes, time: int) -> Version | None:
        """The version that was valid then; None if there was none, or if that is too long ago to be known."""
        latest = self.latest(raw)
        if latest is not None and latest.valid_from <= time:
            return latest
        if self.is_too_old(time):
            return None
        version = self._first_ending_after(raw, time)
        return version if version is not None and version.valid_from <= time and version.value is not None else None

    def versions(self, raw: bytes, *, reverse: bool) -> Iterator[Version]:
        """All that are known, deletes left out."""
        latest = self.latest(raw)
        if latest is not None and reverse:
            yield latest
        for version in self._ending_after(raw, 0, reverse=reverse):
            if version.value is not None:
                yield version
        if latest is not None and not reverse:
            yield latest

    def put(self, raw: bytes, value: bytes | None, time: int) -> int | None:
        """Until when the new version is valid; None: it is the latest. The caller has checked that it is not too old."""
        self._segments.observe(time)
        latest = self.latest(raw)
        if latest is not None and time >= latest.valid_from:
            if time > latest.valid_from:
                self._put_former(raw, Version(latest.value, latest.valid_from, time))
            self._put_latest(raw, value, time)
            return None
        next_version = self._first_ending_after(raw, time)
        if next_version is not None:
            return self._put_before(raw, value, time, next_version)
        if latest is not None:
            self._put_former(raw, Version(value, time, latest.valid_from))
            return latest.valid_from
        if value is not None:
            self._put_latest(raw, value, time)
        elif not self._ends_at(raw, time):
            self._put_former(raw, Version(None, time, time))
        return None

    def _put_before(self, raw: bytes, value: bytes | None, time: int, found: Version) -> int:
        """`found` is the first version that ends after `time`: it begins later, at that time, or before."""
        assert found.valid_to is not None
        if found.valid_from > time:
            self._put_former(raw, Version(value, time, found.valid_from))
            return found.valid_from
        if found.valid_from < time:
            self._put_former(raw, Version(found.value, found.valid_from, time))
        self._put_former(raw, Version(value, time, found.valid_to))
        return found.valid_to

    def _put_latest(self, raw: bytes, value: bytes | None, time: int) -> None:
        if value is None:
            self._latest.delete(raw)
        else:
            self._latest.put(raw, pack_time(time) + value)

    def _put_former(self, raw: bytes, version: Version) -> None:
        assert version.valid_to is not None
        prefix = self._segments.prefix_for_put(version.valid_to, counted=False)
        if prefix is not None:
            content = _DELETED if version.value is None else _VALUE + version.value
            self._former.put(prefix + raw + pack_time(version.valid_to), pack_time(version.valid_from) + content)

    def _ends_at(self, raw: bytes, time: int) -> bool:
        return self._former.get(self._segments.prefix_of(time) + raw + pack_time(time)) is not None

    def _first_ending_after(self, raw: bytes, time: int) -> Version | None:
        return next(self._ending_after(raw, time + 1, reverse=False), None)

    def _ending_after(self, raw: bytes, time: int, *, reverse: bool) -> Iterator[Version]:
        low, high = raw + pack_time(max(0, time)), raw + _AFTER_TIMES
        for key, content in self._segments.scan(low, high, max(0, time), LONG_MAX, reverse=reverse):
            if len(key) == len(raw) + _TIME_SIZE:  # else it belongs to another key that begins alike
                is_value = content[_TIME_SIZE : _TIME_SIZE + 1] == _VALUE
                yield Version(content[_TIME_SIZE + 1 :] if is_value else None, _time(content), _time(key[-_TIME_SIZE:]))


def _time(data: bytes) -> int:
    return int.from_bytes(data[:_TIME_SIZE], "big")


def _nothing() -> None:
    """Former versions that nobody can ask for any more are not worth a word."""
