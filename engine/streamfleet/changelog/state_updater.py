"""StateUpdater: brings the stores of tasks up to date from their changelogs, beside the StreamThread: those of tasks that are to
run, until they are complete, and those of copies (standbys and warm-ups), for as long as they are copies.

Two threads call it. The StreamThread entrusts tasks, asks for them back, and takes those that are restored or have failed;
`run_once()`, called by a thread of the worker (or by a test, by hand), does one bounded step and says after how many milliseconds
the next one is due. What the two threads share is in updater_mailbox.py; which partition is read for whom, in changelog_reader.py.

The end of a restore is the high watermark that was seen at its start, not the last stable offset: what an open transaction has
written may still become part of the state, so the restore waits for it; but not for ever (stall_watch.py). A changelog that may not
be read, or has a damaged record, ends its task at once. Copies are not waited for by anybody: what keeps one back is said, and no
more, but for a missing permission.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence

import structlog

from streamfleet.changelog.changelog_reader import Batch, ChangelogReader
from streamfleet.changelog.listeners import SuspendReason, UpdateListeners
from streamfleet.changelog.progress import TaskProgress, Update, UpdateKind
from streamfleet.changelog.restorable_task import RestorableTask
from streamfleet.changelog.restore_rate import RestoreRate
from streamfleet.changelog.stall_watch import OffsetReader, Reading, StallWatch
from streamfleet.changelog.update_announcer import UpdateAnnouncer
from streamfleet.changelog.updater_mailbox import Entrusted, UpdaterMailbox
from streamfleet.errors import StreamsError, TaskCorruptedError
from streamfleet.failpoints import Failpoints
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.kafka.client_errors import AccessDeniedError, BrokerUnavailableError, PartitionUnreadableError
from streamfleet.kafka.outage import Outage
from streamfleet.kafka.patience import PatientClock
from streamfleet.kafka.read_troubles import CountStall, ReadTroubles, count_nothing
from streamfleet.metrics import ThreadCounts
from streamfleet.ports import (
    Admin,
    ClientTrouble,
    Consumer,
    OffsetKind,
    OffsetOutOfRange,
    PartitionUnavailable,
)
from streamfleet.records import RawRecord

log = structlog.get_logger(__name__)

BATCH_RECORDS = 5000
MEASURED_RECORDS = 20
"""Of a batch, for an estimate of its bytes."""
POLL_WAIT_MS = 50
"""How long a step waits for records of an active task. Bounds how long the StreamThread waits for a task it wants back, too."""
COPY_INTERVAL_MS = 100
"""Copies are read that often: a batch with the records of a tenth of a second costs little more than one with a single record."""
IDLE_WAIT_MS = 10_000
MAX_RATE_WAIT_MS = 500
"""The rate may be changed meanwhile."""
LOOK_INTERVAL_MS = 200
KIND = "changelog"
LET_GO_SECONDS = 60.0
"""A batch takes milliseconds; only a disk that hangs takes longer."""


def _nobody_waits() -> None:
    pass


class StateUpdater:
    """`task_timeout_ms`: how long a broker may be away, or a changelog give nothing, before that is an error. `cluster` is asked
    why it gives nothing, and must answer soon; None: `admin` is.
    """

    def __init__(
        self,
        consumer: Consumer,
        admin: Admin,
        failpoints: Failpoints,
        clock: PatientClock,
        *,
        task_timeout_ms: int = 300_000,
        rate: RestoreRate | None = None,
        listeners: UpdateListeners | None = None,
        counts: ThreadCounts | None = None,
        wake: Callable[[], None] = _nobody_waits,
        cluster: OffsetReader | None = None,
        count_stall: CountStall = count_nothing,
        outage: Outage | None = None,
    ) -> None:
        self._reader = ChangelogReader(consumer)
        self._admin = admin
        self._failpoints = failpoints
        self._clock = clock
        self._task_timeout_ms = task_timeout_ms
        self._rate = rate or RestoreRate(clock)
        self._announcer = UpdateAnnouncer(listeners or UpdateListeners())
        self._counts = counts or ThreadCounts()
        self._mailbox = UpdaterMailbox(wake)
        self._updates: dict[TaskId, Update] = {}
        self._next_look_ms = clock.now_ms()
        self._outage = outage or Outage()
        self._away_since_ms: int | None = None
        self._out_of_range: deque[OffsetOutOfRange] = deque()
        """To be dealt with."""
        self._troubles = ReadTroubles(KIND, clock.now_ms, timeout_ms=None, count_stall=count_stall)
        self._stalls = StallWatch(
            KIND, clock.now_ms, cluster or admin, self._troubles, timeout_ms=task_timeout_ms, count_stall=count_stall
        )
        self.over = False
        """Whether nothing is left to do: closed."""
        self.is_stepped_elsewhere = False
        """Set by who steps it in a thread of its own. Without one, whoever asks for a task back makes the step for it."""

    # --- what the StreamThread calls ---

    def add(self, task: RestorableTask, kind: UpdateKind, committed: Mapping[TopicPartition, int]) -> None:
        """Entrust a task whose stores are open. `committed` bounds changelogs that are input topics of the app."""
        positions = task.restore_positions()
        limits = {p: committed.get(p, 0) for p in positions if p.topic in task.source_changelogs}
        self._mailbox.entrust(Entrusted(task, kind, positions, limits))

    def remove(self, task_ids: Collection[TaskId], reason: SuspendReason = SuspendReason.MIGRATED) -> None:
        """Have tasks back, wherever they are; what was restored so far stays restored. Waits for the batch under way."""
        self._mailbox.ask_back(task_ids, reason)
        if not self.is_stepped_elsewhere:
            self._let_go()
        if not self._mailbox.wait_until_back(task_ids, LET_GO_SECONDS):
            raise StreamsError(
                f"the state updater has not let go of tasks {', '.join(map(str, sorted(task_ids)))} for {LET_GO_SECONDS:g} s",
                hint="a write to the disk hangs; check the disk of state.dir",
            )

    def take_restored(self) -> list[RestorableTask]:
        """Tasks that are complete. Raises what has ended the updater."""
        if self._mailbox.failure is not None:
            raise _ending(self._mailbox.failure) from self._mailbox.failure
        return self._mailbox.take_restored()

    def take_failed(self) -> tuple[RestorableTask, StreamsError] | None:
        """One that cannot be restored, and why; None if there is no more."""
        return self._mailbox.take_failed()

    @property
    def is_restoring(self) -> bool:
        """Whether an active task is here, or waits to be taken."""
        return self._mailbox.has_of_kind(UpdateKind.ACTIVE)

    def progress(self) -> tuple[TaskProgress, ...]:
        """How far each task is, as of the last step."""
        return self._mailbox.progress

    def offset_sums(self) -> dict[TaskId, int]:
        """How much of its changelogs each entrusted task has."""
        return self._mailbox.offset_sums()

    def raise_limits(self, committed: Mapping[TopicPartition, int]) -> None:
        """More of the input topics was processed: copies that are made of them may follow."""
        self._mailbox.set_limits(committed)

    def pause(self, paused: bool) -> None:
        self._mailbox.set_paused(paused)

    def close(self) -> None:
        """No task is left: close the consumer, with the next step."""
        self._mailbox.close()
        if not self.is_stepped_elsewhere:
            self.run_once()

    @property
    def is_closing(self) -> bool:
        return self._mailbox.is_closing

    # --- what the updater's thread calls ---

    def run_once(self) -> int:
        """One bounded step; after how many milliseconds the next one is due."""
        if self._mailbox.is_closing:
            self._let_go()
            self._reader.close()
            self._outage.gives_up(self)
            self.over = True
            return 0
        try:
            wait_ms = self._step()
            self._away_since_ms = None
            self._outage.answers(self)
        except BrokerUnavailableError as error:
            self._endure(error)
            wait_ms = COPY_INTERVAL_MS
        return wait_ms

    def fail(self, failure: Exception) -> None:
        """There will be no more steps: tell the StreamThread why."""
        self._outage.gives_up(self)
        self._mailbox.fail(failure)

    def _endure(self, error: BrokerUnavailableError) -> None:
        """The broker does not answer. Everything in a step can be done again, so it is, until the time-out of a task."""
        now_ms = self._clock.now_ms()
        if self._away_since_ms is None:
            self._away_since_ms = now_ms
        away_ms = now_ms - self._away_since_ms
        self._outage.silent(self, "restoring", str(error), waited_ms=away_ms)
        if away_ms >= self._task_timeout_ms:
            raise error

    def _step(self) -> int:
        self._let_go()
        self._take_new()
        self._reader.raise_bounds(self._mailbox.take_limits())
        if not self._updates or self._mailbox.is_paused:
            self._stalls.restart()
            self._publish()
            return IDLE_WAIT_MS
        wait_ms = self._rate.wait_ms()
        if wait_ms == 0:
            wait_ms = self._update()
        else:
            self._stalls.restart()
        self._publish()
        return min(wait_ms, MAX_RATE_WAIT_MS)

    def _update(self) -> int:
        """Read one batch and apply it."""
        has_active = any(update.is_active for update in self._updates.values())
        with self._counts.timed("restore"):
            most = self._rate.batch_records(BATCH_RECORDS)
            count, batches = self._reader.poll(POLL_WAIT_MS if has_active else 0, most)
            for batch in batches:
                self._apply(batch)
        events = self._reader.take_events()
        for event in events:
            if not isinstance(event, OffsetOutOfRange):
                self._on_trouble(event)
        lost = [event for event in events if isinstance(event, OffsetOutOfRange)]
        # What is told of a partition behind a damaged record is not believed.
        self._out_of_range += [event for event in lost if not self._reader.is_resting(event.partition)]
        while self._out_of_range:
            self._on_out_of_range(self._out_of_range.popleft())
        self._finish()
        self._look_for_stalls()
        return 0 if has_active or count >= most else COPY_INTERVAL_MS

    def _apply(self, batch: Batch) -> None:
        update, records = batch.update, batch.records
        self._failpoints.hit("in_restore_batch")
        try:
            update.task.restore(batch.partition, records, records[-1].offset)
        except StreamsError as error:
            self._fail(update, error)
            return
        update.restored_records += len(records)
        self._counts.restored_records += len(records)
        if self._rate.bytes_per_second:
            size: float = _bytes_of(records)
            self._rate.pay(len(records), int(size))
        else:  # a part of them will do for an estimate, and costs next to nothing
            part = records[:: 1 + len(records) // MEASURED_RECORDS]
            size = _bytes_of(part) * len(records) / len(part)
        update.restored_bytes += size
        self._announcer.batch(update, batch.partition, records[-1].offset, len(records))

    def _finish(self) -> None:
        active = [update for update in self._updates.values() if update.is_active]
        self._reader.move_positions(active)
        for update in active:
            if update.is_complete:
                self._drop(update)
                self._complete(update)

    def _complete(self, update: Update) -> None:
        self._announcer.end(update)
        self._mailbox.give_back_restored(update.task)
        log.info("task restored", task=str(update.task.task_id), records=update.restored_records)

    def _publish(self) -> None:
        now_ms = self._clock.now_ms()
        if now_ms >= self._next_look_ms:
            self._next_look_ms = now_ms + LOOK_INTERVAL_MS
            copies = [update for update in self._updates.values() if not update.is_active]
            self._reader.move_positions(copies)
            for update in copies:
                self._reader.look_at_ends(update)
        self._mailbox.progress = tuple(update.progress() for update in self._updates.values())

    # tasks that come and go

    def _take_new(self) -> None:
        new = self._mailbox.new()
        if not new:
            return
        partitions = [partition for entrusted in new for partition in entrusted.positions]
        earliest = self._admin.list_offsets(partitions, OffsetKind.EARLIEST) if partitions else {}
        ends = self._admin.list_offsets(partitions, OffsetKind.HIGH_WATERMARK) if partitions else {}
        for entrusted in new:
            if self._mailbox.claim(entrusted):
                self._begin(entrusted, earliest, ends)

    def _begin(
        self, entrusted: Entrusted, earliest: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> None:
        task_id = entrusted.task.task_id
        for partition, position in entrusted.positions.items():
            if position is not None and not earliest[partition] <= position <= ends[partition]:
                error = _out_of_range(task_id, partition, position, earliest[partition], ends[partition])
                self._mailbox.give_back_failed(entrusted.task, error)
                return
        update = _update_of(entrusted, earliest, ends)
        self._announcer.start(update)
        if update.is_complete:
            self._complete(update)
            return
        self._updates[task_id] = update
        self._reader.begin(update)
        log.info("restoring task", task=str(task_id), kind=update.kind.value, records_at_most=update.remaining)

    def _let_go(self) -> None:
        for task_id, reason in self._mailbox.take_asked_back().items():
            update = self._updates.get(task_id)
            try:
                if update is not None:
                    self._reader.move_positions([update])
                    self._drop(update)
                    self._announcer.suspended(update, reason)
            finally:
                self._mailbox.give_back(task_id)

    def _on_out_of_range(self, event: OffsetOutOfRange) -> None:
        partition = event.partition
        update = self._reader.owner(partition)
        if update is None:
            return
        try:
            earliest = self._admin.list_offsets([partition], OffsetKind.EARLIEST)[partition]
            end = self._admin.list_offsets([partition], OffsetKind.HIGH_WATERMARK)[partition]
        except BrokerUnavailableError:
            self._out_of_range.appendleft(event)  # the consumer does not say it again
            raise
        self._fail(update, _out_of_range(update.task.task_id, partition, event.offset, earliest, end))

    def _on_trouble(self, event: PartitionUnavailable | ClientTrouble) -> None:
        if isinstance(event, ClientTrouble):
            self._troubles.hear_client(event)
            return
        update = self._reader.owner(event.partition)
        if update is None:
            return
        ends = update.ends if update.is_active else update.known_ends
        try:
            self._troubles.hear(event, update.positions[event.partition], ends.get(event.partition))
        except PartitionUnreadableError as error:
            if update.is_active:
                self._fail(update, error)
            else:  # said; and whoever runs the task goes on
                self._reader.rest(update, event.partition)
        except AccessDeniedError as error:
            self._fail(update, error)

    def _look_for_stalls(self) -> None:
        reading = {
            partition: Reading(at, update.ends[partition])
            for update in self._updates.values()
            if update.is_active
            for partition, at in update.unread.items()
        }
        for error in self._stalls.look(reading):
            update = self._reader.owner(error.partition)
            if update is not None:
                self._fail(update, error)

    def _fail(self, update: Update, error: StreamsError) -> None:
        self._drop(update)
        self._announcer.suspended(update, SuspendReason.MIGRATED)
        self._mailbox.give_back_failed(update.task, error)

    def _drop(self, update: Update) -> None:
        del self._updates[update.task.task_id]
        others = [each for each in self._out_of_range if self._reader.owner(each.partition) is not update]
        self._out_of_range = deque(others)
        self._reader.end(update)


def _ending(failure: Exception) -> StreamsError:
    """For good: a broker that was away for too long would be outwaited once more, by a thread whose tasks nobody restores."""
    if isinstance(failure, BrokerUnavailableError):
        return StreamsError(f"restoring was given up: {failure.fact}", hint=failure.hint)
    if isinstance(failure, StreamsError):
        return failure
    return StreamsError(f"the state updater failed: {failure!r}", hint="if it comes back, report it with the log")


def _bytes_of(records: Sequence[RawRecord]) -> int:
    return sum(len(record.key or b"") + len(record.value or b"") for record in records)


def _update_of(
    entrusted: Entrusted, earliest: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> Update:
    positions = {p: earliest[p] if at is None else at for p, at in entrusted.positions.items()}
    bounds = {p: min(ends[p], entrusted.limits.get(p, ends[p])) for p in positions}
    if entrusted.kind is UpdateKind.ACTIVE:
        return Update(entrusted.task, entrusted.kind, positions, ends=bounds)
    return Update(entrusted.task, entrusted.kind, positions, limits=dict(entrusted.limits), known_ends=bounds)


def _out_of_range(
    task_id: TaskId, partition: TopicPartition, position: int, earliest: int, end: int
) -> TaskCorruptedError:
    return TaskCorruptedError(
        f"changelog {partition} has offsets {earliest} to {end}, but the state of task {task_id} goes on from {position}",
        hint="the task's local state is wiped and restored from what the changelog still has",
    )
