"""Where each active task should be, regardless of how it gets there.

Called by sticky.py. Everything starts where it is, or where the last plan promised it to go; what is nowhere goes to
whoever has most of its state and room for it, else to whoever has least to do; then members that are two or more tasks
apart are evened out. Only members whose topology has a task are asked.

It ends: what this makes is, once carried out, what it starts from and leaves alone. Without the promises a follow-up
could find another balance than the one its predecessor was after, and cause yet another follow-up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamfleet.assignment.runnable import Runnable
from streamfleet.assignment.snapshot import Member, TaskKey


def place(
    members: Sequence[Member], runnable: Mapping[str, Runnable], owners: Mapping[TaskKey, str]
) -> dict[TaskKey, str]:
    """The member of every task."""
    placement = _Placement(members, runnable, owners)
    tasks = [task for entry in runnable.values() for task in entry.info.tasks()]
    placement.keep(tasks)
    for task in sorted(tasks, key=placement.urgency):
        if task not in placement.member_of:
            placement.put(task, placement.best_for(task))
    placement.even_out()
    return placement.member_of


class _Placement:
    def __init__(
        self, members: Sequence[Member], runnable: Mapping[str, Runnable], owners: Mapping[TaskKey, str]
    ) -> None:
        self._members = {member.member_id: member for member in members}
        self._rank = {member.member_id: rank for rank, member in enumerate(members)}
        self._runnable = runnable
        self._owners = owners
        self._tasks_of: dict[str, set[TaskKey]] = {member.member_id: set() for member in members}
        able = {member_id for entry in runnable.values() for member_id in entry.eligible}
        total = sum(1 for entry in runnable.values() for _ in entry.info.tasks())
        self._fair_load = -(-total // len(able)) if able else 0
        self.member_of: dict[TaskKey, str] = {}

    def keep(self, tasks: Sequence[TaskKey]) -> None:
        promised = {task: member.member_id for member in self._members.values() for task in member.promised}
        for task in tasks:
            place = self._owners.get(task, promised.get(task))
            if place is not None and self._can_run(place, task):
                self.put(task, place)

    def put(self, task: TaskKey, member_id: str) -> None:
        if (before := self.member_of.get(task)) is not None:
            self._tasks_of[before].discard(task)
        self._tasks_of[member_id].add(task)
        self.member_of[task] = member_id

    def urgency(self, task: TaskKey) -> tuple[bool, bool, int, str]:
        """What has state somewhere comes first, or its place there could be taken by a task that has none anywhere.
        Partitions before sub-topologies, so that a member gets some of each.
        """
        reports = (self._members[member_id].report for member_id in self._runnable[task.content_id].eligible)
        has_state = any(task in report.standby or report.offset_sums.get(task, 0) for report in reports)
        return not has_state, not self._is_stateful(task), task.partition, task.content_id

    def best_for(self, task: TaskKey) -> str:
        eligible = self._runnable[task.content_id].eligible
        with_room = [member_id for member_id in eligible if self._load(member_id) < self._fair_load]
        return min(with_room or eligible, key=lambda member_id: self._preference(member_id, task))

    def even_out(self) -> None:
        while (move := self._next_move()) is not None:
            self.put(*move)

    def _next_move(self) -> tuple[TaskKey, str] | None:
        by_load = sorted(self._members, key=lambda member_id: (self._load(member_id), self._rank[member_id]))
        for busy in reversed(by_load):
            for idle in by_load:
                if self._load(busy) - self._load(idle) < 2:
                    break
                movable = [task for task in self._tasks_of[busy] if self._can_run(idle, task)]
                if movable:
                    return min(movable, key=lambda task: self._price(busy, task)), idle
        return None

    def _price(self, member_id: str, task: TaskKey) -> tuple[bool, bool, bool, int, TaskKey]:
        """What is lost if a task does not stay: it may not be there yet, or have nothing to restore, or many siblings."""
        is_here, has_state = self._owners.get(task) == member_id, self._state(member_id, task) > 0
        return is_here, has_state, self._is_stateful(task), -self._siblings(member_id, task), task

    def _preference(self, member_id: str, task: TaskKey) -> tuple[int, bool, int, int, int]:
        standby = task in self._members[member_id].report.standby
        state, siblings = self._state(member_id, task), self._siblings(member_id, task)
        return -state, not standby, self._load(member_id), siblings, self._rank[member_id]

    def _siblings(self, member_id: str, task: TaskKey) -> int:
        return sum(1 for other in self._tasks_of[member_id] if other.content_id == task.content_id)

    def _state(self, member_id: str, task: TaskKey) -> int:
        return self._members[member_id].report.offset_sums.get(task, 0) if self._is_stateful(task) else 0

    def _can_run(self, member_id: str, task: TaskKey) -> bool:
        return member_id in self._runnable[task.content_id].eligible

    def _is_stateful(self, task: TaskKey) -> bool:
        return self._runnable[task.content_id].info.stateful

    def _load(self, member_id: str) -> int:
        return len(self._tasks_of[member_id])
