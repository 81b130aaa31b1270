"""Where copies of state are kept warm.

Called by the assignors once it is known where each task is to run. A copy is of use only in another process than its task
and the other copies, and, where the app names tags (KIP-708), best in one whose values of these tags are others: another zone,
another cluster. A tag whose values are all taken no longer counts. Within that whoever has a copy keeps it, up to an even
share of all tasks; then the least busy one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from streamfleet.assignment.load_order import LoadOrder, Place, evens_out
from streamfleet.assignment.snapshot import TaskKey
from streamfleet.assignment.task_assignor import ApplicationState, ProcessState

TagValues = tuple[str | None, ...]
"""A process's values of the tags that count, in the order in which they are named."""
Group = tuple[frozenset[str], TagValues]
"""What processes have in common that can take each other's place: what they can run, and their tags."""


def place_standbys(state: ApplicationState, active: Mapping[TaskKey, str]) -> dict[TaskKey, set[str]]:
    """Processes that have a standby of each stateful task. With too few processes there are fewer copies than asked for."""
    if state.settings.num_standby_replicas == 0 or len(state.processes) < 2:
        return {task: set() for task in state.stateful()}
    copies = _Copies(state, active)
    for step in (copies.keep, copies.fill_up):
        for task in state.stateful():
            step(task)
    copies.even_out()
    return copies.standbys


def tag_spread(state: ApplicationState, names: Iterable[str]) -> int:
    """How many different values of the tags that count these processes have."""
    values = (_values(state.processes[name], state.settings.rack_aware_tags) for name in names)
    return sum(len(set(column)) for column in zip(*values, strict=True))


class _Copies:
    def __init__(self, state: ApplicationState, active: Mapping[TaskKey, str]) -> None:
        self._state = state
        self._active = active
        self._replicas = state.settings.num_standby_replicas
        self._places = {name: Place(name, each.threads, each.can_run) for name, each in state.processes.items()}
        self._tags = {name: _values(each, state.settings.rack_aware_tags) for name, each in state.processes.items()}
        self._all_values = [set(values) for values in zip(*self._tags.values(), strict=True)]
        stateful = {task for task in active if state.tasks[task].stateful}
        self._counts = dict.fromkeys(state.processes, 0)
        for task in stateful:
            self._counts[active[task]] += 1
        threads = sum(each.threads for each in state.processes.values())
        self._room = -(-len(stateful) * (1 + self._replicas) // threads)
        alike: dict[Group, list[Place]] = {}
        for place in self._places.values():
            alike.setdefault(self._group_of(place.name), []).append(place)
        self._idle = {key: LoadOrder(group, self._counts, ahead=1) for key, group in alike.items()}
        self._by_load = LoadOrder(self._places.values(), self._counts, ahead=1)
        self._by_load_left = LoadOrder(self._places.values(), self._counts, ahead=-1)
        self._on: dict[str, dict[TaskKey, None]] = {name: {} for name in self._places}
        self._holders = _holders(state)
        self.standbys: dict[TaskKey, set[str]] = {}

    def keep(self, task: TaskKey) -> None:
        """Copies that run go on, those that are least behind first, unless another process would be more distant."""
        used = [self._active[task]]
        for _, name in sorted(self._holders.get(task, ())):
            if len(used) > self._replicas:
                break
            if name not in used and task in self._state.processes[name].standby and self._is_distant(task, name, used):
                used.append(name)
                self._count(task, name, 1)
        self.standbys[task] = set(used[1:])

    def fill_up(self, task: TaskKey) -> None:
        """More copies: where state is and room, else to the least busy; the most distant ones first in either case."""
        used = [self._active[task], *sorted(self.standbys[task])]
        while len(used) <= self._replicas:
            candidates = self._most_distant(task, used)
            if not candidates:
                break
            kept = [
                name
                for _, name in sorted(self._holders.get(task, ()))
                if name not in used and self._group_of(name) in candidates and self._has_room(self._places[name])
            ]
            name = kept[0] if kept else min(candidates.values())[1]
            used.append(name)
            self.standbys[task].add(name)
            self._count(task, name, 1)

    def _most_distant(self, task: TaskKey, used: Collection[str]) -> dict[Group, tuple[float, str]]:
        """Groups of processes that share the fewest tag values with those used, and the least busy one of each."""
        shared: dict[Group, int] = {}
        least: dict[Group, tuple[float, str]] = {}
        for group, order in self._idle.items():
            if task.content_id in group[0] and (first := order.first_but(used)) is not None:
                shared[group], least[group] = self._shared_values(group[1], used), first
        fewest = min(shared.values(), default=0)
        return {group: entry for group, entry in least.items() if shared[group] == fewest}

    def _is_distant(self, task: TaskKey, name: str, used: Collection[str]) -> bool:
        group = self._group_of(name)
        if task.content_id not in group[0]:
            return False
        return not group[1] or group in self._most_distant(task, used)

    def _group_of(self, name: str) -> Group:
        return self._places[name].can_run, self._tags[name]

    def _shared_values(self, values: TagValues, used: Iterable[str]) -> int:
        """How many of the tags that can still make a difference do not."""
        taken = list(zip(*(self._tags[name] for name in used), strict=True))
        return sum(
            value in taken[number] and not self._all_values[number] <= set(taken[number])
            for number, value in enumerate(values)
        )

    def even_out(self) -> None:
        while (move := self._next_move()) is not None:
            task, busy, idle = move
            self.standbys[task].remove(busy)
            self.standbys[task].add(idle)
            self._count(task, busy, -1)
            self._count(task, idle, 1)

    def _next_move(self) -> tuple[TaskKey, str, str] | None:
        for busy in reversed(self._by_load_left):
            worth_it = False
            for idle in self._by_load:
                if not evens_out(self._places[busy], self._counts[busy], self._places[idle], self._counts[idle]):
                    break
                worth_it = True
                if (task := self._movable(busy, idle)) is not None:
                    return task, busy, idle
            if not worth_it:
                return None  # those that follow are less busy
        return None

    def _movable(self, busy: str, idle: str) -> TaskKey | None:
        """A standby that the idle process can have; best one that it has most of already."""
        lags, there = self._state.processes[idle].lags, self._on[busy]
        known = sorted((task for task in lags if task in there), key=lambda task: (lags[task], task))
        return next((task for task in [*known, *there] if self._may_move(task, busy, idle)), None)

    def _may_move(self, task: TaskKey, source: str, target: str) -> bool:
        others = [self._active[task], *(self.standbys[task] - {source})]
        if target in others or task.content_id not in self._places[target].can_run:
            return False
        return tag_spread(self._state, [*others, target]) >= tag_spread(self._state, [*others, source])

    def _has_room(self, place: Place) -> bool:
        return self._counts[place.name] < self._room * place.threads

    def _count(self, task: TaskKey, name: str, change: int) -> None:
        before = self._counts[name]
        self._counts[name] = after = before + change
        for order in (self._idle[self._group_of(name)], self._by_load, self._by_load_left):
            order.change(name, before, after)
        if change > 0:
            self._on[name][task] = None
        else:
            del self._on[name][task]


def _values(process: ProcessState, names: Iterable[str]) -> TagValues:
    return tuple(process.tags.get(name) for name in names)


def _holders(state: ApplicationState) -> dict[TaskKey, list[tuple[int, str]]]:
    """Processes that have state of a task, and how far behind they are."""
    holders: dict[TaskKey, list[tuple[int, str]]] = {}
    for name, process in state.processes.items():
        for task in process.standby | process.lags.keys():
            if (info := state.tasks.get(task)) is not None and info.stateful:
                holders.setdefault(task, []).append((process.lags.get(task, info.full_lag or 0), name))
    return holders
