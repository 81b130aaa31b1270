"""One librdkafka producer: takes ProducerRecords, knows partition counts. Both guarantees' producers stand on it.

Time zero. To librdkafka a timestamp of 0 means "now", so a record of time 0 cannot be written as such: it would land
in the present, and windows with it. It is written with time 1 instead, the nearest time that can be; that is counted
and said once per topic. Negative timestamps pass librdkafka and are refused here, as the Java client refuses them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
import structlog
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import Producer as LibrdkafkaProducer

from streamfleet.kafka.client_errors import BrokerUnavailableError, RecordRefusedError
from streamfleet.kafka.client_failures import Translate, call_client, client_error
from streamfleet.kafka.client_making import make_client
from streamfleet.kafka.client_settings import record_limit
from streamfleet.kafka.patience import MonotonicClock, PatientClock
from streamfleet.records import ProducerRecord

log = structlog.get_logger(__name__)

DeliveryCallback = Callable[[KafkaError | None, Message], None]

ANY_PARTITION = -1
PRODUCERS_OWN_TIME = 0
EARLIEST_TIMESTAMP = 1
_LATEST_TIMESTAMP = 2**63 - 1
FULL_QUEUE_TIMEOUT_MS = 60_000
"""How long a send waits for room when the broker does not take records as fast as they come."""
METADATA_TIMEOUT_MS = 10_000
PARTITION_COUNT_AGE_MS = 60_000
"""Partitions can be added to a topic while we run; asked again after this long."""

_DEFAULT_MESSAGE_BYTES = 1_000_000
_RECORD_FRAME_BYTES = 36
_HEADER_FRAME_BYTES = 10
"""What librdkafka counts for a record besides its bytes, at most."""

_NEVER_ACCEPTED = {
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.INVALID_MSG,
    KafkaError.INVALID_RECORD,
    KafkaError.INVALID_TIMESTAMP,
    KafkaError.RECORD_LIST_TOO_LARGE,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._INVALID_ARG,  # noqa: SLF001  (librdkafka's own codes begin with an underscore)
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
}


def is_refusal(error: KafkaError) -> bool:
    """Whether this record will never be accepted, whatever the state of the cluster."""
    return error.code() in _NEVER_ACCEPTED


def refusal(error: KafkaError, record: ProducerRecord) -> RecordRefusedError:
    size = len(record.key or b"") + len(record.value or b"")
    fact = f"a record of {size} bytes for topic {record.topic} was refused: {error.str()} ({error.name()})"
    return RecordRefusedError(fact, code=error.name(), hint="check the record, and the topic's existence and limits")


def delivery_error(error: KafkaError, record: ProducerRecord) -> Exception:
    """What a failed delivery report means for its record."""
    return refusal(error, record) if is_refusal(error) else client_error(error, f"sending to topic {record.topic}")


class IfNotDelivered(msgspec.Struct, gc=False):
    """The callback of one record. Out of the collector's sight: as many live as records are on their way."""

    record: ProducerRecord
    failed: list[tuple[ProducerRecord, KafkaError]]

    def __call__(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.failed.append((self.record, error))


class _KnownCount(NamedTuple):
    partitions: int
    asked_at_ms: int


class ProducerClient:
    """`translate` says what an error that is not about one record means to the producer that owns this. `message_limits` are
    those of topics, by name. `on_moved` is called for every record of time 0.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        translate: Translate,
        message_limits: Mapping[str, int],
        *,
        on_moved: Callable[[], None] | None = None,
        clock: PatientClock | None = None,
        **callbacks: Callable[..., None],
    ) -> None:
        self.raw = make_client(LibrdkafkaProducer, settings, **callbacks)
        self._on_moved = on_moved
        self._message_max_bytes = int(settings.get("message.max.bytes", _DEFAULT_MESSAGE_BYTES))
        limits = {topic: record_limit(limit) for topic, limit in message_limits.items()}
        self._tight = {topic: limit for topic, limit in limits.items() if limit < self._message_max_bytes}
        """Topics that take less than the client does. In most apps there are none."""
        self._translate = translate
        self._clock = clock or MonotonicClock()
        self._counts: dict[str, _KnownCount] = {}
        self._topics_with_time_zero: set[str] = set()

    def produce(self, record: ProducerRecord, on_delivery: DeliveryCallback | None) -> None:
        timestamp = record.timestamp
        if timestamp is None:
            timestamp = PRODUCERS_OWN_TIME
        elif timestamp < EARLIEST_TIMESTAMP or timestamp > _LATEST_TIMESTAMP:
            timestamp = self._possible_timestamp(record.topic, timestamp)
        if self._tight and record.topic in self._tight:
            self._check_size(record)
        partition = ANY_PARTITION if record.partition is None else record.partition
        headers: list[tuple[str, str | bytes | None]] | None = list(record.headers) if record.headers else None
        # By position: keywords cost more than the call.
        deadline_ms: int | None = None
        while True:
            try:
                self.raw.produce(
                    record.topic, record.value, record.key, partition, on_delivery, None, timestamp, headers
                )
                return
            except BufferError:
                deadline_ms = self._wait_for_room(record.topic, deadline_ms)
            except KafkaException as error:
                raise self._send_error(error.args[0], record) from error

    def check(self, record: ProducerRecord) -> None:
        """Refuse now what `produce` would refuse: for a record that is produced later than it is sent."""
        if record.timestamp is not None and not 0 <= record.timestamp <= _LATEST_TIMESTAMP:
            raise _impossible_timestamp(record.topic, record.timestamp)
        self._check_size(record)

    def _check_size(self, record: ProducerRecord) -> None:
        size = _RECORD_FRAME_BYTES + len(record.key or b"") + len(record.value or b"")
        for name, value in record.headers:
            size += _HEADER_FRAME_BYTES + len(name.encode()) + len(value or b"")
        if size > self._tight.get(record.topic, self._message_max_bytes):
            raise refusal(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), record)

    def poll(self) -> None:
        call_client("serving callbacks", self.raw.poll, 0, translate=self._translate)

    def flush(self, timeout_ms: int) -> None:
        left = call_client("flushing", self.raw.flush, timeout_ms / 1000, translate=self._translate)
        if left:
            raise BrokerUnavailableError(
                f"{left} records were not delivered within {timeout_ms} ms",
                code="_TIMED_OUT",
                hint="check that the brokers run; the records are kept, flush again",
            )

    def partition_count(self, topic: str) -> int | None:
        known, now_ms = self._counts.get(topic), self._clock.now_ms()
        if known is not None and now_ms - known.asked_at_ms < PARTITION_COUNT_AGE_MS:
            return known.partitions
        doing = f"asking for the partitions of topic {topic}"
        answer = call_client(doing, self.raw.list_topics, topic, METADATA_TIMEOUT_MS / 1000, translate=self._translate)
        found = answer.topics.get(topic)
        if found is None or found.error is not None or not found.partitions:
            self._counts.pop(topic, None)
            return None
        self._counts[topic] = _KnownCount(len(found.partitions), now_ms)
        return len(found.partitions)

    def _possible_timestamp(self, topic: str, timestamp: int) -> int:
        if timestamp != 0:
            raise _impossible_timestamp(topic, timestamp)
        if self._on_moved is not None:
            self._on_moved()
        if topic not in self._topics_with_time_zero:
            self._topics_with_time_zero.add(topic)
            log.warning("record of time 0 written with time 1", topic=topic)
        return EARLIEST_TIMESTAMP

    def _wait_for_room(self, topic: str, deadline_ms: int | None) -> int:
        """Lets the queue drain a little; the deadline to come back with if that was not enough."""
        now_ms = self._clock.now_ms()
        if deadline_ms is None:
            deadline_ms = now_ms + FULL_QUEUE_TIMEOUT_MS
        if now_ms >= deadline_ms:
            raise BrokerUnavailableError(
                f"no room for a record for topic {topic} within {FULL_QUEUE_TIMEOUT_MS} ms",
                code="_QUEUE_FULL",
                hint="check that the brokers run; queue.buffering.max.kbytes is how much may wait",
            )
        call_client("waiting for room", self.raw.poll, 0.1, translate=self._translate)
        return deadline_ms

    def _send_error(self, error: KafkaError, record: ProducerRecord) -> Exception:
        return (
            refusal(error, record) if is_refusal(error) else self._translate(error, f"sending to topic {record.topic}")
        )


def _impossible_timestamp(topic: str, timestamp: int) -> RecordRefusedError:
    return RecordRefusedError(
        f"a record for topic {topic} has the timestamp {timestamp}",
        code="INVALID_TIMESTAMP",
        hint="timestamps are milliseconds since 1970 and never negative",
    )
