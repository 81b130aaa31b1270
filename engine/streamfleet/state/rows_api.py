"""The layers below a typed store, all speaking raw keys and bytes: rows (the layout in the engine), logged, cached.

Rows are at the bottom: they know where a raw key lies in the engine, and what is too old. LoggedRows and CachedRows wrap them and
look the same from above, so a typed store does not know what is below it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Protocol

from streamfleet.state.dirty_buffer import DirtyBuffer, Row


class Rows(Protocol):
    """What all layers of all kinds have."""

    def get(self, raw: bytes) -> bytes | None: ...

    def put(self, raw: bytes, value: bytes | None) -> None:
        """Set, or with None delete."""

    def remove(self, raw: bytes) -> None:
        """Delete, without the checks of a put (age)."""


class KeyValueScans(Protocol):
    """How key-value rows are scanned."""

    def scan(self, start: bytes, end: bytes | None, *, reverse: bool) -> Iterator[Row]:
        """Rows with start <= key < end, None: to the last key."""


class WindowScans(Protocol):
    """How window rows are scanned. Times are inclusive and not negative; equal keys mean exactly that key."""

    def fetch(self, key: bytes, time_from: int, time_to: int, *, reverse: bool) -> Iterator[Row]: ...

    def fetch_range(
        self, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int, *, reverse: bool
    ) -> Iterator[Row]: ...

    def all(self, *, reverse: bool) -> Iterator[Row]: ...


class SessionScans(Protocol):
    """How session rows are scanned."""

    def find(self, key: bytes, earliest_end: int, latest_start: int, *, reverse: bool) -> Iterator[Row]: ...

    def find_range(
        self, key_from: bytes | None, key_to: bytes | None, earliest_end: int, latest_start: int, *, reverse: bool
    ) -> Iterator[Row]: ...

    def find_ended(self, earliest_end: int, latest_end: int) -> Iterator[Row]: ...


class BottomRows(ABC):
    """Rows of one store in the engine."""

    buffer: DirtyBuffer
    """Where they are."""

    @abstractmethod
    def get(self, raw: bytes) -> bytes | None: ...

    def peek(self, raw: bytes) -> bytes | None:
        """As `get`, without counting as use where that matters."""
        return self.get(raw)

    @abstractmethod
    def put(self, raw: bytes, value: bytes | None) -> None: ...

    @abstractmethod
    def remove(self, raw: bytes) -> None: ...

    @abstractmethod
    def restore(self, raw: bytes, value: bytes | None) -> None:
        """As put, but for a changelog record: what is too old is left out without being counted."""

    @abstractmethod
    def reload(self) -> None:
        """Read again from the engine what is kept in memory: the buffer was discarded."""

    @abstractmethod
    def raw_key(self, stored: bytes) -> bytes | None:
        """The raw key of a row that a scan of the whole buffer finds; None for what is no row to be read: an index, or too old."""

    @property
    def oldest_readable_ms(self) -> int | None:
        """Rows with an earlier time are hidden; None where rows have no time."""
        return None


class KeyValueRows(BottomRows):
    """Key-value rows."""

    @abstractmethod
    def scan(self, start: bytes, end: bytes | None, *, reverse: bool) -> Iterator[Row]: ...

    @abstractmethod
    def count(self) -> int:
        """About how many rows there are."""


class WindowRows(BottomRows):
    """Window rows."""

    @abstractmethod
    def fetch(self, key: bytes, time_from: int, time_to: int, *, reverse: bool) -> Iterator[Row]: ...

    @abstractmethod
    def fetch_range(
        self, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int, *, reverse: bool
    ) -> Iterator[Row]: ...

    @abstractmethod
    def all(self, *, reverse: bool) -> Iterator[Row]: ...


class SessionRows(BottomRows):
    """Session rows."""

    @abstractmethod
    def find(self, key: bytes, earliest_end: int, latest_start: int, *, reverse: bool) -> Iterator[Row]: ...

    @abstractmethod
    def find_range(
        self, key_from: bytes | None, key_to: bytes | None, earliest_end: int, latest_start: int, *, reverse: bool
    ) -> Iterator[Row]: ...

    @abstractmethod
    def find_ended(self, earliest_end: int, latest_end: int) -> Iterator[Row]: ...
