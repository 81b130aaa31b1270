"""CommittedStores: a task's stores as of its last commit, for threads that are not the task's own. Made by TaskState.

A reader holds the lock while it reads, a commit while it writes: what is seen is one commit, never half of one, and the
position that goes with it. Closing waits for the reader under way; who comes later is told that the stores are closed, and
never touches a database that is. The views go around the dirty buffers, so writes that are not committed are not in them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from streamfleet.errors import StoreUnavailableError
from streamfleet.ids import TopicPartition
from streamfleet.state.api import StateStore
from streamfleet.state.store_home import CommittedHome, StoreHome
from streamfleet.state.task_store import QueryableStore

LOCK_SECONDS = 5.0
"""Longer than any commit's write to disk should take."""


class CommittedStores:
    """`position` is how far each input was processed in what was committed last; None until that is known."""

    def __init__(self, home: StoreHome, stores: Mapping[str, StateStore]) -> None:
        self._home = CommittedHome(home)
        self._stores = stores
        self._views: dict[str, tuple[int, QueryableStore]] = {}
        self._commits = 0
        self._lock = threading.Lock()
        self._is_closed = False
        self.position: Mapping[TopicPartition, int] | None = None
        self.replayed_to_ms: dict[str, int] = {}
        """Changelog -> timestamp of the last record of it that was applied here, since the stores were opened."""

    @contextmanager
    def reading(self) -> Iterator[CommittedStores]:
        """Nothing is committed or closed meanwhile. Raises StoreUnavailableError if the stores are closed."""
        if not self._lock.acquire(timeout=LOCK_SECONDS):
            raise StoreUnavailableError("a commit has kept the stores for too long", hint="ask again")
        try:
            if self._is_closed:
                raise StoreUnavailableError("the task was closed meanwhile", hint="ask again, or ask its new owner")
            yield self
        finally:
            self._lock.release()

    def store(self, name: str) -> QueryableStore | None:
        """To be read only inside `reading`. None if there is no store of that name, or it is none of the engine's own kinds."""
        made_at, view = self._views.get(name, (-1, None))
        if view is not None and (made_at == self._commits or not view.remembers_commit):
            return view
        store = self._stores.get(name)
        if not isinstance(store, QueryableStore):
            return None
        view = store.committed_view(self._home)
        self._views[name] = (self._commits, view)
        return view

    def changelog_offsets(self) -> dict[str, int]:
        """Of the last record of each changelog that the rows contain. Only inside `reading`."""
        return self._home.offsets()

    @contextmanager
    def writing(self, position: Mapping[TopicPartition, int] | None) -> Iterator[None]:
        """Around a commit; what it was written for is told afterwards."""
        with self._lock:
            yield
            self._commits += 1
            if position is not None:
                self.position = position

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._views.clear()
