"""The real cluster keeps the contract that the simulated one keeps."""

import time
import uuid
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer
from tests.contracts.cluster_contract import ClusterContract

import streamfleet as sf
from streamfleet_platform.errors import ConflictError, TransientError
from streamfleet_platform.operations.cluster import TopicWanted
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


def test_a_streams_group_with_members_is_not_taken_for_an_empty_one(broker, tmp_path):
    """The admin client says that there is no such group: what is done to an empty one would be done under its workers."""
    name = f"streams-{uuid.uuid4().hex[:8]}"
    cluster = KafkaCluster({"bootstrap.servers": broker.bootstrap_servers})
    await_coordinator(cluster)
    cluster.create_topics([TopicWanted(f"{name}-in", 2)])
    builder = sf.StreamsBuilder()
    builder.stream(f"{name}-in").group_by_key().count(store="counts")
    config = sf.StreamsConfig(
        application_id=name,
        bootstrap_servers=broker.bootstrap_servers,
        default_key_serde=sf.serdes.string(),
        default_value_serde=sf.serdes.string(),
        state_dir=tmp_path,
        group_protocol="streams",
    )
    assert cluster.group(name).is_empty
    with sf.KafkaStreams(builder.build(), config) as streams:
        streams.start()
        streams.wait_until_running(60)
        assert cluster.groups([name])[name].is_empty  # why it is asked for in another way
        found = cluster.group(name)
        assert not found.is_empty and found.members and found.state != "dead"
        with pytest.raises(ConflictError):
            cluster.delete_group(name)
    assert cluster.group(name).is_empty
    cluster.set_offsets(name, [f"{name}-in"], "latest")
    cluster.delete_group(name)
    cluster.close()
