"""The producer of exactly-once: one transaction after the other. One per StreamThread.

        init           begin                 commit, abort
    NEW ----> READY ----------> IN_TRANSACTION -----------> READY
     |          |                     |
     +----------+---------------------+--> LOST      is_usable is false: close it, make another

It is given up early, because librdkafka does not raise its epoch per transaction: an end that comes late could hit the
next transaction, and after a record that the broker refused it raises the epoch by itself in the middle of the next
one. So after an unknown outcome, after an end that took long, and after any transaction that failed, it is not used
again; a new one with the same transactional id costs some 60 ms.

Offsets of the group are added to the transaction by the group client, which needs `identity` for it. librdkafka tells
id and epoch only in its statistics.
The offset of the last changelog record of a partition comes from that record's delivery report. Which record is the
last one is known at the flush: for tracked topics the newest record of every partition is held back until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any

import msgspec
from confluent_kafka import KafkaError, Message

from streamfleet.errors import ConfigError, StreamsError
from streamfleet.ids import TopicPartition
from streamfleet.kafka.client_errors import (
    AccessDeniedError,
    BrokerUnavailableError,
    FencedProducerError,
    KafkaClientError,
    ProducerLostError,
    TransactionAbortRequiredError,
    UnknownTransactionOutcomeError,
)
from streamfleet.kafka.client_failures import call_client, client_error
from streamfleet.kafka.patience import MonotonicClock, PatientClock
from streamfleet.kafka.producer_client import IfNotDelivered, ProducerClient, delivery_error
from streamfleet.ports import DeliveryFailure, ProducerIdentity
from streamfleet.records import ProducerRecord

FLUSH_SLICE_MS = 200
"""After so long without an end of the flush, see whether there can be one."""
BLAME_TIMEOUT_MS = 1_000
_DEFAULT_SOCKET_TIMEOUT_MS = 60_000
_FENCED = (
    KafkaError._FENCED,  # noqa: SLF001  (librdkafka's own codes begin with an underscore)
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
)


class _StillGood(Exception):
    """The transaction has not failed."""


class State(Enum):
    """See the drawing at the top."""

    NEW = "new"
    READY = "ready"
    IN_TRANSACTION = "in transaction"
    LOST = "lost"


_TRANSITIONS = {
    State.NEW: {State.READY, State.LOST},
    State.READY: {State.IN_TRANSACTION, State.LOST},
    State.IN_TRANSACTION: {State.READY, State.LOST},
    State.LOST: {State.LOST},
}


class _IdempotenceStatistics(msgspec.Struct):
    producer_id: int
    producer_epoch: int


class _Statistics(msgspec.Struct):
    eos: _IdempotenceStatistics | None = None


_decode_statistics = msgspec.json.Decoder(_Statistics).decode


class _LastRecord(msgspec.Struct, gc=False):
    """Callback of the last record of a tracked partition."""

    producer: KafkaTransactionalProducer
    partition: TopicPartition
    record: ProducerRecord

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        self.producer.last_record_delivered(self.partition, self.record, error, message.offset())


class KafkaTransactionalProducer:
    """Implements TransactionalProducer.

    `tracked` are the topics whose last offsets are wanted; their records must name a partition. With
    `blame_single_records` every record travels alone and is reported if it fails: for the replay after an abort, to find
    out which record it was. `message_limits` are those of topics, by name; `on_moved` is called for every record of time 0,
    which is written with time 1.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        *,
        tracked: Iterable[str] = (),
        blame_single_records: bool = False,
        message_limits: Mapping[str, int] | None = None,
        on_moved: Callable[[], None] | None = None,
        clock: PatientClock | None = None,
    ) -> None:
        alone = {"batch.num.messages": 1} if blame_single_records else {}
        self._clock = clock or MonotonicClock()
        self._client = ProducerClient(
            {**settings, **alone},
            self._translate,
            message_limits or {},
            on_moved=on_moved,
            clock=self._clock,
            stats_cb=self._learn,
        )
        self._transactional_id = str(settings["transactional.id"])
        self._slow_ms = int(settings.get("socket.timeout.ms", _DEFAULT_SOCKET_TIMEOUT_MS)) // 2
        self._tracked = frozenset(tracked)
        self._blames = blame_single_records
        self._state = State.NEW
        self._identity: ProducerIdentity | None = None
        self._must_abort = False
        self._has_sent = False
        self._held: dict[TopicPartition, ProducerRecord] = {}
        self._last_offsets: dict[TopicPartition, int] = {}
        self._failed: list[tuple[ProducerRecord, KafkaError]] = []

    # --- what is asked of it ---

    @property
    def is_usable(self) -> bool:
        return self._state is not State.LOST

    @property
    def in_transaction(self) -> bool:
        return self._state is State.IN_TRANSACTION

    @property
    def has_sent(self) -> bool:
        return self._has_sent

    @property
    def identity(self) -> ProducerIdentity:
        if self._identity is None:
            raise StreamsError("the producer has no identity yet", hint="call init first")
        return self._identity

    def last_offsets(self) -> Mapping[TopicPartition, int]:
        return self._last_offsets

    def partition_count(self, topic: str) -> int | None:
        return self._client.partition_count(topic)

    def take_failures(self) -> Sequence[DeliveryFailure]:
        if self._blames and self._must_abort:
            self._await_blame()
        failures = [DeliveryFailure(record, delivery_error(error, record)) for record, error in self._failed]
        self._failed.clear()
        return failures

    # --- the transaction ---

    def init(self, timeout_ms: int) -> None:
        """If this fails, the producer is lost: an answer that comes late must not meet a second attempt."""
        self._require(State.NEW)
        deadline_ms = self._clock.now_ms() + timeout_ms
        try:
            doing = f"taking over the transactional id {self._transactional_id}"
            self._call(doing, self._client.raw.init_transactions, timeout_ms / 1000)
            while self._identity is None:
                if self._clock.now_ms() >= deadline_ms:
                    raise BrokerUnavailableError("the client did not tell its producer id in time", code="_TIMED_OUT")
                self._call("waiting for the producer id", self._client.raw.poll, 0.05)
        except (KafkaClientError, ConfigError):
            self._become(State.LOST)
            raise
        self._become(State.READY)

    def begin(self) -> None:
        self._require(State.READY)
        self._call("beginning a transaction", self._client.raw.begin_transaction)
        self._become(State.IN_TRANSACTION)
        self._start_afresh()

    def send(self, record: ProducerRecord) -> None:
        if self._state is not State.IN_TRANSACTION:
            self._require(State.IN_TRANSACTION)
        if record.topic in self._tracked:
            self._hold_back(record)
        else:
            self._produce(record)
        self._has_sent = True

    def poll(self) -> None:
        self._client.poll()

    def flush(self, timeout_ms: int) -> None:
        for partition, record in list(self._held.items()):
            self._client.produce(record, _LastRecord(self, partition, record))
            del self._held[partition]  # only now: had there been no room, the next flush must send it
        deadline_ms = self._clock.now_ms() + timeout_ms
        while True:
            left_ms = max(0, deadline_ms - self._clock.now_ms())
            try:
                self._client.flush(min(left_ms, FLUSH_SLICE_MS))
                return
            except BrokerUnavailableError:
                self._check_transaction()
                if left_ms <= FLUSH_SLICE_MS:
                    raise

    def commit(self, timeout_ms: int) -> None:
        """Flush first: what is held back is not in the transaction otherwise."""
        self._require(State.IN_TRANSACTION)
        if self._held:
            raise StreamsError("records wait for the flush", hint="call flush before commit")
        self._end("committing the transaction", self._client.raw.commit_transaction, timeout_ms)

    def abort(self, timeout_ms: int) -> None:
        """Records of the transaction are never seen by readers. Forgets what was held back."""
        self._require(State.IN_TRANSACTION)
        self._held.clear()
        failed = self._must_abort
        self._end("aborting the transaction", self._client.raw.abort_transaction, timeout_ms)
        if failed:
            self._become(State.LOST)

    def close(self) -> None:
        """Without a word to the coordinator: librdkafka's own close would try to end a transaction whose fate is not ours
        any more, and wait for it.
        """
        self._become(State.LOST)
        self._held.clear()
        vars(self).pop("_client", None)

    # --- inside ---

    def last_record_delivered(
        self, partition: TopicPartition, record: ProducerRecord, error: KafkaError | None, offset: int | None
    ) -> None:
        """Called by the client through the record's callback."""
        if error is not None or offset is None:
            self._failed.append((record, error or KafkaError(KafkaError._NO_OFFSET)))  # noqa: SLF001
        else:
            self._last_offsets[partition] = offset

    def _check_transaction(self) -> None:
        """In a transaction that has failed the client sends nothing more, and keeps what waits until it times out, without a
        word. Whether it has failed is told by any call that is not possible now.
        """

        def only_if_failed(error: KafkaError, doing: str) -> Exception:
            failed = error.txn_requires_abort() or error.fatal() or error.code() in _FENCED
            return self._translate(error, doing) if failed else _StillGood()

        with suppress(_StillGood):
            call_client("flushing", self._client.raw.begin_transaction, translate=only_if_failed)

    def _await_blame(self) -> None:
        """The transaction has failed; which record it was is told a moment later."""
        deadline_ms = self._clock.now_ms() + BLAME_TIMEOUT_MS
        while not self._failed and self._clock.now_ms() < deadline_ms:
            self._client.raw.poll(0.05)

    def _produce(self, record: ProducerRecord) -> None:
        self._client.produce(record, IfNotDelivered(record, self._failed) if self._blames else None)

    def _hold_back(self, record: ProducerRecord) -> None:
        if record.partition is None:
            raise StreamsError(f"a record for {record.topic}, whose offsets are tracked, names no partition")
        self._client.check(record)
        partition = TopicPartition(record.topic, record.partition)
        before = self._held.get(partition)
        if before is not None:
            self._produce(before)
        self._held[partition] = record

    def _end(self, doing: str, call: Any, timeout_ms: int) -> None:
        started_ms = self._clock.now_ms()
        call_client(doing, call, timeout_ms / 1000, translate=self._translate_end)
        slow = self._clock.now_ms() - started_ms > self._slow_ms
        self._become(State.LOST if slow else State.READY)

    def _start_afresh(self) -> None:
        self._must_abort = False
        self._has_sent = False
        self._held.clear()
        self._last_offsets = {}
        self._failed.clear()

    def _call(self, doing: str, call: Any, *arguments: Any) -> None:
        call_client(doing, call, *arguments, translate=self._translate)

    def _translate(self, error: KafkaError, doing: str) -> Exception:
        fact = f"{doing} failed: {error.str()} ({error.name()})"
        if error.code() in _FENCED:
            self._become(State.LOST)
            return FencedProducerError(fact, code=error.name(), hint="another producer has this transactional id now")
        if error.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
            return ConfigError(
                f"the broker does not take transaction.timeout.ms ({error.name()})",
                hint="set it to at most transaction.max.timeout.ms of the broker, or raise that",
            )
        if error.fatal() or error.code() == KafkaError._FATAL:  # noqa: SLF001
            self._become(State.LOST)
            general = client_error(error, doing)
            return general if isinstance(general, AccessDeniedError) else ProducerLostError(fact, code=error.name())
        if self._state is not State.IN_TRANSACTION:
            return client_error(error, doing)
        if error.txn_requires_abort() or error.code() == KafkaError._STATE:  # noqa: SLF001
            self._must_abort = True
            return TransactionAbortRequiredError(fact, code=error.name(), hint="abort, and take a new producer")
        return client_error(error, doing)

    def _translate_end(self, error: KafkaError, doing: str) -> Exception:
        """While a transaction ends, an error that says nothing about it leaves open whether it has ended."""
        known = self._translate(error, doing)
        if isinstance(known, (ProducerLostError, TransactionAbortRequiredError)):
            return known
        self._become(State.LOST)
        return UnknownTransactionOutcomeError(
            f"{doing} failed: {error.str()} ({error.name()})",
            code=error.name(),
            hint="take a new producer, read committed offsets",
        )

    def _learn(self, statistics: str) -> None:
        eos = _decode_statistics(statistics).eos
        if eos is None or eos.producer_id < 0:
            return
        found = ProducerIdentity(self._transactional_id, eos.producer_id, eos.producer_epoch)
        if self._identity is None:
            self._identity = found
        elif found != self._identity:
            self._become(State.LOST)  # offsets sent with the identity we know would be refused as a zombie's

    def _require(self, state: State) -> None:
        if self._state is State.LOST:
            raise ProducerLostError("the producer must not be used again", code="_STATE", hint="make a new one")
        if self._state is not state:
            raise StreamsError(f"the producer is {self._state.value}, not {state.value}")

    def _become(self, state: State) -> None:
        if state not in _TRANSITIONS[self._state]:
            raise StreamsError(f"a producer that is {self._state.value} cannot become {state.value}")
        self._state = state
