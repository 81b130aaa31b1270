"""Three nodes on request form one cluster that survives the loss of a node."""

import time

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic


def in_sync(admin: AdminClient, topic: str) -> set[int]:
    """The replicas in sync; none while the node that was asked has not heard of the topic."""
    partitions = admin.list_topics(topic, timeout=30).topics[topic].partitions
    return set(partitions[0].isrs) if partitions else set()


def wait_for_in_sync(admin: AdminClient, topic: str, expected: set[int]) -> None:
    deadline = time.monotonic() + 60
    while in_sync(admin, topic) != expected:
        assert time.monotonic() < deadline, f"in sync: {in_sync(admin, topic)}, expected {expected}"
        time.sleep(0.1)


def test_three_nodes_form_one_cluster_and_replicate(broker_cluster):
    admin = AdminClient({"bootstrap.servers": broker_cluster.bootstrap_servers})
    assert set(admin.list_topics(timeout=30).brokers) == {1, 2, 3}
    admin.create_topics([NewTopic("replicated", num_partitions=1, replication_factor=3)])["replicated"].result(30)
    wait_for_in_sync(admin, "replicated", {1, 2, 3})


def test_a_killed_node_is_missed_and_comes_back_with_its_data(broker_cluster):
    admin = AdminClient({"bootstrap.servers": broker_cluster.bootstrap_servers})
    config = {"min.insync.replicas": "2"}
    admin.create_topics([NewTopic("survivor", 1, 3, config=config)])["survivor"].result(30)
    wait_for_in_sync(admin, "survivor", {1, 2, 3})

    broker_cluster.kill_node(3)
    assert broker_cluster.alive_nodes() == (1, 2)
    producer = Producer({"bootstrap.servers": broker_cluster.bootstrap_servers, "acks": "all"})
    producer.produce("survivor", value=b"written while a node was away")
    assert producer.flush(60) == 0

    broker_cluster.start_node(3)
    wait_for_in_sync(admin, "survivor", {1, 2, 3})
