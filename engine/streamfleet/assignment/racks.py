"""Tasks go where their input is (KIP-925): the cheapest exchange of places between racks, for given shares.

Used by the assignors after balance. What a task costs in a rack is its partitions that have no replica there, times the traffic
cost; and the non-overlap cost if it has to leave the process that has it already. The processes' shares stay as they are, so
the question is only which tasks change places: a transport problem between racks, as within a rack nothing is gained by moving.
It is solved by cancelling negative cycles until there is none: then no exchange of any length would be cheaper.

Nothing is done where a process or a partition has no rack, or while processes differ in what they can run.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping

import structlog

from streamfleet.assignment.snapshot import TaskKey
from streamfleet.assignment.task_assignor import ApplicationState
from streamfleet.ids import TopicPartition

log = structlog.get_logger(__name__)


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
    def __init__(self, state: ApplicationState, placed: Mapping[TaskKey, str], traffic: int, non_overlap: int) -> None:
        self._state = state
        self._placed = placed
        self._rack_of_process = {name: process.rack or "" for name, process in state.processes.items()}
        self._home = {task: self._rack_of_process[name] for task, name in placed.items()}
        self._racks = sorted(set(self._rack_of_process.values()))
        self._rack = dict(self._home)
        self._cost = {
            (task, rack): traffic * cross_rack_partitions(state, task, rack)
            + (non_overlap if rack != self._home[task] and task in state.processes[placed[task]].active else 0)
            for task in placed
            for rack in self._racks
        }
        self._moves: dict[tuple[str, str], list[tuple[int, TaskKey]]] = {}
        for task in placed:
            self._offer(task)

    def solved(self) -> dict[TaskKey, str]:
        while cycle := self._negative_cycle():
            for task, rack in cycle:
                self._rack[task] = rack
                self._offer(task)
        return self._seated()

    def _negative_cycle(self) -> list[tuple[TaskKey, str]]:
        """Tasks and the racks they go to, so that every rack gives as many as it gets, and the sum gets cheaper."""
        edges = self._cheapest_moves()
        best = dict.fromkeys(self._racks, 0)
        came: dict[str, str] = {}
        changed = None
        for _ in self._racks:
            changed = None
            for (source, target), (gain, _task) in edges.items():
                if best[source] + gain < best[target]:
                    best[target], came[target], changed = best[source] + gain, source, target
        if changed is None:
            return []
        for _ in self._racks:  # walk back: by now one is on the cycle
            changed = came[changed]
        cycle, rack = [], changed
        while True:
            cycle.append((edges[came[rack], rack][1], rack))
            rack = came[rack]
            if rack == changed:
                return cycle

    def _cheapest_moves(self) -> dict[tuple[str, str], tuple[int, TaskKey]]:
        edges = {}
        for (source, target), moves in self._moves.items():
            while moves and self._rack[moves[0][1]] != source:
                heapq.heappop(moves)  # it has gone elsewhere since it was offered
            if moves:
                edges[source, target] = moves[0]
        return edges

    def _offer(self, task: TaskKey) -> None:
        source = self._rack[task]
        for target in self._racks:
            if target != source:
                gain = self._cost[task, target] - self._cost[task, source]
                heapq.heappush(self._moves.setdefault((source, target), []), (gain, task))

    def _seated(self) -> dict[TaskKey, str]:
        """Tasks that stay in their rack stay in their process; the others take the places that came free."""
        seated = {task: name for task, name in self._placed.items() if self._rack[task] == self._home[task]}
        free: dict[str, list[str]] = {}
        for task, name in sorted(self._placed.items(), reverse=True):
            if task not in seated:
                free.setdefault(self._rack_of_process[name], []).append(name)
        for task in sorted(self._placed):
            if task not in seated:
                seated[task] = free[self._rack[task]].pop()
        return seated
