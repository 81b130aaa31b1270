"""The broker of the fixture is a real one: topics, records, groups and transactions work through an ordinary client."""

import uuid

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from streamfleet_devbroker import Cluster


@pytest.fixture
def topic(broker: Cluster) -> str:
    name = f"topic-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(name, num_partitions=2, replication_factor=1)])[name].result(30)
    return name


def consume(broker: Cluster, topic: str, count: int, **settings: str) -> list[bytes]:
    """The values of the first `count` records that a new group reads."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": f"group-{uuid.uuid4().hex[:8]}",
            "auto.offset.reset": "earliest",
            **settings,
        }
    )
    consumer.subscribe([topic])
    values: list[bytes] = []
    try:
        while len(values) < count:
            messages = consumer.consume(count - len(values), timeout=30)
            assert messages, f"only {len(values)} of {count} records arrived"
            for message in messages:
                assert message.error() is None
                values.append(message.value() or b"")
    finally:
        consumer.close()
    return values


def test_records_produced_are_consumed_by_a_group(broker, topic):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(200):
        producer.produce(topic, key=str(number), value=str(number))
    assert producer.flush(30) == 0
    assert sorted(consume(broker, topic, 200)) == sorted(str(number).encode() for number in range(200))


def test_a_committed_transaction_is_read_and_an_aborted_one_is_not(broker, topic):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"writer-{topic}"})
    producer.init_transactions(30)
    for value, commit in ((b"aborted", False), (b"committed", True)):
        producer.begin_transaction()
        producer.produce(topic, value=value, partition=0)
        assert producer.flush(30) == 0  # an abort would drop a record that has not left yet
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    assert consume(broker, topic, 1, **{"isolation.level": "read_committed"}) == [b"committed"]
    assert consume(broker, topic, 2, **{"isolation.level": "read_uncommitted"}) == [b"aborted", b"committed"]


def test_a_misspelt_topic_is_an_error_and_not_a_new_topic(broker):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "message.timeout.ms": 3000})
    failures: list[KafkaError | None] = []
    producer.produce("no-such-topic", value=b"x", on_delivery=lambda error, _: failures.append(error))
    producer.flush(30)
    assert failures[0] is not None
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    assert "no-such-topic" not in admin.list_topics(timeout=30).topics


def test_one_node_refuses_three_replicas(broker):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    with pytest.raises(KafkaException, match="REPLICATION_FACTOR|replication factor"):
        admin.create_topics([NewTopic("three", num_partitions=1, replication_factor=3)])["three"].result(30)
