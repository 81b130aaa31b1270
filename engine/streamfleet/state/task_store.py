"""TaskStore: a store that lives in the home of its task, so that all stores of a task commit and abort together.

Stores of our own are TaskStores; a store that a user brings is only a StateStore, and looks after itself. Those that can be read
from outside their task are QueryableStores as well.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from streamfleet.state.api import StateStore
from streamfleet.state.dirty_buffer import DirtyBuffer, ScanBudget
from streamfleet.state.store_home import RowsHome, StoreHome


class TaskStore(StateStore):
    @abstractmethod
    def open_in(self, home: StoreHome) -> None:
        """Open in a home that is shared with the other stores of the task."""

    def flush_cache(self) -> None:
        """Most have none."""

    def settle(self) -> None:
        """Write to the rows what is held above them and not held back: before a commit."""

    @property
    def unsettled_bytes(self) -> int:
        return 0

    @abstractmethod
    def discard(self) -> None:
        """The buffers were discarded: forget what was made of them."""


class QueryableStore(TaskStore):
    """Has views for queries: see CommittedStores, and query/ for who asks."""

    @property
    @abstractmethod
    def is_timestamped(self) -> bool:
        """Its values are ValueAndTimestamp."""

    @property
    @abstractmethod
    def remembers_commit(self) -> bool:
        """Its rows keep in memory what a commit changes: which segments there are, and what is expired."""

    @abstractmethod
    def current_view(self) -> QueryableStore:
        """Reads what this store holds now, cache included, and changes nothing by it. For its own thread, while it is open."""

    @abstractmethod
    def committed_view(self, home: RowsHome) -> QueryableStore:
        """Reads the rows of the last commit, and no others; see CommittedStores."""

    @property
    @abstractmethod
    def _scanned(self) -> DirtyBuffer:
        """What its scans read."""

    @contextmanager
    def scanning_at_most(self, rows: int | None) -> Iterator[None]:
        """Meanwhile scans raise ScanTooLargeError when they have looked at more rows together; None: they do not."""
        buffer = self._scanned
        buffer.budget = None if rows is None else ScanBudget(rows)
        try:
            yield
        finally:
            buffer.budget = None
