"""The producer of at-least-once on a real broker: what arrives, and what is said about what does not."""

import random
import time

import pytest

from streamfleet.ids import TopicPartition
from streamfleet.kafka.client_errors import BrokerUnavailableError, RecordRefusedError
from streamfleet.partitioner import partition_for
from streamfleet.records import ProducerRecord

FAR_FUTURE = 2**62
FLUSH_MS = 20_000


def record(topic, value, *, timestamp=1000, key=b"k", headers=(), partition=0):
    return ProducerRecord(topic, key, value, timestamp, headers, partition)


def values(records):
    return [each.value for each in records]


def test_records_without_a_partition_go_where_java_would_put_them(clients, new_topic, read):
    topic = new_topic(7)
    producer = clients.producer()
    keys = [random.Random(number).randbytes(number % 40) for number in range(300)]
    for key in keys:
        producer.send(record(topic, key, key=key, partition=None))
    producer.flush(FLUSH_MS)
    consumer = clients.consumer()
    consumer.assign({TopicPartition(topic, number): 0 for number in range(7)})
    found = {each.value: each.partition for each in read(consumer, 300)}
    # An empty key is a key: only a missing one leaves the choice free.
    assert found == {key: partition_for(key, 7) for key in keys}


def test_every_possible_timestamp_arrives_as_it_was_sent(clients, new_topic, read_topic):
    topic = new_topic()
    moved = []
    producer = clients.producer(on_moved=lambda: moved.append(1))
    now = time.time_ns() // 1_000_000
    sent = [1, 2, 999, 1000, 2**31 - 1, 2**31, 2**32, now - 1, now, now + 60_000]
    for timestamp in sent:
        producer.send(record(topic, b"v", timestamp=timestamp))
    producer.flush(FLUSH_MS)
    assert [each.timestamp for each in read_topic(topic, len(sent))] == sent
    assert not moved


def test_time_zero_is_written_as_time_one_and_counted(clients, new_topic, read_topic):
    topic = new_topic()
    moved = []
    producer = clients.producer(on_moved=lambda: moved.append(1))
    producer.send(record(topic, b"zero", timestamp=0))
    producer.send(record(topic, b"one", timestamp=1))
    producer.flush(FLUSH_MS)
    assert [(each.value, each.timestamp) for each in read_topic(topic, 2)] == [(b"zero", 1), (b"one", 1)]
    assert moved == [1]


def test_no_timestamp_takes_the_time_of_sending(clients, new_topic, read_topic):
    topic = new_topic()
    producer = clients.producer()
    before = time.time_ns() // 1_000_000
    producer.send(record(topic, b"v", timestamp=None))
    producer.flush(FLUSH_MS)
    (found,) = read_topic(topic, 1)
    assert before <= found.timestamp <= time.time_ns() // 1_000_000


@pytest.mark.parametrize("timestamp", [-1, -5, 2**63])
def test_an_impossible_timestamp_is_refused_at_once(clients, new_topic, timestamp):
    with pytest.raises(RecordRefusedError, match=f"has the timestamp {timestamp}"):
        clients.producer().send(record(new_topic(), b"v", timestamp=timestamp))


def test_a_record_refused_by_the_broker_is_reported_alone_and_whole(clients, new_topic, read_topic):
    topic = new_topic()
    producer = clients.producer()
    bad = record(topic, b"bad", timestamp=FAR_FUTURE, headers=(("h", b"1"),))
    for value in (b"a", b"b"):
        producer.send(record(topic, value))
    producer.send(bad)
    for value in (b"c", b"d"):
        producer.send(record(topic, value))
    producer.flush(FLUSH_MS)
    (failure,) = producer.take_failures()
    assert failure.record == bad
    assert isinstance(failure.error, RecordRefusedError)
    assert failure.error.code == "INVALID_TIMESTAMP"
    assert sorted(values(read_topic(topic, 4))) == [b"a", b"b", b"c", b"d"]
    assert producer.take_failures() == []


def test_the_producer_goes_on_after_a_refused_record(clients, new_topic, read_topic):
    topic = new_topic()
    producer = clients.producer()
    for number in range(5):
        producer.send(record(topic, b"bad", timestamp=FAR_FUTURE))
        producer.flush(FLUSH_MS)
        producer.send(record(topic, str(number).encode()))
        producer.flush(FLUSH_MS)
    assert len(producer.take_failures()) == 5
    assert values(read_topic(topic, 5)) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_record_above_the_limit_is_refused_before_it_is_in_a_batch(clients, new_topic, read_topic):
    topic = new_topic(max_message_bytes=5000)
    producer = clients.producer(limits={topic: 5000, "another": 90_000})
    producer.send(record(topic, b"small"))
    with pytest.raises(RecordRefusedError, match="MSG_SIZE_TOO_LARGE"):
        producer.send(record(topic, bytes(5000)))
    producer.send(record(topic, b"small too"))
    producer.flush(FLUSH_MS)
    assert producer.take_failures() == []
    assert values(read_topic(topic, 2)) == [b"small", b"small too"]


def test_topics_with_different_limits_get_what_each_of_them_takes(clients, new_topic, read_topic):
    small, large = new_topic(max_message_bytes=5000), new_topic(max_message_bytes=90_000)
    producer = clients.producer(limits={small: 5000, large: 90_000})
    for number in range(200):  # more than a batch of the small one holds
        producer.send(record(small, bytes(100)))
        if number % 50 == 0:
            producer.send(record(large, bytes(80_000)))
    with pytest.raises(RecordRefusedError, match="MSG_SIZE_TOO_LARGE"):
        producer.send(record(small, bytes(80_000)))
    producer.flush(FLUSH_MS)
    assert producer.take_failures() == []
    assert len(read_topic(small, 200)) == 200
    assert [len(value) for value in values(read_topic(large, 4))] == [80_000] * 4


def test_what_the_client_accepts_under_a_limit_the_broker_accepts_too(clients, new_topic, read_topic):
    limit = 3000
    topic = new_topic(max_message_bytes=limit)
    producer = clients.producer(limits={topic: limit})
    dice = random.Random(7)
    accepted = 0
    for size in [*range(limit - 250, limit), *(dice.randrange(limit) for _ in range(500))]:
        try:
            producer.send(record(topic, bytes(size), headers=(("h", b"1"),) if size % 3 == 0 else ()))
            accepted += 1
        except RecordRefusedError:
            assert size > limit - 200
    producer.flush(FLUSH_MS)
    assert producer.take_failures() == []
    assert len(read_topic(topic, accepted)) == accepted


def test_a_topic_that_does_not_exist_is_a_failed_record_and_not_a_new_topic(clients, admin):
    producer = clients.producer(**{"producer.topic.metadata.propagation.max.ms": 200})
    sent = record("no-such-topic", b"v")
    producer.send(sent)
    producer.flush(FLUSH_MS)
    (failure,) = producer.take_failures()
    assert failure.record == sent
    assert isinstance(failure.error, RecordRefusedError)
    assert producer.partition_count("no-such-topic") is None
    assert "no-such-topic" not in admin.topic_names()


def test_a_partition_that_does_not_exist_is_refused(clients, new_topic):
    topic = new_topic(2)
    producer = clients.producer()
    assert producer.partition_count(topic) == 2
    with pytest.raises(RecordRefusedError, match="_UNKNOWN_PARTITION"):
        _send_and_raise(producer, record(topic, b"v", partition=2))


def _send_and_raise(producer, sent):
    """The client knows the partitions now or at the flush; both are in time."""
    producer.send(sent)
    producer.flush(FLUSH_MS)
    (failure,) = producer.take_failures()
    raise failure.error


def test_a_flush_that_is_not_over_in_time_says_so_and_loses_nothing(clients, new_topic, read_topic, frozen_broker):
    topic = new_topic()
    producer = clients.producer()
    producer.send(record(topic, b"before"))
    producer.flush(FLUSH_MS)
    with frozen_broker():
        producer.send(record(topic, b"meanwhile"))
        with pytest.raises(BrokerUnavailableError, match="1 records were not delivered within 300 ms"):
            producer.flush(300)
    producer.flush(FLUSH_MS)
    assert values(read_topic(topic, 2)) == [b"before", b"meanwhile"]


def test_a_full_queue_waits_for_room(clients, new_topic, read_topic):
    topic = new_topic()
    producer = clients.producer(**{"producer.queue.buffering.max.messages": 10})
    for number in range(100):
        producer.send(record(topic, str(number).encode()))
    producer.flush(FLUSH_MS)
    assert values(read_topic(topic, 100)) == [str(number).encode() for number in range(100)]
