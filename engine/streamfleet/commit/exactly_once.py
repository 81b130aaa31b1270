"""Exactly once: results, changelogs and offsets in one transaction over all tasks of the thread; rows after it is known to be good.

A producer whose last call has an unknown outcome is thrown away, never used again: a delayed request of it could end the next
transaction. The new one takes over its transactional id, which aborts whatever was left open.

A record that the broker refuses takes its whole transaction with it, and nobody says which record it was. So the replay is done by
a producer that sends records one by one and learns that. The next replay refuses that record when it is sent, where the production
handler is asked: FAIL ends the task with a name, CONTINUE leaves the record out of a transaction that is good otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import structlog

from streamfleet.commit.api import GroupOffsets
from streamfleet.commit.delivery_failures import ask_sender
from streamfleet.errors import StreamsError, TaskInterruptedError
from streamfleet.failpoints import Failpoints
from streamfleet.ids import TopicPartition
from streamfleet.kafka.client_errors import (
    ProducerLostError,
    RecordRefusedError,
    TransactionAbortRequiredError,
    UnknownTransactionOutcomeError,
)
from streamfleet.kafka.errors import GroupTimeoutError
from streamfleet.ports import DeliveryFailure, Producer, TransactionalProducer
from streamfleet.records import ProducerRecord
from streamfleet.task.offsets import CommittedOffset
from streamfleet.task.stream_task import StreamTask

log = structlog.get_logger(__name__)

TIMEOUT_MS = 30_000
MAX_REPLAYS = 5
"""In a row, of refused records that the replay does not send again: they differ each time, so none can be left out."""


class ExactlyOnceCommit:
    """`make_producer(blame_single_records)` makes a new client with this thread's transactional id; it is called again after every
    failure.
    """

    def __init__(
        self, make_producer: Callable[[bool], TransactionalProducer], offsets: GroupOffsets, failpoints: Failpoints
    ) -> None:
        self._make_producer = make_producer
        self._offsets = offsets
        self._failpoints = failpoints
        self._current: TransactionalProducer | None = None
        self._is_open = False
        """Whether tasks have begun a transaction that is neither committed nor given up, whatever became of its producer."""
        self._has_offsets = False  # in the open transaction: the client does not end one in which it has sent nothing
        self._blames = False
        self._refused: dict[ProducerRecord, RecordRefusedError] = {}
        self._replays = 0
        self._gate = _TransactionGate(self)

    @property
    def producer(self) -> Producer:
        return self._gate

    def open(self) -> None:
        if self._current is not None and self._current.is_usable:
            return
        if self._is_open:
            # Another one would end what was sent, and the next commit would take the offsets for it.
            raise ProducerLostError(
                "the producer was lost in the middle of a transaction",
                code="_STATE",
                hint="the work since the last commit is done again",
            )
        self._drop()
        self._current = self._make_producer(self._blames)
        self._current.init(TIMEOUT_MS)
        self._failpoints.hit("after_init_txn")

    def commit(self, tasks: Sequence[StreamTask]) -> dict[TopicPartition, CommittedOffset]:
        committing = [task for task in tasks if task.commit_needed]
        if not committing:
            return {}
        try:
            offsets = self._commit(committing)
        except TransactionAbortRequiredError:
            self._blames = True  # the next producer finds out which record it was
            raise
        if self._blames:
            self._blames, self._replays = False, 0
            self._refused.clear()
            self._drop()  # one record at a time is slow
        return offsets

    def _commit(self, committing: Sequence[StreamTask]) -> dict[TopicPartition, CommittedOffset]:
        producer = self._in_transaction()
        offsets: dict[TopicPartition, CommittedOffset] = {}
        for task in committing:
            offsets |= task.prepare_commit()
        self._failpoints.hit("after_produce")
        try:
            producer.flush(TIMEOUT_MS)
        except TransactionAbortRequiredError:
            self._check(producer.take_failures(), committing)  # knows more, if it is a replay
            raise
        self._failpoints.hit("after_flush")
        self._check(producer.take_failures(), committing)
        reached = producer.last_offsets()
        if offsets:
            self._send_offsets(producer, offsets)
        self._failpoints.hit("after_send_offsets")
        self._end(producer)
        for task in committing:
            ends = {topic: reached[p] for topic, p in task.changelogs.items() if p in reached}
            task.post_commit(ends)
        self._failpoints.hit("after_store_write")
        return offsets

    def _send_offsets(self, producer: TransactionalProducer, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        self._has_offsets = True
        try:
            self._offsets.commit_in_transaction(producer.identity, offsets)
        except GroupTimeoutError as error:
            # What is carried out late must not meet newer offsets, of this transaction or of the next one.
            self._has_offsets = False
            self._drop()
            raise UnknownTransactionOutcomeError(error.fact, code="REQUEST_TIMED_OUT", hint=error.hint) from error

    def send(self, record: ProducerRecord) -> None:
        """In a transaction, which begins with its first record."""
        if self._refused and record in self._refused:
            self._replays = 0
            raise self._refused[record]
        producer = self._in_transaction()
        try:
            producer.send(record)
        except TransactionAbortRequiredError:
            self._blames = True
            failures = producer.take_failures()
            if failures and self._learn(failures) > MAX_REPLAYS:
                # Not about the record in hand, so no handler may decide to leave that one out.
                raise TaskInterruptedError(f"transactions fail again and again: {failures[0].error}") from failures[
                    0
                ].error
            raise

    def _learn(self, failures: Sequence[DeliveryFailure]) -> int:
        """Remember which records were refused; returns how many replays in a row have found some."""
        self._refused.update({f.record: f.error for f in failures if isinstance(f.error, RecordRefusedError)})
        self._replays += 1
        return self._replays

    def _check(self, failures: Sequence[DeliveryFailure], committing: Sequence[StreamTask]) -> None:
        if not failures:
            return
        first = failures[0]
        if self._learn(failures) > MAX_REPLAYS:
            ask_sender(first, committing)
            raise first.error
        raise TransactionAbortRequiredError(
            f"a record did not reach topic {first.record.topic}: {first.error}", code="_PURGE_INFLIGHT"
        ) from first.error

    def _end(self, producer: TransactionalProducer) -> None:
        has_sent = producer.has_sent
        self._failpoints.hit("before_end_txn")
        producer.commit(TIMEOUT_MS)
        if self._has_offsets and not has_sent:
            self._end_by_group(producer)
        self._has_offsets = self._is_open = False
        self._failpoints.hit("after_end_txn")

    def _end_by_group(self, producer: TransactionalProducer) -> None:
        try:
            self._offsets.end_transaction(producer.identity, commit=True)
        except StreamsError:
            self._has_offsets = False
            self._drop()  # its own transaction is over; this one may still end, late, and must not meet the next
            raise

    def abort(self) -> None:
        """Abort, and if that fails too, leave it to the next owner of the transactional id."""
        producer, has_offsets = self._current, self._has_offsets
        self._is_open = self._has_offsets = False
        if producer is not None and not producer.is_usable:
            self._drop()
        elif producer is not None and producer.in_transaction:
            self._abort(producer, has_only_offsets=has_offsets and not producer.has_sent)

    def _abort(self, producer: TransactionalProducer, *, has_only_offsets: bool) -> None:
        try:
            producer.abort(TIMEOUT_MS)
            if has_only_offsets:
                self._offsets.end_transaction(producer.identity, commit=False)
        except StreamsError as error:
            log.warning("transaction could not be aborted, its producer is replaced", error=str(error))
            self._drop()
        if self._blames:
            self._drop()  # the next one sends record by record

    def partition_count(self, topic: str) -> int | None:
        return self._in_transaction().partition_count(topic)

    def close(self) -> None:
        self.abort()
        self._drop()

    def _in_transaction(self) -> TransactionalProducer:
        self.open()
        assert self._current is not None
        if not self._current.in_transaction:
            self._current.begin()
            self._is_open = True
        return self._current

    def _drop(self) -> None:
        if self._current is not None:
            self._current.close()
            self._current = None


class _TransactionGate:
    """The producer that tasks hold: begins a transaction with the first record of it."""

    def __init__(self, commit: ExactlyOnceCommit) -> None:
        self._commit = commit

    def send(self, record: ProducerRecord) -> None:
        self._commit.send(record)

    def partition_count(self, topic: str) -> int | None:
        return self._commit.partition_count(topic)
