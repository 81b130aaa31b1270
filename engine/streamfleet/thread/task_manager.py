"""TaskManager: which tasks this member has, and how far each is: restoring, running, or on its way out. Driven by StreamThread.
Copies (standbys and warm-ups) are in standby_manager.py; here they become active tasks, and active tasks become copies.

The order in which a task is taken over is law: fence the former owner (commit.open), read the committed offsets (stable ones only),
restore, then process. The other way round, a commit of the former owner could slip in between.

Before tasks are opened, and before state is wiped that does not fit its changelog, the ids of the internal topics are compared:
what was made anew under the old name may be empty, and state must not be thrown away for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import structlog

from streamfleet.changelog.progress import TaskProgress, UpdateKind
from streamfleet.changelog.restorable_task import RestorableTask
from streamfleet.changelog.state_updater import StateUpdater
from streamfleet.commit.api import Commit, GroupOffsets
from streamfleet.errors import (
    StateStoreError,
    StoreDamagedError,
    StreamsError,
    TaskCorruptedError,
    TaskLockedError,
)
from streamfleet.failpoints import Failpoints
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.metrics import ThreadCounts
from streamfleet.ports import Admin, Consumer
from streamfleet.records import RawRecord
from streamfleet.task.offsets import CommittedOffset
from streamfleet.task.phases import TaskPhase
from streamfleet.task.standby_task import StandbyTask
from streamfleet.task.store_engines import StoreEngines
from streamfleet.task.stream_task import StreamTask
from streamfleet.thread.input_positions import InputPositions
from streamfleet.thread.standby_manager import StandbyManager
from streamfleet.thread.task_factory import TaskFactory

log = structlog.get_logger(__name__)

PAUSE_FACTOR = 10
"""At how many times `buffered.records.per.partition` a partition is paused; it is resumed at one time."""


class WantedTasks(msgspec.Struct, frozen=True):
    """What a plan gives a member. Standbys and warm-ups are both run as copies; a warm-up is to become active here."""

    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()
    warmup: frozenset[TaskId] = frozenset()

    def copies(self) -> dict[TaskId, UpdateKind]:
        kinds = dict.fromkeys(self.standby, UpdateKind.STANDBY) | dict.fromkeys(self.warmup, UpdateKind.WARMUP)
        return {task_id: kind for task_id, kind in kinds.items() if task_id not in self.active}


class TaskManager:
    def __init__(
        self,
        factory: TaskFactory,
        consumer: Consumer,
        admin: Admin,
        updater: StateUpdater,
        commit: Commit,
        offsets: GroupOffsets,
        failpoints: Failpoints,
        counts: ThreadCounts | None = None,
    ) -> None:
        self._factory = factory
        self._consumer = consumer
        self._admin = admin
        self._updater = updater
        self._commit = commit
        self._offsets = offsets
        self._failpoints = failpoints
        self._counts = counts or ThreadCounts()
        self._positions = InputPositions(factory, admin)
        self._damaged: dict[TaskId, StoreDamagedError] = {}
        self._tasks: dict[TaskId, StreamTask] = {}
        self._owners: dict[TopicPartition, StreamTask] = {}
        self._committed: dict[TaskId, dict[TopicPartition, CommittedOffset]] = {}
        self._paused: set[TopicPartition] = set()
        self._wanted: frozenset[TaskId] = frozenset()
        self._locked: set[TaskId] = set()
        self._restored: list[StreamTask] = []
        """Complete, and not running yet."""
        self._failed: tuple[RestorableTask, StreamsError] | None = None
        """To be dealt with."""
        self.standbys = StandbyManager(factory, updater, offsets, self._wipe)
        self.has_lost_state = False
        """An active task was wiped: a copy elsewhere may be nearer. Taken back by who has told the group."""
        self._processed: dict[TopicPartition, int] = {}
        self._next_purge_ms = 0

    @property
    def tasks(self) -> Mapping[TaskId, StreamTask]:
        """All tasks of this member, restoring ones too."""
        return self._tasks

    def directories(self) -> set[Path]:
        """Where the state of this member's tasks is, those included that it is about to take over."""
        here = self._wanted | self._tasks.keys() | self.standbys.wanted.keys()
        return {self._factory.task_directory(task_id) for task_id in here}

    @property
    def running(self) -> list[StreamTask]:
        return [task for task in self._tasks.values() if task.phase is TaskPhase.RUNNING]

    @property
    def is_torn(self) -> bool:
        """Whether one was cut off half way, so that all have to go back to the last commit."""
        return any(task.is_torn for task in self._tasks.values())

    @property
    def is_restoring(self) -> bool:
        return self._updater.is_restoring

    @property
    def all_running(self) -> bool:
        return self._wanted <= self._tasks.keys() and all(t.phase is TaskPhase.RUNNING for t in self._tasks.values())

    def inputs_of(self, task: StreamTask) -> list[TopicPartition]:
        """The partitions that are read for a task; none while it is restoring."""
        return [partition for partition, owner in self._owners.items() if owner is task]

    @property
    def owned(self) -> frozenset[TaskId]:
        """What nobody else may have yet: the tasks that are here, and those that are ours but could not be opened so far."""
        return self._wanted | self._tasks.keys()

    def restoring(self) -> list[TaskProgress]:
        """How far each active task is that is being restored."""
        return [progress for progress in self._updater.progress() if progress.task_id in self._tasks]

    def lag_records(self, task_id: TaskId) -> int | None:
        """How much of its changelogs a task that is being restored, or a copy, has still to read, as of the StateUpdater's last
        step; None: not known. May be asked by any thread.
        """
        is_active = task_id in self._tasks
        for progress in self._updater.progress():
            if progress.task_id == task_id and (progress.kind is UpdateKind.ACTIVE) is is_active:
                return progress.remaining
        return None

    def offset_sums(self) -> dict[TaskId, int]:
        """How much of its changelogs each open task has."""
        with_updater = self._updater.offset_sums()
        running = {task.task_id: sum(at or 0 for at in task.restore_positions().values()) for task in self.running}
        return running | with_updater

    # assignment

    def assign(self, wanted: WantedTasks, *, opens: bool = True) -> None:
        """Have exactly these tasks: the others are committed and given up first, new ones begin to restore. A task that is here as
        a copy and becomes active, or the other way round, keeps its open databases.

        May be called again after it has failed half way, and goes on then. Unless it `opens`, what is missing is left to `rewind`.
        """
        self._factory.check_topics()
        self._wanted = frozenset(wanted.active)
        self._locked &= self._wanted
        self.standbys.want(wanted.copies(), promoted=self._wanted)
        self.release([task_id for task_id in self._tasks if task_id not in self._wanted])
        if opens:
            self._take_over_missing()
            self.standbys.open_missing()
        self._failpoints.hit("after_assign")

    def release(self, task_ids: Iterable[TaskId]) -> None:
        """Commit tasks and close them cleanly, or make copies of them where copies are wanted."""
        leaving = [self._tasks[task_id] for task_id in task_ids]
        if not leaving:
            return
        # One transaction spans all tasks of the thread, so all of them are committed, not only those that leave.
        self._commit.commit(self.running)
        for task in leaving:
            self._forget(task)
            if task.task_id in self.standbys.wanted:
                self._make_standby(task)
            else:
                self._close(task)

    def _make_standby(self, task: StreamTask) -> None:
        del self._tasks[task.task_id]
        try:
            task.suspend()
        except BaseException:
            self._close_stores(task)
            raise
        self.standbys.adopt(task.task_id, task.detach())

    def drop_all(self) -> None:
        """Somebody else may own the tasks by now: close them without committing anything. Copies are nobody's, and stay."""
        self._wanted = frozenset()
        self._locked.clear()
        self._discard_all()

    def abandon(self) -> None:
        """The transaction is lost, and with it everything since the last commit: close the tasks at once, so that no later
        commit can take offsets for results that nobody will see. They are still ours; `rewind` opens them again.
        """
        self._discard_all()

    def rewind(self) -> None:
        """After `abandon`: go back to the committed offsets and begin again.

        May be called again after it has failed half way.
        """
        self._discard_all()
        self._factory.check_topics()
        for task_id in list(self._damaged):
            self._wipe(task_id, self._damaged[task_id])  # asks the broker, so it is forgotten only behind it
            del self._damaged[task_id]
        self._take_over_missing()

    def _discard_all(self) -> None:
        self._commit.abort()
        self._updater.remove(self._tasks.keys())
        for task in list(self._tasks.values()):
            self._forget(task)
            self._discard(task)
            self._close(task)

    def _take_over_missing(self) -> None:
        task_ids = sorted(self._wanted - self._tasks.keys() - self._locked)
        if not task_ids:
            return
        self._commit.open()
        inputs = {task_id: self._factory.inputs(task_id) for task_id in task_ids}
        committed = self._offsets.committed([p for partitions in inputs.values() for p in partitions])
        for task_id in task_ids:
            self._committed[task_id] = {p: committed[p] for p in inputs[task_id] if p in committed}
            self._start_unless_locked(task_id)

    def _start_unless_locked(self, task_id: TaskId) -> None:
        """Another StreamThread of this process may not have closed its copy of the task yet; then `restore` tries again."""
        try:
            self._start(task_id)
        except TaskLockedError as error:
            if task_id not in self._locked:
                log.info("task waits for its state", task=str(task_id), why=str(error))
            self._locked.add(task_id)
        else:
            self._locked.discard(task_id)

    def _start(self, task_id: TaskId) -> None:
        try:
            task = self._open(task_id, self.standbys.promote(task_id))
        except StoreDamagedError as error:
            self._wipe(task_id, error)
            task = self._open(task_id, None)
        self._tasks[task_id] = task
        committed = {p: offset.offset for p, offset in self._committed[task_id].items()}
        self._updater.add(task, UpdateKind.ACTIVE, committed)

    def _open(self, task_id: TaskId, engines: StoreEngines | None) -> StreamTask:
        task = self._factory.create(task_id, self._commit.producer, self._consumer.lag_records, engines)
        try:
            task.initialize()
        except BaseException:
            task.suspend()
            task.close()  # a database that stays open could not be opened, nor wiped, again
            raise
        return task

    # full disks and damaged state

    def has_room(self) -> bool:
        """Whether the disk with the tasks' state takes something."""
        return self._factory.directory.has_room()

    def note_damage(self, error: StoreDamagedError) -> bool:
        """The next rewind wipes the task whose database this is about; False if none of ours is."""
        for task_id in self._tasks:
            if self._factory.task_directory(task_id) == error.directory:
                self._damaged[task_id] = error
                return True
        return False

    def restart_copy(self, task: StandbyTask, error: StoreDamagedError) -> None:
        """Wipe a copy whose files are damaged, and begin with it anew, if it is still here."""
        if self.standbys.tasks.get(task.task_id) is task:
            self._factory.check_topics()  # asks the broker, so it comes first
            self._updater.remove([task.task_id])
            self._restart_copy(task, error)

    def _restart_copy(self, task: StandbyTask, error: TaskCorruptedError) -> None:
        if self.standbys.tasks.get(task.task_id) is task:
            self.standbys.restart(task, error)

    def _wipe(self, task_id: TaskId, error: TaskCorruptedError) -> None:
        """Delete a task's local state, which must be closed, unless that would lose rows that nothing can restore."""
        self._factory.check_topics()
        self._delete_state(task_id, error)

    def _delete_state(self, task_id: TaskId, error: TaskCorruptedError) -> None:
        unlogged = self._factory.unlogged_stores(task_id)
        if unlogged:
            raise StateStoreError(
                f"{error.fact}; task {task_id} is not wiped, because no changelog can restore {', '.join(unlogged)}",
                hint="repair the disk, or remove the directory to go on without those rows",
            ) from error
        log.warning("task corrupted, its state is wiped and restored", task=str(task_id), error=str(error))
        self._counts.corrupted_tasks += 1
        is_readable = not isinstance(error, StoreDamagedError)
        # What is readable and active is compared with what comes back: a truncated changelog does not bring everything.
        self._factory.wipe(task_id, keeps_former=is_readable and task_id in self._wanted, is_outgrown=is_readable)
        self.has_lost_state |= task_id in self._wanted

    # restoring

    def restore(self) -> bool:
        """Let tasks run that the StateUpdater is done with; True if there were any.

        May be called again after a broker has not answered, and goes on then.
        """
        self._restored += [self._tasks[task.task_id] for task in self._updater.take_restored()]
        has_restored = bool(self._restored)
        while self._restored:
            self._run(self._restored[0])  # stays in the list until it runs
        while self._take_failed() is not None:
            self._on_failed()
        for task_id in list(self._locked):
            self._start_unless_locked(task_id)
        self.standbys.open_missing()
        return has_restored

    def _take_failed(self) -> tuple[RestorableTask, StreamsError] | None:
        self._failed = self._failed or self._updater.take_failed()
        return self._failed

    def _on_failed(self) -> None:
        assert self._failed is not None
        task, error = self._failed
        if not isinstance(error, TaskCorruptedError):
            self._failed = None
            raise error
        self._factory.check_topics()  # asks the broker, so it comes first
        self._failed = None
        if isinstance(task, StandbyTask):
            self._restart_copy(task, error)
        elif self._tasks.get(task.task_id) is task:
            self._on_corrupted(self._tasks[task.task_id], error)

    def _run(self, task: StreamTask) -> None:
        committed = self._committed[task.task_id]
        positions = self._start_positions(task.task_id, committed)  # asks the broker, so it comes first
        self._restored.remove(task)
        del self._committed[task.task_id]
        self._count_lost_rows(task)
        task.complete_restoration(committed)
        self._owners.update(dict.fromkeys(positions, task))
        self._consumer.incremental_assign(positions)
        log.info("task running", task=str(task.task_id))

    def _count_lost_rows(self, task: StreamTask) -> None:
        try:
            lost = self._factory.count_lost_rows(task)
        except StateStoreError as error:
            log.warning("lost rows could not be counted", task=str(task.task_id), error=str(error))
            return
        if lost:
            self._counts.lost_rows += lost
            log.error(
                "rows of local state are lost: the changelog no longer has them", task=str(task.task_id), rows=lost
            )

    def _start_positions(
        self, task_id: TaskId, committed: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, int]:
        positions = {partition: offset.offset for partition, offset in committed.items()}
        missing = [partition for partition in self._factory.inputs(task_id) if partition not in positions]
        for partition in missing:
            positions[partition] = self._positions.beginning(task_id, partition)
        return positions

    def _on_corrupted(self, task: StreamTask, error: TaskCorruptedError) -> None:
        committed = self._committed[task.task_id]
        self._discard(task)
        self._close(task)
        self._delete_state(task.task_id, error)
        self._committed[task.task_id] = committed
        self._start(task.task_id)

    # records

    def processable_records(self) -> int:
        """How many records are buffered by tasks that can go on."""
        return sum(task.all_buffered_records for task in self.running if task.has_records and task.is_processable())

    def add_records(self, records: Iterable[RawRecord], limit: int) -> None:
        """Hand records to their tasks.

        Tasks that can go on work off what they have before more is polled. A partition is paused only where its task waits for
        another input, and then late: librdkafka throws away what it has fetched of a paused partition, up to 20,000 records, and
        fetches it again when it is resumed.
        """
        by_partition = _by_partition(records)
        full = []
        for partition, batch in by_partition.items():
            task = self._owners.get(partition)
            if (
                task is not None
                and task.add_records(partition, batch) > limit * PAUSE_FACTOR
                and not task.is_processable()
            ):
                full.append(partition)
        if full:
            self._consumer.pause(full)
            self._paused.update(full)

    def resume_drained(self, limit: int) -> None:
        drained = [p for p in self._paused if self._owners[p].buffered_records(p) <= limit]
        if drained:
            self._consumer.resume(drained)
            self._paused.difference_update(drained)

    def note_positions(self) -> None:
        """Tell tasks how far their inputs were read: markers and aborted records are passed over without being handed out."""
        for partition, task in self._owners.items():
            task.advance(partition, self._consumer.position(partition))

    def was_processed_elsewhere(self, partition: TopicPartition, offset: int) -> bool:
        """Whether somebody has committed more of an input than was read of it here: then these tasks have another owner, who may
        also have deleted what this member wanted to read next.
        """
        if partition not in self._owners:
            return False
        committed = self._offsets.committed([partition]).get(partition)
        return committed is not None and committed.offset > offset

    def go_on_behind_gap(self, partition: TopicPartition, offset: int) -> None:
        """An offset that was to be read is gone. Only a source that says where to go on then does go on; the gap is counted."""
        task = self._owners.get(partition)
        if task is None:
            return
        self._factory.check_topics()
        passed = self._positions.behind_gap(task.task_id, partition, offset)
        log.warning("input goes on behind a gap", task=str(task.task_id), offset=passed.target, reason=passed.gap.fact)
        for count, why in (
            (passed.deleted, "deleted before it was processed"),
            (passed.skipped, "skipped behind a gap"),
        ):
            if count:
                self._factory.metrics.record_dropped(passed.source, why, count)
        self._consumer.seek(partition, passed.target)
        task.skip_to(partition, passed.target)

    # repartition topics

    def purge(self, committed: Mapping[TopicPartition, CommittedOffset], now_ms: int) -> None:
        """Delete what was processed from repartition topics, now and then: nothing else ever deletes it."""
        topics = self._factory.repartition_topics
        self._processed.update({p: offset.offset for p, offset in committed.items() if p.topic in topics})
        if not self._processed or now_ms < self._next_purge_ms:
            return
        self._next_purge_ms = now_ms + self._factory.config.repartition_purge_interval_ms
        processed, self._processed = self._processed, {}
        try:
            self._admin.delete_records(processed)
        except StreamsError as error:
            log.warning("processed records could not be deleted from repartition topics", error=str(error))

    # letting go

    def close(self) -> None:
        """No active task is left: close the copies, and what has restored them."""
        try:
            self.standbys.close_all()
        finally:
            self._updater.close()

    def _forget(self, task: StreamTask) -> None:
        """No more records for a task."""
        self._updater.remove([task.task_id])
        if task in self._restored:
            self._restored.remove(task)
        partitions = [partition for partition, owner in self._owners.items() if owner is task]
        for partition in partitions:
            del self._owners[partition]
            self._paused.discard(partition)
        if partitions:
            self._consumer.incremental_unassign(partitions)
        self._committed.pop(task.task_id, None)

    @staticmethod
    def _discard(task: StreamTask) -> None:
        try:
            task.suspend()
        except StreamsError as error:
            # User code may fail on the way out, too. The task is dropped for another reason, which must not be hidden.
            log.warning("operators of a dropped task failed to close", task=str(task.task_id), error=str(error))
        task.discard()

    def _close(self, task: StreamTask) -> None:
        self._tasks.pop(task.task_id, None)
        try:
            if task.phase is not TaskPhase.SUSPENDED:
                task.suspend()
            self._failpoints.hit("before_store_close")
        finally:
            self._close_stores(task)  # a database that stays open could not be opened again
        log.info("task closed", task=str(task.task_id))

    def _close_stores(self, task: StreamTask) -> None:
        """A disk that takes no more must not keep the other tasks from being closed. Nothing is lost by it: what was not
        written is restored from the changelogs, because the offset that goes with it was not written either.
        """
        self._factory.note_state(task)
        try:
            task.close()
        except StateStoreError as error:
            log.warning("database of a task could not be closed", task=str(task.task_id), error=str(error))


def _by_partition(records: Iterable[RawRecord]) -> dict[TopicPartition, list[RawRecord]]:
    """Records come in runs of one partition: only where the next run begins a partition has to be looked up."""
    grouped: dict[TopicPartition, list[RawRecord]] = {}
    topic, number = None, -1
    run: list[RawRecord] = []
    for record in records:
        if record.partition != number or record.topic != topic:
            topic, number = record.topic, record.partition
            run = grouped.setdefault(TopicPartition(topic, number), [])
        run.append(record)
    return grouped
