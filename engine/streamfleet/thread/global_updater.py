"""GlobalUpdater: keeps the global stores of a process up to date with all partitions of their topics.

No group and no commits: at every start the topics are read from the beginning, and the app's tasks begin when the stores have what
the topics had then. Afterwards one StreamThread of the process steps it, so that its tasks never read a store half way through an
update. A topic that cannot be read is an error: at once if it may not be, after the time-out of a task if it gives nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import structlog

from streamfleet.changelog.stall_watch import Reading, StallWatch
from streamfleet.errors import StreamsError
from streamfleet.ids import TopicPartition
from streamfleet.kafka.patience import PatientClock
from streamfleet.kafka.read_troubles import CountStall, ReadTroubles, count_nothing
from streamfleet.ports import Admin, ClientTrouble, Consumer, ConsumerEvent, OffsetKind, OffsetOutOfRange
from streamfleet.records import RawRecord
from streamfleet.state.api import StateStore
from streamfleet.state.committed_stores import CommittedStores
from streamfleet.task.global_task import GlobalTask

log = structlog.get_logger(__name__)

KIND = "global topic"
BATCH_RECORDS = 1000
BOOTSTRAP_WAIT_MS = 100


class GlobalUpdater:
    """`partitions` are those of all global topics."""

    def __init__(
        self,
        task: GlobalTask,
        consumer: Consumer,
        admin: Admin,
        partitions: tuple[TopicPartition, ...],
        clock: PatientClock,
        *,
        task_timeout_ms: int = 300_000,
        count_stall: CountStall = count_nothing,
    ) -> None:
        self._task = task
        self._consumer = consumer
        self._admin = admin
        self._partitions = partitions
        self._batch: Sequence[RawRecord] = ()
        """Read, and not applied yet."""
        self._gap: StreamsError | None = None
        """What was not read and will not be: told in every step, because the consumer tells it once."""
        self._troubles = ReadTroubles(KIND, clock.now_ms, timeout_ms=task_timeout_ms, count_stall=count_stall)
        self._stalls = StallWatch(
            KIND, clock.now_ms, admin, self._troubles, timeout_ms=task_timeout_ms, count_stall=count_stall
        )

    @property
    def stores(self) -> Mapping[str, StateStore]:
        return self._task.stores

    @property
    def committed_stores(self) -> CommittedStores | None:
        return self._task.committed_stores

    def bootstrap(self) -> None:
        """Read the topics from their beginning to what is their end now."""
        self._task.initialize()
        starts = self._admin.list_offsets(self._partitions, OffsetKind.EARLIEST)
        ends = self._admin.list_offsets(self._partitions, OffsetKind.LAST_STABLE)
        self._consumer.assign(starts)
        count = 0
        while unread := self._unread(ends):
            for error in self._stalls.look(unread):
                raise error
            count += self._read(BOOTSTRAP_WAIT_MS)
        log.info("global stores are up to date", records=count, stores=sorted(self.stores))

    def _unread(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, Reading]:
        readings = {partition: Reading(self._consumer.position(partition), end) for partition, end in ends.items()}
        return {partition: reading for partition, reading in readings.items() if reading.position < reading.end}

    def run_once(self) -> None:
        """Apply what has come since; never waits. Raises for good when some of it is gone: stores would be stale without a word."""
        if self._gap is not None:
            raise self._gap
        self._read(0)

    def _read(self, wait_ms: int) -> int:
        self._batch = self._batch or self._consumer.poll_batch(wait_ms, BATCH_RECORDS)
        count = self._apply()
        for event in self._consumer.take_events():
            self._on_event(event)
        return count

    def _apply(self) -> int:
        """All of the batch, or nothing: then the next step tries again, whoever makes it. A batch is read once, so what an error
        keeps from being applied would be missing for good.
        """
        batch = self._batch
        try:
            for record in batch:
                self._task.update(record)
            if batch:
                self._task.flush()
        except BaseException:
            self._task.discard()
            raise
        self._batch = ()
        return len(batch)

    def _on_event(self, event: ConsumerEvent) -> None:
        if isinstance(event, OffsetOutOfRange):
            self._gap = StreamsError(
                f"global topic {event.partition} no longer has offset {event.offset}",
                hint="restart the app: global stores are then read anew from what the topic still has",
            )
            raise self._gap
        if isinstance(event, ClientTrouble):
            self._troubles.hear_client(event)
            return
        position, lag = self._consumer.position(event.partition), self._consumer.lag_records(event.partition)
        self._troubles.hear(event, position, None if lag is None else position + lag)

    def close(self) -> None:
        self._consumer.close()
        self._task.close()
