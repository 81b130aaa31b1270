"""What a StreamThread tells about itself: its phase, its tasks, how far each has read and restored.

A StreamThread writes its status now and then, between two steps, and leaves it where others may read it
(`StreamThread.status`). Nobody reads its tasks, queues or clients from another thread: those change, and end, while
they are looked at. A thread that makes no steps writes no status either, which is why a status carries its time.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from streamfleet.changelog.progress import TaskProgress, UpdateKind
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.metrics import TaskCounts, ThreadCounts
from streamfleet.ports import Consumer
from streamfleet.task.stream_task import StreamTask
from streamfleet.thread.task_manager import TaskManager

STATUS_INTERVAL_MS = 250


class InputStatus(msgspec.Struct, frozen=True):
    """One input partition of a running task. `lag_records` is None until something was fetched."""

    topic: str
    partition: int
    position: int
    """Offset of the next record to process."""
    lag_records: int | None
    committed: int | None = None
    """Offset that a new owner would go on from: what was committed, here or before. None: nothing was yet."""


class RestoreStatus(msgspec.Struct, frozen=True):
    """How far a restore is. The rate is the mean since it began; without one there is no estimate."""

    remaining_records: int
    restored_records: int
    records_per_second: float | None
    eta_seconds: float | None
    remaining_bytes: int | None = None
    """An estimate, by the size of what was read so far."""


class TaskStatus(msgspec.Struct, frozen=True):
    id: str
    phase: str
    uncommitted_bytes: int
    inputs: tuple[InputStatus, ...]
    restore: RestoreStatus | None
    processed_records: int = 0
    """Since the process began, like the seconds: what happened between two looks is the difference."""
    busy_seconds: float = 0.0


class StandbyStatus(msgspec.Struct, frozen=True):
    """A copy of a task's state. `lag_records` counts changelog offsets, and is None until something was fetched. The rate is that
    at which it catches up, the mean since this was first seen; a copy that does not catch up has no estimate.
    """

    id: str
    kind: str
    """standby, or warmup: then it is to become active here."""
    lag_records: int | None
    restored_records: int
    records_per_second: float | None
    eta_seconds: float | None


class ThreadStatus(msgspec.Struct, frozen=True):
    name: str
    phase: str
    written_at_ms: int
    """By the monotonic clock of the process."""
    tasks: tuple[TaskStatus, ...] = ()
    standbys: tuple[StandbyStatus, ...] = ()
    waits_for_disk: str | None = None
    """What the disk did not take: the tasks are closed until it has room again."""
    activity_seconds: dict[str, float] = {}
    """Where its time went since it began: restore, poll (mostly waiting), process, punctuate, commit."""
    leads_group: bool = False
    """Whether it planned for the group in the last rebalance."""


class StatusWriter:
    """Makes the statuses of one StreamThread and remembers when each restore began, for its rate."""

    def __init__(self, name: str, tasks: TaskManager, consumer: Consumer, counts: ThreadCounts | None = None) -> None:
        self._name = name
        self._tasks = tasks
        self._consumer = consumer
        self._counts = counts or ThreadCounts()
        self._began: dict[TaskId, tuple[int, int]] = {}

    def write(
        self, phase: str, now_ms: int, waits_for_disk: str | None = None, *, leads_group: bool = False
    ) -> ThreadStatus:
        restoring = {progress.task_id: progress for progress in self._tasks.restoring()}
        copies = self._tasks.standbys.progress()
        self._began = {
            task_id: began for task_id, began in self._began.items() if task_id in restoring or task_id in copies
        }
        tasks = tuple(
            self._task(task, self._tasks.inputs_of(task), restoring.get(task.task_id), now_ms)
            for _, task in sorted(self._tasks.tasks.items())
        )
        standbys = tuple(
            self._standby(task_id, kind, copies.get(task_id), now_ms)
            for task_id, kind in sorted(self._tasks.standbys.wanted.items())
        )
        return ThreadStatus(self._name, phase, now_ms, tasks, standbys, waits_for_disk, self._activities(), leads_group)

    def _activities(self) -> dict[str, float]:
        spent: list[tuple[str, float]] = [
            *self._counts.activity_seconds.items(),
            ("commit", self._counts.commit_latency.sum_seconds),
        ]
        return {activity: round(seconds, 6) for activity, seconds in spent}

    def _standby(self, task_id: TaskId, kind: UpdateKind, progress: TaskProgress | None, now_ms: int) -> StandbyStatus:
        if progress is None or progress.remaining is None:
            return StandbyStatus(str(task_id), kind.value, None, 0, None, None)
        rate, eta = self._pace(task_id, progress.remaining, now_ms)
        return StandbyStatus(str(task_id), kind.value, progress.remaining, progress.restored_records, rate, eta)

    def _task(
        self, task: StreamTask, inputs: Sequence[TopicPartition], progress: TaskProgress | None, now_ms: int
    ) -> TaskStatus:
        counts = self._counts.tasks.get(task.task_id, TaskCounts())
        return TaskStatus(
            id=str(task.task_id),
            phase=task.phase.value,
            uncommitted_bytes=task.uncommitted_bytes,
            inputs=tuple(self._input(task, partition) for partition in sorted(inputs)),
            restore=None if progress is None else self._restore(task.task_id, progress, now_ms),
            processed_records=counts.processed_records,
            busy_seconds=round(counts.busy_seconds, 6),
        )

    def _input(self, task: StreamTask, partition: TopicPartition) -> InputStatus:
        # What is buffered was read, but not processed: to whoever waits for results it is part of the lag.
        buffered = task.buffered_records(partition)
        lag = self._consumer.lag_records(partition)
        position = self._consumer.position(partition) - buffered
        stores = task.committed_stores
        last = None if stores is None or stores.position is None else stores.position.get(partition)
        return InputStatus(
            partition.topic,
            partition.partition,
            position,
            None if lag is None else lag + buffered,
            None if last is None else last + 1,
        )

    def _restore(self, task_id: TaskId, progress: TaskProgress, now_ms: int) -> RestoreStatus:
        remaining = progress.remaining or 0
        rate, eta = self._pace(task_id, remaining, now_ms)
        return RestoreStatus(remaining, progress.restored_records, rate, eta, progress.remaining_bytes)

    def _pace(self, task_id: TaskId, remaining: int, now_ms: int) -> tuple[float | None, float | None]:
        """Records per second by which less is left, and seconds until nothing is."""
        began_ms, remaining_then = self._began.setdefault(task_id, (now_ms, remaining))
        elapsed_seconds = (now_ms - began_ms) / 1000
        done = remaining_then - remaining
        if done <= 0 or elapsed_seconds <= 0:
            return None, None
        rate = done / elapsed_seconds
        return round(rate, 1), round(remaining / rate, 1)
