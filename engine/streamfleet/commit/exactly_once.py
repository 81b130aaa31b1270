"""Exactly once: results, changelogs and offsets in one transaction over all tasks of the thread; rows after it is known to be good.

A producer whose last call has an unknown outcome is thrown away, never used again: a delayed request of it could end the next
transaction. The new one takes over its transactional id, which aborts whatever was left open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from streamfleet.commit.api import GroupOffsets
from streamfleet.errors import StreamsError
from streamfleet.failpoints import Failpoints
from streamfleet.ids import TopicPartition
from streamfleet.ports import Producer, TransactionalProducer
from streamfleet.records import ProducerRecord
from streamfleet.task.offsets import CommittedOffset
from streamfleet.task.stream_task import StreamTask

log = structlog.get_logger(__name__)

TIMEOUT_MS = 30_000


class ExactlyOnceCommit:
    """`make_producer` makes a new client with this thread's transactional id; it is called again after every failure."""

    def __init__(
        self, make_producer: Callable[[], TransactionalProducer], offsets: GroupOffsets, failpoints: Failpoints
    ) -> None:
        self._make_producer = make_producer
        self._offsets = offsets
        self._failpoints = failpoints
        self._current: TransactionalProducer | None = None
        self._gate = _TransactionGate(self._in_transaction)

    @property
    def producer(self) -> Producer:
        return self._gate

    def open(self) -> None:
        if self._current is not None and self._current.is_usable:
            return
        self._drop()
        self._current = self._make_producer()
        self._current.init(TIMEOUT_MS)
        self._failpoints.hit("after_init_txn")

    def commit(self, tasks: Sequence[StreamTask]) -> dict[TopicPartition, CommittedOffset]:
        committing = [task for task in tasks if task.commit_needed]
        if not committing:
            return {}
        producer = self._in_transaction()
        offsets: dict[TopicPartition, CommittedOffset] = {}
        for task in committing:
            offsets |= task.prepare_commit()
        self._failpoints.hit("after_produce")
        producer.flush(TIMEOUT_MS)
        self._failpoints.hit("after_flush")
        for failure in producer.take_failures():
            committing[0].handle_delivery_failure(failure.record, failure.error)
        reached = producer.last_offsets()
        if offsets:
            self._offsets.commit_in_transaction(producer.identity, offsets)
        self._failpoints.hit("after_send_offsets")
        self._end(producer, has_offsets=bool(offsets))
        for task in committing:
            ends = {topic: reached[p] for topic, p in task.changelogs.items() if p in reached}
            task.post_commit(ends)
        self._failpoints.hit("after_store_write")
        return offsets

    def _end(self, producer: TransactionalProducer, *, has_offsets: bool) -> None:
        has_sent = producer.has_sent
        self._failpoints.hit("before_end_txn")
        producer.commit(TIMEOUT_MS)
        if has_offsets and not has_sent:
            self._offsets.end_transaction(producer.identity, commit=True)
        self._failpoints.hit("after_end_txn")

    def abort(self) -> None:
        """Abort, and if that fails too, leave it to the next owner of the transactional id."""
        producer = self._current
        if producer is None or not producer.in_transaction:
            return
        if not producer.is_usable:
            self._drop()
            return
        try:
            producer.abort(TIMEOUT_MS)
        except StreamsError as error:
            log.warning("transaction could not be aborted, its producer is replaced", error=str(error))
            self._drop()

    def close(self) -> None:
        self.abort()
        self._drop()

    def _in_transaction(self) -> TransactionalProducer:
        self.open()
        assert self._current is not None
        if not self._current.in_transaction:
            self._current.begin()
        return self._current

    def _drop(self) -> None:
        if self._current is not None:
            self._current.close()
            self._current = None


class _TransactionGate:
    """The producer that tasks hold: begins a transaction with the first record of it."""

    def __init__(self, in_transaction: Callable[[], TransactionalProducer]) -> None:
        self._in_transaction = in_transaction

    def send(self, record: ProducerRecord) -> None:
        self._in_transaction().send(record)

    def partition_count(self, topic: str) -> int | None:
        return self._in_transaction().partition_count(topic)
