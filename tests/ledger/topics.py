"""Topics of a run: created, read in full, looked at for what is left to do."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient, NewTopic

from streamfleet.ids import TopicPartition
from streamfleet.records import RawRecord

READ_SECONDS = 60.0


def create_topics(
    bootstrap: str, names: Iterable[str], partitions: int, settings: Mapping[str, str] | None = None
) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = [NewTopic(name, partitions, 1, config={"retention.ms": "-1", **(settings or {})}) for name in names]
    for future in admin.create_topics(wanted).values():
        future.result(30)


def read_topic(
    bootstrap: str,
    topic: str,
    partitions: int,
    *,
    starts: Mapping[int, int] | None = None,
    isolation: str = "read_committed",
) -> list[RawRecord]:
    """Every record, in order per partition, up to where a reader can get now."""
    consumer = Consumer(_reader(bootstrap, isolation))
    begins = starts or {}
    try:
        consumer.assign([Partition(topic, number, begins.get(number, 0)) for number in range(partitions)])
        return _until_the_ends(consumer, partitions)
    finally:
        consumer.close()


def _reader(bootstrap: str, isolation: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "group.id": f"ledger-reader-{uuid.uuid4().hex}",
        "isolation.level": isolation,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 50,
    }


def _until_the_ends(consumer: Consumer, partitions: int) -> list[RawRecord]:
    records: list[RawRecord] = []
    ended: set[int | None] = set()
    deadline = time.monotonic() + READ_SECONDS
    while len(ended) < partitions:
        for message in consumer.consume(1000, 0.1):
            error = message.error()
            if error is None:
                records.append(_raw(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            elif not error.retriable() and error.code() not in (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT):
                raise KafkaException(error)
        if time.monotonic() > deadline:
            raise TimeoutError(f"the ends of {partitions - len(ended)} partitions were not reached in {READ_SECONDS} s")
    return records


def _raw(message: Any) -> RawRecord:
    headers = tuple(message.headers() or ())
    return RawRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        headers,
    )


def committed_offsets(bootstrap: str, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """By partition, where something was committed.

    Asked by a consumer that joins nothing: librdkafka's admin client ends the whole process (2.16, list_consumer_group_offsets)
    when a coordinator answers that it is not ready, as it does after its broker was started.
    """
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "isolation.level": "read_uncommitted",
        "log_level": 0,
    }
    consumer = Consumer(settings)
    try:
        found = consumer.committed([Partition(each.topic, each.partition) for each in partitions], timeout=15)
    finally:
        consumer.close()
    return {TopicPartition(each.topic, each.partition): each.offset for each in found if each.offset >= 0}


def unprocessed_records(bootstrap: str, group: str, topics: Iterable[str], partitions: int) -> int:
    """Records behind the committed offsets. Markers of transactions are none, so the ends of the partitions would not do."""
    names = list(topics)
    committed = committed_offsets(
        bootstrap, group, [TopicPartition(topic, number) for topic in names for number in range(partitions)]
    )
    left = 0
    for topic in names:
        starts = {number: committed.get(TopicPartition(topic, number), 0) for number in range(partitions)}
        left += len(read_topic(bootstrap, topic, partitions, starts=starts))
    return left
