"""Balance: tasks on places, as even as can be, with as few moves as that takes.

Used by the assignors for processes, and by threads.py for the threads of one process. Whoever uses it says first what
stays where it is (`keep`), then where the rest had better go (`add`), then which moves would be cheap (`prefer`), and lets
it make the other moves that balance needs (`even_out`). Each step is deterministic, and what comes out of `even_out` is left
as it is when it goes in again: so a group comes to rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from streamfleet.assignment.load_order import LoadOrder, Place, evens_out
from streamfleet.assignment.snapshot import TaskKey

Bucket = tuple[bool, bool, str]
"""Tasks of a place that cost the same to move: whether they are kept there, whether they are heavy, and their content id."""


class Balance:
    def __init__(
        self, places: Sequence[Place], *, heavy: Collection[TaskKey], base: Mapping[str, int] | None = None
    ) -> None:
        """`heavy`: tasks that had better not move. `base`: other tasks, which count and cannot be moved."""
        self._places = {place.name: place for place in places}
        self._heavy = heavy
        self._counts = {name: (base or {}).get(name, 0) for name in self._places}
        self._buckets: dict[str, dict[Bucket, dict[TaskKey, None]]] = {name: {} for name in self._places}
        self._siblings: dict[tuple[str, str], int] = {}
        alike: dict[frozenset[str], list[Place]] = {}
        for place in places:
            alike.setdefault(place.can_run, []).append(place)
        self._idle = {can_run: LoadOrder(group, self._counts, ahead=1) for can_run, group in alike.items()}
        self._busy = LoadOrder(places, self._counts, ahead=-1)
        self._bucket_of: dict[TaskKey, Bucket] = {}
        self.place_of: dict[TaskKey, str] = {}

    def can_run(self, name: str, task: TaskKey) -> bool:
        return task.content_id in self._places[name].can_run

    def tasks_of(self, name: str) -> Iterator[TaskKey]:
        return (task for bucket in self._buckets[name].values() for task in bucket)

    @property
    def counts(self) -> Mapping[str, int]:
        return self._counts

    def keep(self, task: TaskKey, name: str) -> None:
        """It is there, and moves only if balance needs it."""
        self._put(task, name, at_home=True)

    def add(self, task: TaskKey, ranked: Iterable[str], room: int) -> str | None:
        """Put a task to the first of the ranked places with fewer than `room` tasks per thread, else to the least busy one.
        None: nobody can run it.
        """
        for name in ranked:
            if self.can_run(name, task) and self._counts[name] < room * self._places[name].threads:
                self._put(task, name, at_home=False)
                return name
        orders = [order for can_run, order in self._idle.items() if task.content_id in can_run]
        if not orders:
            return None
        name = min(order.first() for order in orders)[1]
        self._put(task, name, at_home=False)
        return name

    def add_among(self, task: TaskKey, names: Iterable[str]) -> None:
        """Put a task to the least busy of these places, however busy that is."""
        self._put(
            task, min(names, key=lambda name: (self._counts[name] / self._places[name].threads, name)), at_home=False
        )

    def prefer(self, moves: Iterable[tuple[TaskKey, str]]) -> None:
        """Make those of the moves, in this order, that even the load out."""
        for task, name in moves:
            before = self.place_of.get(task)
            if before is not None and before != name and self.can_run(name, task) and self._evens_out(before, name):
                self._move(task, name)

    def even_out(self, *, light_only: bool = False) -> None:
        """Move tasks while that evens the load out; `light_only`: not the heavy ones."""
        while (move := self._next_move(light_only)) is not None:
            self._move(*move)

    def _next_move(self, light_only: bool) -> tuple[TaskKey, str] | None:
        for busy in reversed(self._busy):
            worth_it = False
            for can_run, order in self._idle.items():
                # All in this order can run the same: if the least busy of them is of no use, none is.
                idle = order.first()[1]
                if idle != busy and self._evens_out(busy, idle):
                    worth_it = True
                    if (task := self._cheapest(busy, idle, can_run, light_only)) is not None:
                        return task, idle
            if not worth_it:
                return None  # those that follow are less busy
        return None

    def _cheapest(self, busy: str, idle: str, can_run: frozenset[str], light_only: bool) -> TaskKey | None:
        """What costs least to move; of those, what the busy place has many of and the idle one few."""

        def price(bucket: Bucket) -> tuple[bool, bool, int, str]:
            at_home, heavy, content_id = bucket
            surplus = self._siblings.get((busy, content_id), 0) - self._siblings.get((idle, content_id), 0)
            return at_home, heavy, -surplus, content_id

        movable = [
            bucket
            for bucket, tasks in self._buckets[busy].items()
            if tasks and bucket[2] in can_run and not (light_only and bucket[1])
        ]
        if not movable:
            return None
        return next(reversed(self._buckets[busy][min(movable, key=price)]))

    def _evens_out(self, busy: str, idle: str) -> bool:
        return evens_out(self._places[busy], self._counts[busy], self._places[idle], self._counts[idle])

    def _put(self, task: TaskKey, name: str, *, at_home: bool) -> None:
        bucket = (at_home, task in self._heavy, task.content_id)
        self._buckets[name].setdefault(bucket, {})[task] = None
        self._bucket_of[task] = bucket
        self.place_of[task] = name
        self._count(task, name, 1)

    def _move(self, task: TaskKey, name: str) -> None:
        before = self.place_of[task]
        del self._buckets[before][self._bucket_of[task]][task]
        self._count(task, before, -1)
        self._put(task, name, at_home=False)

    def _count(self, task: TaskKey, name: str, change: int) -> None:
        before = self._counts[name]
        self._counts[name] = after = before + change
        self._siblings[name, task.content_id] = self._siblings.get((name, task.content_id), 0) + change
        self._idle[self._places[name].can_run].change(name, before, after)
        self._busy.change(name, before, after)
