"""The real cluster keeps the contract that the simulated one keeps."""

import time
import uuid
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer
from tests.contracts.cluster_contract import ClusterContract

from streamfleet_platform.errors import TransientError
from streamfleet_platform.operations.kafka_cluster import KafkaCluster


def await_coordinator(cluster):
    """A broker that is new makes the topic for groups when it is first asked; until then it says to ask again."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return cluster.group("anybody")
        except TransientError:
            assert time.monotonic() < deadline
            time.sleep(0.2)


class TestKafkaCluster(ClusterContract):
    @pytest.fixture
    def cluster(self, broker):
        cluster = KafkaCluster({"bootstrap.servers": broker.bootstrap_servers})
        await_coordinator(cluster)
        yield cluster
        cluster.close()

    @pytest.fixture
    def name(self):
        return f"contract-{uuid.uuid4().hex[:8]}"

    @pytest.fixture
    def put(self, broker):
        def put(topic, records):
            producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
            for number in range(records):
                producer.produce(topic, str(number), partition=number % 2)
            assert producer.flush(30) == 0

        return put

    @pytest.fixture
    def join(self, broker, topic):
        @contextmanager
        def join(group):
            settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "enable.auto.commit": False}
            consumer = Consumer(settings)
            consumer.subscribe([topic])
            deadline = time.monotonic() + 60
            while not consumer.assignment():
                assert time.monotonic() < deadline, "waited for a member"
                consumer.poll(0.1)
            try:
                yield
            finally:
                consumer.close()

        return join
