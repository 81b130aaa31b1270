"""Where each active task should be, regardless of how it gets there.

Called by sticky.py. An owner keeps its tasks up to an even share of all; what is left goes to whoever has most of its
state, else to whoever has least to do; at last members that are two or more tasks apart are evened out. Only members
whose topology has a task are asked. Stateful tasks go first, because moving them costs a restore.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from streamfleet.assignment.runnable import Runnable
from streamfleet.assignment.snapshot import Member, TaskKey


def place(
    members: Sequence[Member], runnable: Mapping[str, Runnable], owners: Mapping[TaskKey, str]
) -> dict[TaskKey, str]:
    """The member of every task."""
    placement = _Placement(members, runnable)
    tasks = placement.in_order(task for entry in runnable.values() for task in entry.info.tasks())
    placement.keep(owners, tasks)
    for task in tasks:
        if task not in placement.member_of:
            placement.put(task, placement.best_for(task))
    placement.even_out(owners)
    return placement.member_of


class _Placement:
    def __init__(self, members: Sequence[Member], runnable: Mapping[str, Runnable]) -> None:
        self._members = {member.member_id: member for member in members}
        self._rank = {member.member_id: rank for rank, member in enumerate(members)}
        self._runnable = runnable
        self._tasks_of: dict[str, set[TaskKey]] = {member.member_id: set() for member in members}
        total = sum(1 for entry in runnable.values() for _ in entry.info.tasks())
        self._share, self._extra = divmod(total, len(members)) if members else (0, 0)
        self.member_of: dict[TaskKey, str] = {}

    def in_order(self, tasks: Iterable[TaskKey]) -> list[TaskKey]:
        """Stateful ones first; partitions before sub-topologies, so that a member gets some of each."""
        return sorted(tasks, key=lambda task: (not self._stateful(task), task.partition, task.content_id))

    def keep(self, owners: Mapping[TaskKey, str], tasks: Iterable[TaskKey]) -> None:
        owned: dict[str, list[TaskKey]] = {member_id: [] for member_id in self._members}
        for task in tasks:
            if (owner := owners.get(task)) is not None and self._can_run(owner, task):
                owned[owner].append(task)
        # Those with most get the places above the even share: fewer tasks move.
        for member_id in sorted(owned, key=lambda member_id: (-len(owned[member_id]), self._rank[member_id])):
            for task in owned[member_id]:
                if self._has_room(member_id):
                    self.put(task, member_id)

    def put(self, task: TaskKey, member_id: str) -> None:
        if (before := self.member_of.get(task)) is not None:
            self._tasks_of[before].discard(task)
        self._tasks_of[member_id].add(task)
        self.member_of[task] = member_id

    def best_for(self, task: TaskKey) -> str:
        eligible = self._runnable[task.content_id].eligible
        with_room = [member_id for member_id in eligible if self._has_room(member_id)]
        return min(with_room or eligible, key=lambda member_id: self._preference(member_id, task))

    def even_out(self, owners: Mapping[TaskKey, str]) -> None:
        while (move := self._next_move(owners)) is not None:
            self.put(*move)

    def _next_move(self, owners: Mapping[TaskKey, str]) -> tuple[TaskKey, str] | None:
        by_load = sorted(self._members, key=lambda member_id: (self._load(member_id), self._rank[member_id]))
        for busy in reversed(by_load):
            for idle in by_load:
                if self._load(busy) - self._load(idle) < 2:
                    break
                movable = [task for task in self._tasks_of[busy] if self._can_run(idle, task)]
                if movable:
                    # Best one that is not there yet, then one without state.
                    return min(movable, key=lambda t: (owners.get(t) == busy, self._stateful(t), t)), idle
        return None

    def _preference(self, member_id: str, task: TaskKey) -> tuple[int, bool, int, int, int]:
        report = self._members[member_id].report
        state = report.offset_sums.get(task, 0) if self._stateful(task) else 0
        siblings = sum(1 for other in self._tasks_of[member_id] if other.content_id == task.content_id)
        return -state, task not in report.standby, self._load(member_id), siblings, self._rank[member_id]

    def _has_room(self, member_id: str) -> bool:
        """Below the even share, or one above it while the division leaves a rest."""
        load = self._load(member_id)
        if load < self._share:
            return True
        above = sum(1 for tasks in self._tasks_of.values() if len(tasks) > self._share)
        return load == self._share and above < self._extra

    def _can_run(self, member_id: str, task: TaskKey) -> bool:
        return member_id in self._runnable[task.content_id].eligible

    def _stateful(self, task: TaskKey) -> bool:
        return self._runnable[task.content_id].info.stateful

    def _load(self, member_id: str) -> int:
        return len(self._tasks_of[member_id])
