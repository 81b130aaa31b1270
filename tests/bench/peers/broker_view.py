"""The broker as the bench sees it: ends of topics, what a group has committed, all records of a topic, and cleaning up."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import Future

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from tests.bench.peers import process_tree
from tests.bench.peers.dataset import PARTITIONS

Offsets = dict[tuple[str, int], int]
LEADER_SECONDS = 60
"""A topic that was just made has no leader yet; on a busy machine for long."""


class BrokerView:
    """One broker."""

    def __init__(self, bootstrap: str, pid: int) -> None:
        self.bootstrap = bootstrap
        self.pid = pid
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    @property
    def cpu_seconds(self) -> float:
        return process_tree.cpu_seconds(self.pid)

    def ends(self, *topics: str) -> Offsets:
        wanted = {TopicPartition(topic, p): OffsetSpec.latest() for topic in topics for p in range(PARTITIONS)}
        deadline = time.monotonic() + LEADER_SECONDS
        while time.monotonic() < deadline:
            try:
                answers = self._admin.list_offsets(wanted, request_timeout=10)
                return {(at.topic, at.partition): future.result().offset for at, future in answers.items()}
            except KafkaException:
                time.sleep(0.1)
        raise RuntimeError(f"the ends of {', '.join(topics)} cannot be read")

    def repartition_topics(self, app_id: str) -> list[str]:
        names = self._admin.list_topics(timeout=10).topics
        # Quix names the changelog behind a repartition topic after it; nobody commits to that.
        return [name for name in names if app_id in name and "repartition" in name and "changelog" not in name]

    def clean(self, app_id: str) -> None:
        names = [name for name in self._admin.list_topics(timeout=10).topics if app_id in name]
        for future in self._admin.delete_topics(names).values() if names else ():
            _settled(future)
        for future in self._admin.delete_consumer_groups([app_id]).values():
            _settled(future)

    def group_is_empty(self, app_id: str) -> bool:
        try:
            described = self._admin.describe_consumer_groups([app_id])[app_id].result()
        except KafkaException:
            return True
        return described.state.name in ("EMPTY", "DEAD")

    def messages(self, topic: str) -> Iterator[Message]:
        """Every committed record, each partition in order."""
        consumer = self._consumer("bench-check", {"enable.partition.eof": True, "fetch.queue.backoff.ms": 20})
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        ended = 0
        while ended < PARTITIONS:
            for message in consumer.consume(1000, 0.05):
                if message.error():
                    ended += 1
                else:
                    yield message
        consumer.close()

    def rows(self, topic: str) -> Iterator[tuple[bytes | None, bytes | None]]:
        return ((message.key(), message.value()) for message in self.messages(topic))

    def group(self, app_id: str) -> GroupView:
        return GroupView(self._consumer(app_id, {}))

    def _consumer(self, group: str, more: dict[str, object]) -> Consumer:
        base = {"bootstrap.servers": self.bootstrap, "group.id": group, "enable.auto.commit": False, "log_level": 0}
        return Consumer({**base, "isolation.level": "read_committed", **more})


class GroupView:
    """What one group has committed. It never joins the group."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def committed(self, *topics: str) -> Offsets:
        wanted = [TopicPartition(topic, p) for topic in topics for p in range(PARTITIONS)]
        try:
            found = self._consumer.committed(wanted, timeout=5)
        except KafkaException:
            return {}
        return {(at.topic, at.partition): at.offset for at in found if at.offset >= 0}

    def close(self) -> None:
        self._consumer.close()


def _settled(future: Future[None]) -> None:
    with contextlib.suppress(KafkaException):  # it is gone already
        future.result(30)
