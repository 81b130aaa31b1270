"""Between the group, which knows tasks by content id, and a StreamThread, which knows them by number: what the thread reports, and
what a plan means to it. Called by StreamThread through the functions that wiring.py gives it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from streamfleet.assignment.snapshot import MemberReport, Plan, SubTopologyInfo, TaskKey
from streamfleet.ids import TaskId
from streamfleet.task.phases import TaskPhase
from streamfleet.thread.task_factory import TaskFactory
from streamfleet.thread.task_manager import TaskManager, WantedTasks


class MemberReports:
    def __init__(self, factory: TaskFactory, tasks: TaskManager, told: MemberReport) -> None:
        """`told`: what does not change from one report to the next, the sub-topologies apart."""
        self._tasks = tasks
        self._inventory = factory.inventory
        self._content_ids = factory.content_ids()
        self._numbers = {content_id: number for number, content_id in self._content_ids.items()}
        sub_topologies = tuple(
            SubTopologyInfo(
                content_id,
                {topic: factory.partitions[topic] for topic in factory.plan.sub_topologies[number].sources},
                bool(factory.plan.sub_topologies[number].changelog_topics),
                factory.plan.sub_topologies[number].changelog_topics,
            )
            for number, content_id in self._content_ids.items()
        )
        self._told = msgspec.structs.replace(told, sub_topologies=sub_topologies)

    def report(self, shutdown_requested: bool) -> MemberReport:
        owned, tasks = self._tasks.owned, self._tasks.tasks
        running = {task_id for task_id, task in tasks.items() if task.phase is TaskPhase.RUNNING}
        return msgspec.structs.replace(
            self._told,
            owned=self._keys(owned),
            restoring=self._keys(owned - running),
            standby=self._keys(self._tasks.standbys.tasks),
            offset_sums=self._offset_sums(),
            shutdown_requested=shutdown_requested,
        )

    def _offset_sums(self) -> dict[TaskKey, int]:
        """Of everything in this process's directory. What the other threads have open is as old as their last reports."""
        for task_id, offset_sum in self._tasks.offset_sums().items():
            self._inventory.note(self._key(task_id), offset_sum)
        return {TaskKey(*key): offset_sum for key, offset_sum in self._inventory.offset_sums().items() if offset_sum}

    def tasks_of(self, plan: Plan) -> WantedTasks:
        return WantedTasks(self._ids(plan.active), self._ids(plan.standby), self._ids(plan.warmup))

    def _keys(self, task_ids: Iterable[TaskId]) -> frozenset[TaskKey]:
        return frozenset(map(self._key, task_ids))

    def _key(self, task_id: TaskId) -> TaskKey:
        return TaskKey(self._content_ids[task_id.sub_topology], task_id.partition)

    def _ids(self, keys: Iterable[TaskKey]) -> frozenset[TaskId]:
        return frozenset(TaskId(self._numbers[key.content_id], key.partition) for key in keys)
