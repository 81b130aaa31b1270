"""The producer of at-least-once: idempotent, without transactions. One per StreamThread.

Every record carries a callback that runs only if its delivery failed, so the production handler can be asked about
exactly that record. The broker refuses whole batches, though: next to one record it does not accept, good ones fail as
well. They are sent again one by one at the flush, and only what fails alone is reported; behind records of their
partition that were sent later, which is what at-least-once allows.
Offsets of changelog records are not reported here: after the flush they are asked of the broker (Admin.list_offsets).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError

from streamfleet.kafka.client_errors import ProducerLostError
from streamfleet.kafka.client_failures import client_error
from streamfleet.kafka.producer_client import IfNotDelivered, ProducerClient, delivery_error
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


class PlainProducer:
    """Implements ClientProducer. `message_limits` are those of topics, by name; `on_moved` is called for every record of time 0,
    which is written with time 1.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        message_limits: Mapping[str, int] | None = None,
        on_moved: Callable[[], None] | None = None,
    ) -> None:
        self._client = ProducerClient(settings, _translate, message_limits or {}, on_moved=on_moved)
        self._failed: list[tuple[ProducerRecord, KafkaError]] = []

    def send(self, record: ProducerRecord) -> None:
        self._client.produce(record, IfNotDelivered(record, self._failed))

    def partition_count(self, topic: str) -> int | None:
        return self._client.partition_count(topic)

    def poll(self) -> None:
        self._client.poll()

    def flush(self, timeout_ms: int) -> None:
        self._client.flush(timeout_ms)
        suspects = [failure for failure in self._failed if failure[1].code() in _REFUSED_WITH_ITS_BATCH]
        if suspects:
            self._failed[:] = [failure for failure in self._failed if failure[1].code() not in _REFUSED_WITH_ITS_BATCH]
            for record, _ in suspects:
                self._client.produce(record, IfNotDelivered(record, self._failed))
                self._client.flush(timeout_ms)

    def take_failures(self) -> Sequence[DeliveryFailure]:
        failures = [DeliveryFailure(record, delivery_error(error, record)) for record, error in self._failed]
        self._failed.clear()
        return failures

    def close(self) -> None:
        vars(self).pop("_client", None)  # librdkafka ends with the last reference


def _translate(error: KafkaError, doing: str) -> Exception:
    if error.fatal() or error.code() == KafkaError._FATAL:  # noqa: SLF001
        return ProducerLostError(f"{doing} failed for good: {error.str()} ({error.name()})", code=error.name())
    return client_error(error, doing)
