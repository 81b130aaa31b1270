"""StandbyManager: the copies this member keeps warm, standbys and warm-ups. Part of TaskManager, which decides about active tasks.

A copy needs no fencing and no offsets of the group: it is opened and entrusted to the StateUpdater, which keeps it up to date until
it is closed or becomes the active task. One whose state is unusable is wiped and begins anew; nothing else is touched by that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import structlog

from streamfleet.changelog.listeners import SuspendReason
from streamfleet.changelog.progress import TaskProgress, UpdateKind
from streamfleet.changelog.state_updater import StateUpdater
from streamfleet.commit.api import GroupOffsets
from streamfleet.errors import StateStoreError, StoreDamagedError, TaskCorruptedError, TaskLockedError
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.task.standby_task import StandbyTask
from streamfleet.task.store_engines import StoreEngines
from streamfleet.thread.task_factory import TaskFactory

log = structlog.get_logger(__name__)

Wipe = Callable[[TaskId, TaskCorruptedError], None]

MIN_LIMITS_INTERVAL_MS = 1000


class StandbyManager:
    """`wipe` deletes the local state of a task, which must be closed."""

    def __init__(self, factory: TaskFactory, updater: StateUpdater, offsets: GroupOffsets, wipe: Wipe) -> None:
        self._factory = factory
        self._updater = updater
        self._offsets = offsets
        self._wipe = wipe
        self._tasks: dict[TaskId, StandbyTask] = {}
        self._wanted: dict[TaskId, UpdateKind] = {}
        self._next_limits_ms = 0

    @property
    def tasks(self) -> Mapping[TaskId, StandbyTask]:
        """Those that are open. The StateUpdater writes to their stores at any time."""
        return self._tasks

    @property
    def wanted(self) -> Mapping[TaskId, UpdateKind]:
        return self._wanted

    @property
    def warm_ups(self) -> frozenset[TaskId]:
        return frozenset(task_id for task_id, kind in self._wanted.items() if kind is UpdateKind.WARMUP)

    def progress(self) -> dict[TaskId, TaskProgress]:
        return {each.task_id: each for each in self._updater.progress() if each.task_id in self._tasks}

    def warm(self, acceptable_lag: int) -> dict[TaskId, int]:
        """Those warm-ups that are near enough to become active, and how much of its changelogs each has."""
        known = self.progress()
        lags = {task_id: known[task_id].remaining for task_id in self.warm_ups if task_id in known}
        near = [task_id for task_id, lag in lags.items() if lag is not None and lag <= acceptable_lag]
        return {task_id: known[task_id].offset_sum for task_id in near}

    # coming and going

    def want(self, wanted: Mapping[TaskId, UpdateKind], promoted: Collection[TaskId]) -> None:
        """Close copies that are no longer wanted; those in `promoted` stay open until `promote`."""
        self._wanted = dict(wanted)
        self._next_limits_ms = 0  # a new plan: all members have just committed
        self._close([task_id for task_id in self._tasks if task_id not in wanted and task_id not in promoted])

    def open_missing(self) -> None:
        """Open what is wanted and not here. What another StreamThread still has is tried again with the next call."""
        for task_id in sorted(self._wanted.keys() - self._tasks.keys()):
            try:
                self._start(task_id, None)
            except TaskLockedError:
                continue

    def adopt(self, task_id: TaskId, engines: StoreEngines) -> None:
        """Make a copy of what was the active task: its databases stay open."""
        self._start(task_id, engines)
        log.info("active task becomes a standby", task=str(task_id))

    def promote(self, task_id: TaskId) -> StoreEngines | None:
        """Take a copy out, to become the active task: its engines, open; None if there is no copy."""
        if task_id not in self._tasks:
            return None
        self._updater.remove([task_id], SuspendReason.PROMOTED)
        log.info("standby becomes the active task", task=str(task_id))
        return self._tasks.pop(task_id).detach()

    def _start(self, task_id: TaskId, engines: StoreEngines | None) -> None:
        try:
            task = self._open(task_id, engines)
        except StoreDamagedError as error:
            self._wipe(task_id, error)
            task = self._open(task_id, None)
        try:
            committed = self._committed([task])
        except BaseException:
            _close_quietly(task)  # nobody has it yet; the next `open_missing` opens it again
            raise
        self._tasks[task_id] = task
        self._updater.add(task, self._wanted.get(task_id, UpdateKind.STANDBY), committed)

    def _open(self, task_id: TaskId, engines: StoreEngines | None) -> StandbyTask:
        task = self._factory.create_standby(task_id, engines)
        try:
            task.initialize()
        except BaseException:
            task.close()
            raise
        return task

    def restart(self, task: StandbyTask, error: TaskCorruptedError) -> None:
        """The StateUpdater could not go on with it: begin anew."""
        task_id = task.task_id
        del self._tasks[task_id]
        _close_quietly(task)
        self._wipe(task_id, error)
        self.open_missing()

    def suspend(self) -> None:
        """Close the copies, which stay wanted: `open_missing` opens them again."""
        self._close(list(self._tasks))

    def close_all(self) -> None:
        self._wanted = {}
        self._close(list(self._tasks))

    def _close(self, task_ids: Collection[TaskId]) -> None:
        if not task_ids:
            return
        self._updater.remove(task_ids)
        for task_id in task_ids:
            task = self._tasks.pop(task_id)
            self._factory.note_state(task)
            _close_quietly(task)
            log.info("standby task closed", task=str(task_id))

    # input topics that serve as changelogs

    def raise_limits(self, now_ms: int) -> None:
        """Let copies that are made of an input topic follow what was processed of it, now and then."""
        if now_ms < self._next_limits_ms:
            return
        following = [task for task in self._tasks.values() if task.source_changelogs]
        if following:
            self._updater.raise_limits(self._committed(following))
        interval_ms = max(MIN_LIMITS_INTERVAL_MS, self._factory.config.effective_commit_interval_ms)
        self._next_limits_ms = now_ms + interval_ms

    def _committed(self, tasks: Collection[StandbyTask]) -> dict[TopicPartition, int]:
        partitions = [
            TopicPartition(topic, task.task_id.partition) for task in tasks for topic in task.source_changelogs
        ]
        if not partitions:
            return {}
        return {partition: committed.offset for partition, committed in self._offsets.committed(partitions).items()}


def _close_quietly(task: StandbyTask) -> None:
    """A copy that cannot be closed in good order has lost nothing: the changelog has it all."""
    try:
        task.close()
    except StateStoreError as error:
        log.warning("database of a standby task could not be closed", task=str(task.task_id), error=str(error))
