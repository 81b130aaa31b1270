"""At least once: results and changelogs first, then offsets, then rows. A crash in between repeats records, and loses none."""

from __future__ import annotations

from collections.abc import Sequence

from streamfleet.commit.api import GroupOffsets
from streamfleet.commit.delivery_failures import ask_sender
from streamfleet.failpoints import Failpoints
from streamfleet.ids import TopicPartition
from streamfleet.ports import Admin, IdempotentProducer, OffsetKind, Producer
from streamfleet.task.offsets import CommittedOffset
from streamfleet.task.stream_task import StreamTask

FLUSH_TIMEOUT_MS = 60_000


class AtLeastOnceCommit:
    def __init__(
        self, producer: IdempotentProducer, admin: Admin, offsets: GroupOffsets, failpoints: Failpoints
    ) -> None:
        self._producer = producer
        self._admin = admin
        self._offsets = offsets
        self._failpoints = failpoints
        self._has_leftovers = False

    @property
    def producer(self) -> Producer:
        return self._producer

    def open(self) -> None:
        """A plain producer has no identity to take over. What it still holds of work that was given up has to be in the topics
        before somebody asks where their changelogs end. What of it has failed, the work that is done again sends again.
        """
        if not self._has_leftovers:
            return
        if self._producer.is_usable:
            self._producer.flush(FLUSH_TIMEOUT_MS)
            self._producer.take_failures()
        else:
            self._producer.renew()
        self._has_leftovers = False

    def commit(self, tasks: Sequence[StreamTask]) -> dict[TopicPartition, CommittedOffset]:
        committing = [task for task in tasks if task.commit_needed]
        if not committing:
            return {}
        offsets: dict[TopicPartition, CommittedOffset] = {}
        for task in committing:
            offsets |= task.prepare_commit()
        self._failpoints.hit("after_produce")
        self._producer.flush(FLUSH_TIMEOUT_MS)
        self._failpoints.hit("after_flush")
        for failure in self._producer.take_failures():
            ask_sender(failure, tasks)
        reached = self._changelog_offsets(committing)
        if offsets:
            self._offsets.commit(offsets)
        self._failpoints.hit("after_send_offsets")
        for task in committing:
            task.post_commit({topic: reached[partition] for topic, partition in task.changelogs.items()})
        self._failpoints.hit("after_store_write")
        return offsets

    def _changelog_offsets(self, tasks: Sequence[StreamTask]) -> dict[TopicPartition, int]:
        """Asked of the broker after the flush: every changelog partition has one writer, so its end is the last write."""
        partitions = [partition for task in tasks for partition in task.changelogs.values()]
        if not partitions:
            return {}
        ends = self._admin.list_offsets(partitions, OffsetKind.HIGH_WATERMARK)
        return {partition: end - 1 for partition, end in ends.items()}

    def abort(self) -> None:
        """What was sent stays sent: it will be sent again."""
        self._has_leftovers = True

    def close(self) -> None:
        self._producer.close()
