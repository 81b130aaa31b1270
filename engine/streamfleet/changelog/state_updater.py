"""StateUpdater: brings the stores of tasks up to the end of their changelogs, beside the StreamThread.

A step machine over a Consumer and an Admin of its own: `run_once()` reads one batch and applies it. Tasks come in by `add`, and go
back by `take_restored` when every changelog has been read to the high watermark that was seen at the start, or by `take_failed`.
The end is the high watermark and not the last stable offset: what an open transaction has written may still become part of the
state, so the restore waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import structlog

from streamfleet.errors import StreamsError, TaskCorruptedError
from streamfleet.failpoints import Failpoints
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.ports import Admin, Consumer, OffsetKind, OffsetOutOfRange
from streamfleet.records import RawRecord

log = structlog.get_logger(__name__)

BATCH_RECORDS = 5000


class RestorableTask(Protocol):
    """What a StreamTask lets the StateUpdater do with it while it is being restored."""

    @property
    def task_id(self) -> TaskId: ...

    @property
    def source_changelogs(self) -> frozenset[str]: ...

    def restore_positions(self) -> dict[TopicPartition, int | None]: ...

    def restore(self, partition: TopicPartition, records: Iterable[RawRecord], last_offset: int) -> None: ...


@dataclass
class RestoreProgress:
    """How far one task is. `remaining` counts offsets, so transaction markers are in it."""

    task: RestorableTask
    ends: dict[TopicPartition, int]
    positions: dict[TopicPartition, int]
    restored_records: int = 0

    @property
    def remaining(self) -> int:
        return sum(max(0, end - self.positions[partition]) for partition, end in self.ends.items())

    @property
    def is_complete(self) -> bool:
        return all(self.positions[partition] >= end for partition, end in self.ends.items())


class StateUpdater:
    def __init__(self, consumer: Consumer, admin: Admin, failpoints: Failpoints) -> None:
        self._consumer = consumer
        self._admin = admin
        self._failpoints = failpoints
        self._progress: dict[TaskId, RestoreProgress] = {}
        self._owners: dict[TopicPartition, TaskId] = {}
        self._restored: list[RestorableTask] = []
        self._failed: list[tuple[RestorableTask, StreamsError]] = []

    @property
    def has_work(self) -> bool:
        return bool(self._progress)

    def progress(self) -> list[RestoreProgress]:
        return list(self._progress.values())

    def add(self, task: RestorableTask, committed: Mapping[TopicPartition, int]) -> None:
        """Restore a task whose stores are open. `committed` bounds changelogs that are input topics of the app."""
        positions = task.restore_positions()
        try:
            starts, ends = self._bounds(task, positions, committed)
        except TaskCorruptedError as error:
            self._failed.append((task, error))
            return
        progress = RestoreProgress(task, ends, starts)
        if progress.is_complete:
            self._restored.append(task)
            return
        unread = {partition: start for partition, start in starts.items() if start < ends[partition]}
        self._progress[task.task_id] = progress
        self._owners.update(dict.fromkeys(unread, task.task_id))
        self._consumer.incremental_assign(unread)
        log.info("restoring task", task=str(task.task_id), records_at_most=progress.remaining)

    def _bounds(
        self,
        task: RestorableTask,
        positions: Mapping[TopicPartition, int | None],
        committed: Mapping[TopicPartition, int],
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        if not positions:
            return {}, {}
        earliest = self._admin.list_offsets(positions, OffsetKind.EARLIEST)
        ends = self._admin.list_offsets(positions, OffsetKind.HIGH_WATERMARK)
        for partition, position in positions.items():
            if position is not None and not earliest[partition] <= position <= ends[partition]:
                raise _out_of_range(task.task_id, partition, position, earliest[partition], ends[partition])
            if partition.topic in task.source_changelogs:
                ends[partition] = min(ends[partition], committed.get(partition, 0))
        starts = {
            partition: earliest[partition] if position is None else position
            for partition, position in positions.items()
        }
        return starts, ends

    def remove(self, task_id: TaskId) -> RestorableTask | None:
        """Stop restoring a task; what was restored so far stays restored."""
        progress = self._progress.pop(task_id, None)
        if progress is not None:
            self._release(task_id)
            return progress.task
        self._failed = [(task, error) for task, error in self._failed if task.task_id != task_id]
        for task in self._restored:
            if task.task_id == task_id:
                self._restored.remove(task)
                return task
        return None

    def take_restored(self) -> list[RestorableTask]:
        taken, self._restored = self._restored, []
        return taken

    def take_failed(self) -> list[tuple[RestorableTask, StreamsError]]:
        taken, self._failed = self._failed, []
        return taken

    def run_once(self, wait_ms: int) -> None:
        """One batch of records, applied; waits at most that long for the first."""
        if not self._progress:
            return
        by_partition: dict[TopicPartition, list[RawRecord]] = {}
        for record in self._consumer.poll_batch(wait_ms, BATCH_RECORDS):
            by_partition.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
        for partition, records in by_partition.items():
            self._apply(partition, records)
        for event in self._consumer.take_events():
            if isinstance(event, OffsetOutOfRange):
                self._on_out_of_range(event)
        self._move_positions()

    def _apply(self, partition: TopicPartition, records: list[RawRecord]) -> None:
        task_id = self._owners.get(partition)
        if task_id is None:
            return  # removed while the batch was under way
        progress = self._progress[task_id]
        end = progress.ends[partition]
        wanted = [record for record in records if record.offset < end]
        if wanted:
            self._failpoints.hit("in_restore_batch")
            try:
                progress.task.restore(partition, wanted, wanted[-1].offset)
            except StreamsError as error:
                self._fail(task_id, error)
                return
            progress.restored_records += len(wanted)
        progress.positions[partition] = records[-1].offset + 1

    def _move_positions(self) -> None:
        """Markers of transactions are not delivered, so a partition may be at its end behind its last record."""
        for task_id, progress in list(self._progress.items()):
            for partition in progress.ends:
                if partition in self._owners:
                    progress.positions[partition] = max(
                        progress.positions[partition], self._consumer.position(partition)
                    )
            if progress.is_complete:
                del self._progress[task_id]
                self._release(task_id)
                self._restored.append(progress.task)
                log.info("task restored", task=str(task_id), records=progress.restored_records)

    def _on_out_of_range(self, event: OffsetOutOfRange) -> None:
        task_id = self._owners.get(event.partition)
        if task_id is None:
            return
        partition = event.partition
        earliest = self._admin.list_offsets([partition], OffsetKind.EARLIEST)[partition]
        end = self._progress[task_id].ends[partition]
        self._fail(task_id, _out_of_range(task_id, partition, event.offset, earliest, end))

    def _fail(self, task_id: TaskId, error: StreamsError) -> None:
        progress = self._progress.pop(task_id)
        self._release(task_id)
        self._failed.append((progress.task, error))

    def _release(self, task_id: TaskId) -> None:
        partitions = [partition for partition, owner in self._owners.items() if owner == task_id]
        for partition in partitions:
            del self._owners[partition]
        self._consumer.incremental_unassign(partitions)

    def close(self) -> None:
        self._consumer.close()


def _out_of_range(
    task_id: TaskId, partition: TopicPartition, position: int, earliest: int, end: int
) -> TaskCorruptedError:
    return TaskCorruptedError(
        f"changelog {partition} has offsets {earliest} to {end}, but the state of task {task_id} goes on from {position}",
        hint="the task's local state is wiped and restored from what the changelog still has",
    )
