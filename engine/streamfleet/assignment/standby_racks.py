"""Standbys change places between racks where they would read their changelogs from brokers next to them.

Used by the assignors after place_standbys. Unlike tasks, copies of one task must stay apart, so there is no exact answer at a
small price: two standbys change places as long as that is cheaper, takes neither to a process with another copy of its task,
and leaves both as well spread over tags.
"""

from __future__ import annotations

from collections.abc import Mapping

from streamfleet.assignment.racks import racks_are_known
from streamfleet.assignment.snapshot import TaskKey
from streamfleet.assignment.standbys import tag_spread
from streamfleet.assignment.task_assignor import ApplicationState

MAX_ROUNDS = 4
"""Over all standbys; most often the second finds nothing more."""


def standbys_optimized_for_racks(
    state: ApplicationState,
    active: Mapping[TaskKey, str],
    standbys: Mapping[TaskKey, set[str]],
    *,
    traffic_cost: int,
    non_overlap_cost: int,
) -> dict[TaskKey, set[str]]:
    placed = {task: set(names) for task, names in standbys.items()}
    partitions = [partition for task in placed for partition in state.tasks[task].changelogs]
    if (
        state.settings.rack_aware_strategy == "none"
        or not any(placed.values())
        or not racks_are_known(state, partitions)
    ):
        return placed
    swaps = _Swaps(state, active, placed, traffic_cost, non_overlap_cost)
    for _ in range(MAX_ROUNDS):
        if not swaps.one_round():
            break
    return placed


class _Swaps:
    def __init__(
        self,
        state: ApplicationState,
        active: Mapping[TaskKey, str],
        placed: dict[TaskKey, set[str]],
        traffic: int,
        non_overlap: int,
    ) -> None:
        self._state = state
        self._active = active
        self._placed = placed
        self._traffic = traffic
        self._non_overlap = non_overlap
        self._on: dict[str, dict[TaskKey, None]] = {name: {} for name in state.processes}
        for task, names in placed.items():
            for name in names:
                self._on[name][task] = None

    def one_round(self) -> bool:
        """Whether anything has changed."""
        changed = False
        for task in sorted(self._placed):
            for name in sorted(self._placed[task]):
                if self._reads(task, name) and (better := self._better(task, name)) is not None:
                    self._move(task, name, better[0])
                    self._move(better[1], better[0], name)
                    changed = True
        return changed

    def _better(self, task: TaskKey, name: str) -> tuple[str, TaskKey] | None:
        """A process to go to, and the standby that comes from there instead."""
        for other in self._state.processes:
            saved = self._reads(task, name) - self._reads(task, other)
            if saved <= 0 or not self._may_move(task, name, other):
                continue
            for back in self._on[other]:
                saved_by_both = saved + self._reads(back, other) - self._reads(back, name)
                price = self._price(task, name, other) + self._price(back, other, name)
                if self._traffic * saved_by_both > price and self._may_move(back, other, name):
                    return other, back
        return None

    def _reads(self, task: TaskKey, name: str) -> int:
        """Changelogs that are read from another rack."""
        rack = self._state.processes[name].rack
        return sum(rack not in self._state.partition_racks[p] for p in self._state.tasks[task].changelogs)

    def _price(self, task: TaskKey, source: str, target: str) -> int:
        """For leaving a process that has the standby; going to one that has it pays."""
        processes = self._state.processes
        return self._non_overlap * ((task in processes[source].standby) - (task in processes[target].standby))

    def _may_move(self, task: TaskKey, source: str, target: str) -> bool:
        others = [self._active[task], *(self._placed[task] - {source})]
        if target in others or task.content_id not in self._state.processes[target].can_run:
            return False
        return tag_spread(self._state, [*others, target]) >= tag_spread(self._state, [*others, source])

    def _move(self, task: TaskKey, source: str, target: str) -> None:
        self._placed[task].remove(source)
        self._placed[task].add(target)
        del self._on[source][task]
        self._on[target][task] = None
