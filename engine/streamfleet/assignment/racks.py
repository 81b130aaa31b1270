"""Tasks go where their input is (KIP-925): the cheapest exchange of places between racks, for given shares.

Used by the assignors after balance. What a task costs in a process is its partitions that have no replica in its rack, times the
traffic cost; and the non-overlap cost if another process has it now, wherever balance would have it go. (The original charges for
leaving the place that balance gave it, even where that is a way back.) The processes' shares stay as they are, so the question is
only which tasks change places: a transport problem. Within a rack all places cost the same, but for the one in the process that
has the task. So the places to choose from are the racks, and, where a process cannot keep all it has, its seats: as many as its
share. It is solved by cancelling negative cycles until there is none: then no exchange of any length would be cheaper.

Nothing is done where a process or a partition has no rack, or while processes differ in what they can run.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import NamedTuple

import structlog

from streamfleet.assignment.snapshot import TaskKey
from streamfleet.assignment.task_assignor import ApplicationState
from streamfleet.ids import TopicPartition

log = structlog.get_logger(__name__)


class _Seats(NamedTuple):
    """Places in a process, for tasks that it has now."""

    process: str


Spot = str | _Seats
FREE: tuple[int, TaskKey | None] = (0, None)


def optimized_for_racks(
    state: ApplicationState, placed: Mapping[TaskKey, str], *, traffic_cost: int, non_overlap_cost: int
) -> dict[TaskKey, str]:
    """The placement with less traffic between racks; as it is if the app's strategy is none."""
    partitions = [partition for task in placed for partition in state.tasks[task].sources]
    if state.settings.rack_aware_strategy == "none" or not placed or not racks_are_known(state, partitions):
        return dict(placed)
    groups: dict[str, list[TaskKey]] = {}
    for task in sorted(placed):
        # With balance_subtopology places are exchanged within a sub-topology only, so that its shares stay as they are.
        alone = state.settings.rack_aware_strategy == "balance_subtopology"
        groups.setdefault(task.content_id if alone else "", []).append(task)
    result = dict(placed)
    for tasks in groups.values():
        result |= _Exchange(state, {task: placed[task] for task in tasks}, traffic_cost, non_overlap_cost).solved()
    return result


def cross_rack_partitions(state: ApplicationState, task: TaskKey, rack: str) -> int:
    """Input partitions of the task that would be read from another rack."""
    return sum(rack not in state.partition_racks[partition] for partition in state.tasks[task].sources)


def racks_are_known(state: ApplicationState, partitions: Iterable[TopicPartition]) -> bool:
    """Of all processes and these partitions; and all processes can take each other's place."""
    lacking: list[str | TopicPartition] = [name for name, process in state.processes.items() if process.rack is None]
    lacking += [partition for partition in partitions if not state.partition_racks.get(partition)]
    if lacking:
        log.warning("tasks are placed without regard to racks", no_rack=str(lacking[0]), count=len(lacking))
    return not lacking and len({process.can_run for process in state.processes.values()}) == 1


class _Exchange:
    """A spot is a rack, by its name, or `_Seats` of a process; whoever sits there is in the process's rack, too."""

    def __init__(self, state: ApplicationState, placed: Mapping[TaskKey, str], traffic: int, non_overlap: int) -> None:
        self._state = state
        self._placed = placed
        self._traffic = traffic
        self._non_overlap = non_overlap
        self._rack_of_process = {name: process.rack or "" for name, process in state.processes.items()}
        self._racks = sorted(set(self._rack_of_process.values()))
        self._owner = {
            task: name for name, process in state.processes.items() for task in process.active & placed.keys()
        }
        self._shares = Counter(placed.values())
        wanted = Counter(self._owner.values())
        self._seats = {name: _Seats(name) for name in sorted(wanted) if wanted[name] > self._shares[name]}
        self._seated = Counter[str]()
        self._cost = {task: self._costs(task) for task in placed}
        self._spot: dict[TaskKey, Spot] = {}
        self._moves: dict[tuple[Spot, Spot], list[tuple[int, TaskKey]]] = {}
        for task, name in sorted(placed.items()):
            has_seat = name in self._seats and self._owner.get(task) == name
            self._go(task, self._seats[name] if has_seat else self._rack_of_process[name])

    def _costs(self, task: TaskKey) -> dict[Spot, int]:
        """Of all spots the task may go to."""
        costs: dict[Spot, int] = {}
        owner = self._owner.get(task)
        for rack in self._racks:
            costs[rack] = self._traffic * cross_rack_partitions(self._state, task, rack)
        if owner is None:
            return costs
        home = self._rack_of_process[owner]
        if owner in self._seats:
            costs[self._seats[owner]] = costs[home]
        for rack in self._racks:
            if rack != home or owner in self._seats:
                costs[rack] += self._non_overlap
        return costs

    def solved(self) -> dict[TaskKey, str]:
        while cycle := self._negative_cycle():
            for task, spot in cycle:
                self._go(task, spot)
        return self._by_process()

    def _go(self, task: TaskKey, spot: Spot) -> None:
        before = self._spot.get(task)
        self._spot[task] = spot
        for each, change in ((before, -1), (spot, 1)):
            if isinstance(each, _Seats):
                self._seated[each.process] += change
        costs = self._cost[task]
        for target, cost in costs.items():
            if target != spot:
                heapq.heappush(self._moves.setdefault((spot, target), []), (cost - costs[spot], task))

    def _negative_cycle(self) -> list[tuple[TaskKey, Spot]]:
        """Tasks and the spots they go to, so that every rack gives as many as it gets, and the sum gets cheaper."""
        edges = self._cheapest_moves()
        best: dict[Spot, int] = dict.fromkeys((*self._racks, *self._seats.values()), 0)
        came: dict[Spot, Spot] = {}
        changed: Spot | None = None
        for _ in best:
            changed = None
            for (source, target), (gain, _task) in edges.items():
                if best[source] + gain < best[target]:
                    best[target], came[target], changed = best[source] + gain, source, target
            if changed is None:
                return []
        assert changed is not None
        for _ in best:  # walk back: by now one is on the cycle
            changed = came[changed]
        cycle, spot = [], changed
        while True:
            if (task := edges[came[spot], spot][1]) is not None:
                cycle.append((task, spot))
            spot = came[spot]
            if spot == changed:
                return cycle

    def _cheapest_moves(self) -> dict[tuple[Spot, Spot], tuple[int, TaskKey | None]]:
        edges: dict[tuple[Spot, Spot], tuple[int, TaskKey | None]] = {}
        for (source, target), moves in self._moves.items():
            while moves and self._spot[moves[0][1]] != source:
                heapq.heappop(moves)  # it has gone elsewhere since it was offered
            if moves:
                edges[source, target] = moves[0]
        for name, seats in self._seats.items():
            # A seat and another place of the rack change hands for nothing.
            rack = self._rack_of_process[name]
            if self._seated[name] < self._shares[name]:
                edges[seats, rack] = min(edges.get((seats, rack), FREE), FREE, key=itemgetter(0))
            if self._seated[name] > 0:
                edges[rack, seats] = min(edges.get((rack, seats), FREE), FREE, key=itemgetter(0))
        return edges

    def _by_process(self) -> dict[TaskKey, str]:
        """In their racks tasks go back to who has them, else where they were placed; the others take what is left."""
        free = self._shares.copy()
        found: dict[TaskKey, str] = {}
        for choice in (self._owner, self._placed):
            for task in sorted(self._placed):
                name = choice.get(task)
                if task not in found and name is not None and free[name] and self._may_sit(task, name):
                    found[task] = name
                    free[name] -= 1
        left: dict[str, list[str]] = {}
        for name in sorted(free.elements(), reverse=True):
            left.setdefault(self._rack_of_process[name], []).append(name)
        for task in sorted(self._placed):
            if task not in found:
                found[task] = left[self._rack_of(task)].pop()
        return found

    def _may_sit(self, task: TaskKey, name: str) -> bool:
        return self._rack_of(task) == self._rack_of_process[name]

    def _rack_of(self, task: TaskKey) -> str:
        spot = self._spot[task]
        return self._rack_of_process[spot.process] if isinstance(spot, _Seats) else spot
