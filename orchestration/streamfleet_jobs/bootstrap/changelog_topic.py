"""The epoch's changelog topic: created, written in full, read back. Called by job.py and verification.py.

Each record goes to its partition by number, never by a partitioner. Writing twice is harmless, since a key has one value; a topic
that holds anything else than this run's rows is refused, and nothing is ever deleted here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka import TopicPartition as Partition

from streamfleet.ids import TopicPartition
from streamfleet.kafka.admin import KafkaAdmin
from streamfleet.ports import OffsetKind, TopicInfo, TopicToCreate
from streamfleet_jobs.bootstrap.spec import BootstrapSpec
from streamfleet_jobs.bootstrap.staging import Row
from streamfleet_jobs.errors import RefusedError, UnavailableError
from streamfleet_jobs.secrets import resolved

_ANSWER_SECONDS = 60.0
_BATCH_SECONDS = 0.1
_COMPACTED = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}


def client_settings(spec: BootstrapSpec) -> dict[str, Any]:
    """With the values of secrets, which are in no spec and no record of a step."""
    settings = resolved(spec.app.client_settings, spec.app.secrets)
    return {"bootstrap.servers": spec.app.bootstrap_servers, **settings}


class ChangelogTopic:
    def __init__(self, spec: BootstrapSpec, admin: KafkaAdmin) -> None:
        self._spec = spec
        self._admin = admin
        self.name = spec.changelog

    def ensure(self) -> TopicInfo:
        """The topic as it is; created if it is not there."""
        spec = self._spec
        configs = _COMPACTED | spec.store.changelog_configs
        wanted = TopicToCreate(self.name, spec.store.partitions, configs, spec.app.replication_factor)
        if self.name not in self._admin.describe_topics([self.name]):
            self._admin.create_topics([wanted])
        found = self._admin.describe_topics([self.name])[self.name]
        if found.partitions != spec.store.partitions:
            raise RefusedError(
                f"topic {self.name} has {found.partitions} partitions, the store {spec.store.partitions}",
                hint="begin a new run, with a new epoch",
            )
        return found

    def ends(self) -> dict[int, int]:
        """The next offset of each partition."""
        partitions = [TopicPartition(self.name, number) for number in range(self._spec.store.partitions)]
        return {
            partition.partition: offset
            for partition, offset in self._admin.list_offsets(partitions, OffsetKind.HIGH_WATERMARK).items()
        }

    def write(self, partition: int, rows: Iterator[Row]) -> int:
        settings = {"enable.idempotence": True, "acks": "all", "linger.ms": 50, "queue.buffering.max.messages": 500_000}
        producer = Producer(client_settings(self._spec) | settings)
        failures: list[str] = []

        def told(error: KafkaError | None, _message: object) -> None:
            if error is not None:
                failures.append(str(error))

        written = 0
        for key, value, timestamp in rows:
            while True:
                try:
                    producer.produce(self.name, value, key, partition, timestamp=timestamp, on_delivery=told)
                    break
                except BufferError:
                    producer.poll(0.1)
            written += 1
            if written % 1000 == 0:
                producer.poll(0)
        if producer.flush(_ANSWER_SECONDS) or failures:
            why = failures[0] if failures else "the broker does not answer"
            raise UnavailableError(f"{self.name}-{partition} could not be written: {why}", hint="run the job again")
        return written

    def latest(self, partition: int, end: int) -> Mapping[bytes, tuple[bytes, int]]:
        """Value and timestamp of each key, of all records before `end`."""
        settings = {
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "fetch.queue.backoff.ms": 2,
        }
        consumer = Consumer(client_settings(self._spec) | settings)
        found: dict[bytes, tuple[bytes, int]] = {}
        try:
            [start] = self._admin.list_offsets([TopicPartition(self.name, partition)], OffsetKind.EARLIEST).values()
            if start >= end:
                return found
            consumer.assign([Partition(self.name, partition, start)])
            for message in self._until_end(consumer, partition):
                _take(found, message)
        finally:
            consumer.close()
        return found

    def _until_end(self, consumer: Consumer, partition: int) -> Iterator[Any]:
        heard_at = time.monotonic()
        while True:
            messages = consumer.consume(10_000, timeout=_BATCH_SECONDS)  # waits for all of them, or that long
            now = time.monotonic()
            heard_at = now if messages else heard_at
            if now - heard_at > _ANSWER_SECONDS:
                raise UnavailableError(f"{self.name}-{partition} cannot be read", hint="run the job again")
            for message in messages:
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 -- its public name in this library
                    return
                else:
                    raise UnavailableError(f"{self.name}-{partition} cannot be read: {error}", hint="run the job again")


def _take(found: dict[bytes, tuple[bytes, int]], message: Any) -> None:
    key, value = message.key(), message.value()
    if value is None:
        found.pop(key, None)
    else:
        found[key] = (value, message.timestamp()[1])
