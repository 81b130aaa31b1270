"""TaskStore: a store that lives in the home of its task, so that all stores of a task commit and abort together.

Stores of our own are TaskStores; a store that a user brings is only a StateStore, and looks after itself.
"""

from __future__ import annotations

from abc import abstractmethod

from streamfleet.state.api import StateStore
from streamfleet.state.store_home import StoreHome


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
