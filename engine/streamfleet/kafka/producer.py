"""The producer of at-least-once: idempotent, without transactions. One per StreamThread.

No transaction fences it, so it must fall silent by itself. A process that stood still would go on with what it had in hand, and
write old results and old state behind those of its successor; so would a thread that was busy for so long that its membership
gave up its tasks. So a record is taken only while nobody else can run the tasks, and none waits for longer than that:
`delivery_timeout_ms` and PRECISION_MS before that time nothing more is taken, and what waits for longer fails, also when the
client's own threads are the first to wake up.

Every record carries a callback that runs only if its delivery failed, so the production handler can be asked about
exactly that record. The broker refuses whole batches, though: next to one record it does not accept, good ones fail as
well. They are sent again one by one at the flush, and only what fails alone is reported; behind records of their
partition that were sent later, which is what at-least-once allows.
Offsets of changelog records are not reported here: after the flush they are asked of the broker (Admin.list_offsets).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from confluent_kafka import KafkaError

from streamfleet.kafka.client_errors import BrokerUnavailableError, ProducerLostError
from streamfleet.kafka.client_failures import client_error
from streamfleet.kafka.patience import NS_PER_MS, elapsed_ns
from streamfleet.kafka.producer_client import IfNotDelivered, ProducerClient, delivery_error
from streamfleet.kafka.tenure import FOR_EVER_MS, Tenure
from streamfleet.ports import DeliveryFailure
from streamfleet.records import ProducerRecord

_REFUSED_WITH_ITS_BATCH = {
    KafkaError.INVALID_MSG,
    KafkaError.INVALID_RECORD,
    KafkaError.INVALID_TIMESTAMP,
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE,
    KafkaError._INVALID_DIFFERENT_RECORD,  # noqa: SLF001  (librdkafka's own codes begin with an underscore)
}


PRECISION_MS = 1_000
"""The client looks that often for records that have waited too long."""


class PlainProducer:
    """Implements IdempotentProducer. `message_limits` are those of topics, by name; `on_moved` is called for every record of time
    0, which is written with time 1. `reserve_ms` before the end of `tenure` no record is taken any more.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        message_limits: Mapping[str, int] | None = None,
        on_moved: Callable[[], None] | None = None,
        *,
        tenure: Tenure | None = None,
        reserve_ms: int = 0,
        now_ns: Callable[[], int] = elapsed_ns,
    ) -> None:
        self._make_client = partial(ProducerClient, settings, self._translate, message_limits or {}, on_moved=on_moved)
        self._client = self._make_client()
        self._is_lost = False
        self._now_ns = now_ns
        self._tenure = tenure or Tenure(FOR_EVER_MS)
        self._reserve_ms = reserve_ms
        self._failed: list[tuple[ProducerRecord, KafkaError]] = []

    def send(self, record: ProducerRecord) -> None:
        if self._now_ns() >= (self._tenure.until_ms - self._reserve_ms) * NS_PER_MS:
            raise _held_back(record.topic)
        self._client.produce(record, IfNotDelivered(record, self._failed))

    def partition_count(self, topic: str) -> int | None:
        return self._client.partition_count(topic)

    def poll(self) -> None:
        self._client.poll()

    def flush(self, timeout_ms: int) -> None:
        self._client.flush(timeout_ms)
        for failure in [each for each in self._failed if each[1].code() in _REFUSED_WITH_ITS_BATCH]:
            self.send(failure[0])
            self._failed.remove(failure)  # only now: if there was no room for it, the next flush sends it
            self._client.flush(timeout_ms)

    def take_failures(self) -> Sequence[DeliveryFailure]:
        failures = [DeliveryFailure(record, delivery_error(error, record)) for record, error in self._failed]
        self._failed.clear()
        return failures

    @property
    def is_usable(self) -> bool:
        return not self._is_lost

    def renew(self) -> None:
        self._client = self._make_client()
        self._is_lost = False
        self._failed = []  # reports of the lost one may still come, and go nowhere

    def close(self) -> None:
        vars(self).pop("_client", None)  # librdkafka ends with the last reference

    def _translate(self, error: KafkaError, doing: str) -> Exception:
        if error.fatal() or error.code() == KafkaError._FATAL:  # noqa: SLF001
            self._is_lost = True
            return ProducerLostError(f"{doing} failed for good: {error.str()} ({error.name()})", code=error.name())
        return client_error(error, doing)


def _held_back(topic: str) -> BrokerUnavailableError:
    return BrokerUnavailableError(
        f"a record for topic {topic} is held back: this member was not heard of for too long, or has left its group",
        code="_TIMED_OUT",
        hint="another member may run these tasks by now; they go back to the last commit",
    )
