"""A small app on the real broker: words in, counts out."""

import itertools
import time
import uuid
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

import streamfleet as sf
from streamfleet.kafka_streams import KafkaStreams

STRING, LONG = sf.serdes.string(), sf.serdes.long()


class Bench:
    """Topics, input, output and configuration of one test's app; every test has names of its own."""

    def __init__(self, broker, directory):
        self.bootstrap = broker.bootstrap_servers
        self.app = f"app-{uuid.uuid4().hex[:8]}"
        self.directory = directory
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap})
        self.producer = Producer({"bootstrap.servers": self.bootstrap, "partitioner": "murmur2_random"})
        self._workers = itertools.count()

    def topic(self, name, partitions=2):
        full = f"{self.app}-{name}"
        for future in self.admin.create_topics([NewTopic(full, partitions, 1)]).values():
            future.result(10)
        return full

    def write(self, topic, records):
        for key, value in records:
            self.producer.produce(topic, value, key)
        assert self.producer.flush(10) == 0

    def config(self, worker="w", **settings):
        return sf.StreamsConfig(
            application_id=self.app,
            bootstrap_servers=self.bootstrap,
            default_key_serde=STRING,
            default_value_serde=STRING,
            state_dir=self.directory / worker,
            **({"commit_interval_ms": 100, "session_timeout_ms": 6000, "heartbeat_interval_ms": 100} | settings),
        )

    @contextmanager
    def running(self, topology, config=None):
        with KafkaStreams(topology, config or self.config()) as streams:
            streams.start()
            streams.wait_until_running(30)
            yield streams

    def read(self, topic, until, timeout_seconds=30):
        """All committed records of a topic, in order per partition, as soon as `until(records)` holds."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": f"reader-{uuid.uuid4().hex}",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([topic])
        records, deadline = [], time.monotonic() + timeout_seconds
        try:
            while not until(records):
                assert time.monotonic() < deadline, f"not reached in {timeout_seconds} s: {records[-20:]}"
                message = consumer.poll(0.2)
                if message is not None and message.error() is None:
                    records.append((message.key(), message.value()))
        finally:
            consumer.close()
        return records


@pytest.fixture
def bench(broker, tmp_path):
    return Bench(broker, tmp_path)


def newest(records):
    return dict(records)
