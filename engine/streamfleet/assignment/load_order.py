"""Places in the order of how busy they are, kept in order while tasks come and go.

Used by balance.py and standbys.py. A place is whatever tasks are given to: a process with its threads, or one thread of it.
Load is tasks per thread. Changing a count costs a binary search, so thousands of tasks are placed on hundreds of places
without sorting again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """Somewhere tasks can run."""

    name: str
    threads: int
    can_run: frozenset[str]
    """Content ids of the sub-topologies it has."""


class LoadOrder:
    """Some places, least busy first, as they would be with `ahead` tasks more (or fewer). Equal loads are in the order of names."""

    def __init__(self, places: Iterable[Place], counts: Mapping[str, int], *, ahead: int) -> None:
        self._ahead = ahead
        self._threads = {place.name: place.threads for place in places}
        self._order = sorted(self._entry(name, counts[name]) for name in self._threads)

    def change(self, name: str, before: int, after: int) -> None:
        """A place has another number of tasks now."""
        del self._order[bisect_left(self._order, self._entry(name, before))]
        insort(self._order, self._entry(name, after))

    def __iter__(self) -> Iterator[str]:
        return (name for _, name in self._order)

    def __reversed__(self) -> Iterator[str]:
        return (name for _, name in reversed(self._order))

    def first(self) -> tuple[float, str]:
        """The least busy one, behind its load."""
        return self._order[0]

    def first_but(self, left_out: Collection[str]) -> tuple[float, str] | None:
        return next((entry for entry in self._order if entry[1] not in left_out), None)

    def _entry(self, name: str, count: int) -> tuple[float, str]:
        return (count + self._ahead) / self._threads[name], name


def evens_out(busy: Place, busy_count: int, idle: Place, idle_count: int) -> bool:
    """Whether a task that moves leaves the two closer together, or as far apart the same way round.

    Where no such move is left, the threads of any two places differ by at most one task.
    """
    return (busy_count - 1) * idle.threads >= (idle_count + 1) * busy.threads
