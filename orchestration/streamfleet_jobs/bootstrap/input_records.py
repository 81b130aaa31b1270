"""Single records of the app's input, by partition and offset. Called by job.py for the sample that own_topology.py looks at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Partition

from streamfleet.ids import TopicPartition
from streamfleet.kafka.admin import KafkaAdmin
from streamfleet.ports import OffsetKind
from streamfleet_jobs.bootstrap.changelog_topic import client_settings
from streamfleet_jobs.bootstrap.recomputation import Place
from streamfleet_jobs.bootstrap.spec import BootstrapSpec
from streamfleet_jobs.errors import RefusedError, UnavailableError

_ANSWER_SECONDS = 60.0
_NEAR = 1000
"""Records that are passed over rather than jumped over: a jump is a request of its own."""


@dataclass(frozen=True)
class InputRecord:
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


class InputTopic:
    def __init__(self, spec: BootstrapSpec, admin: KafkaAdmin) -> None:
        self._spec = spec
        self._topic = spec.input.topic
        self._admin = admin

    def starts(self) -> dict[int, int]:
        """The first offset that each partition still has."""
        partitions = [TopicPartition(self._topic, number) for number in range(self._spec.input.partitions)]
        found = self._admin.list_offsets(partitions, OffsetKind.EARLIEST)
        return {partition.partition: offset for partition, offset in found.items()}

    def read(self, places: Sequence[Place]) -> list[InputRecord]:
        """In the order of `places`, which are sorted."""
        settings = {
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "fetch.queue.backoff.ms": 2,
            "queued.min.messages": _NEAR,
        }
        consumer = Consumer(client_settings(self._spec) | settings)
        try:
            return [
                record
                for partition, found in groupby(places, key=lambda place: place[0])
                for record in self._partition(consumer, partition, [offset for _, offset in found])
            ]
        finally:
            consumer.close()

    def _partition(self, consumer: Consumer, partition: int, offsets: Sequence[int]) -> Iterator[InputRecord]:
        at = offsets[0]
        consumer.assign([Partition(self._topic, partition, at)])
        for offset in offsets:
            if offset - at > _NEAR:
                consumer.seek(Partition(self._topic, partition, offset))
            yield _record(self._message(consumer, partition, offset))
            at = offset + 1

    def _message(self, consumer: Consumer, partition: int, offset: int) -> Any:
        where = f"{self._topic}-{partition}"
        while True:
            message = consumer.poll(_ANSWER_SECONDS)
            if message is None or message.error() is not None:
                why = "nothing comes" if message is None else str(message.error())
                raise UnavailableError(f"{where} cannot be read at {offset}: {why}", hint="run the job again")
            found = message.offset() or 0
            if found > offset:
                raise RefusedError(
                    f"{where} has no record at {offset}, which the table has", hint="the table is of another topic"
                )
            if found == offset:
                return message


def _record(message: Any) -> InputRecord:
    return InputRecord(message.key(), message.value(), message.timestamp()[1], tuple(message.headers() or ()))
