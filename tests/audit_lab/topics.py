"""Topics that the broker really compacts: made, written, and waited for until the cleaner's own checkpoint says how far it is."""

import contextlib
import time
import uuid

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType


class Lab:
    def __init__(self, broker):
        self.broker = broker
        self.servers = broker.bootstrap_servers
        self.admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

    def create(self, name, partitions, **configs):
        return self.create_exactly(f"audit-{name}-{uuid.uuid4().hex[:6]}", partitions, **configs)

    def create_exactly(self, topic, partitions=1, **configs):
        settings = {key.replace("_", "."): str(value) for key, value in configs.items()}
        new = NewTopic(topic, partitions, 1, config={"cleanup.policy": "compact", **settings})
        self.admin.create_topics([new])[topic].result(20)
        return topic

    def alter(self, kind, name, **configs):
        """A value of None: back to the default."""
        entries = [
            ConfigEntry(
                key.replace("_", "."),
                None if value is None else str(value),
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for key, value in configs.items()
        ]
        resource = ConfigResource(kind, name, incremental_configs=entries)
        self.admin.incremental_alter_configs([resource])[resource].result(20)

    @contextlib.contextmanager
    def quick_cleaner(self):
        """The cleaner looks for work five times a second, not every 15."""
        nodes = [str(node) for node in self.admin.list_topics(timeout=20).brokers]
        for node in nodes:
            self.alter(ResourceType.BROKER, node, log_cleaner_backoff_ms=200)
        try:
            yield
        finally:
            for node in nodes:
                self.alter(ResourceType.BROKER, node, log_cleaner_backoff_ms=None)

    def write(self, topic, records, **settings):
        """(key, value) or (key, value, partition)."""
        producer = Producer({"bootstrap.servers": self.servers, "partitioner": "murmur2", "log_level": 0, **settings})
        for record in records:
            key, value, *place = record
            options = {"partition": place[0]} if place else {}
            while True:
                try:
                    producer.produce(topic, key=key, value=value, **options)
                    break
                except BufferError:
                    producer.poll(0.05)
            producer.poll(0)
        assert producer.flush(60) == 0

    def write_in_transactions(self, topic, records, size=2000):
        """(key, value), so many per transaction; every fifth transaction is written twice, and aborted the first time."""
        settings = {"transactional.id": uuid.uuid4().hex, "partitioner": "murmur2", "log_level": 0}
        producer = Producer({"bootstrap.servers": self.servers, **settings})
        producer.init_transactions(30)
        for number, begin in enumerate(range(0, len(records), size)):
            for is_aborted in (True, False) if number % 5 == 4 else (False,):
                producer.begin_transaction()
                for key, value in records[begin : begin + size]:
                    producer.produce(topic, key=key, value=value)
                assert producer.flush(60) == 0
                (producer.abort_transaction if is_aborted else producer.commit_transaction)(30)

    def first_dirty(self, topic):
        """By partition, as the cleaner's checkpoint has it on disk: the truth."""
        for node in self.broker.nodes:
            file = node.data_directory / "cleaner-offset-checkpoint"
            if file.exists():
                lines = [line.split() for line in file.read_text().splitlines()[2:]]
                return {int(number): int(offset) for name, number, offset in lines if name == topic}
        return {}

    def until_cleaned(self, topic, holds, timeout_seconds=60):
        """Waits until holds(first dirty offsets) is true twice in a row, half a second apart."""
        deadline, last = time.monotonic() + timeout_seconds, None
        while True:
            now = self.first_dirty(topic)
            if now == last and holds(now):
                return now
            assert time.monotonic() < deadline, f"{topic} was not cleaned: {now}"
            last = now
            time.sleep(0.5)
