"""The consumer on a real broker: what it reads, where it is, and what it says when it cannot read."""

import time

import pytest

from streamfleet.errors import StreamsError
from streamfleet.ids import TopicPartition
from streamfleet.ports import ClientTrouble, OffsetKind, OffsetOutOfRange
from streamfleet.records import ProducerRecord


def numbers(count, start=0):
    return [str(number).encode() for number in range(start, start + count)]


def poll_until_event(consumer):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        assert consumer.poll_batch(100, 10) == []
        if events := [event for event in consumer.take_events() if not isinstance(event, ClientTrouble)]:
            return events
    raise AssertionError("no event")


def test_records_come_in_order_with_all_their_parts(clients, new_topic, read):
    topic = new_topic()
    producer = clients.producer()
    headers = (("a", b"1"), ("b", None), ("a", b""))
    producer.send(ProducerRecord(topic, b"key", b"value", 1234, headers, 0))
    producer.send(ProducerRecord(topic, None, None, 5678, (), 0))
    producer.flush(20_000)
    consumer = clients.consumer()
    consumer.assign({TopicPartition(topic, 0): 0})
    first, second = read(consumer, 2)
    assert (first.topic, first.partition, first.offset, first.timestamp) == (topic, 0, 0, 1234)
    assert (first.key, first.value, first.headers) == (b"key", b"value", headers)
    assert (second.offset, second.timestamp, second.key, second.value, second.headers) == (1, 5678, None, None, ())


def test_a_poll_does_not_wait_for_a_full_batch(clients, new_topic, read, fill):
    topic = new_topic()
    fill(topic, numbers(5))
    consumer = clients.consumer()
    consumer.assign({TopicPartition(topic, 0): 0})
    began = time.monotonic()
    records: list = []
    while len(records) < 5:
        records += consumer.poll_batch(10_000, 500)
    assert time.monotonic() - began < 5


def test_a_poll_gives_no_more_than_asked_for(clients, new_topic, read, fill):
    topic = new_topic()
    fill(topic, numbers(25))
    consumer = clients.consumer()
    consumer.assign({TopicPartition(topic, 0): 0})
    batches = []
    while sum(batches) < 25:
        batches.append(len(consumer.poll_batch(200, 10)))
    assert max(batches) <= 10


@pytest.mark.parametrize("offset", [3, 21, 10_000])
def test_an_offset_outside_the_log_is_told_and_nothing_is_read(clients, admin, new_topic, read, offset, fill):
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    fill(topic, numbers(20))
    admin.delete_records({partition: 10})
    consumer = clients.consumer("restore")
    consumer.assign({partition: offset})
    assert poll_until_event(consumer) == [OffsetOutOfRange(partition, offset)]
    consumer.seek(partition, 10)
    assert [record.offset for record in read(consumer, 10)] == list(range(10, 20))


def test_the_end_of_the_log_is_not_outside_it(clients, new_topic, read, fill):
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    fill(topic, numbers(3))
    consumer = clients.consumer("restore")
    consumer.assign({partition: 3})
    deadline = time.monotonic() + 20
    while consumer.lag_records(partition) != 0 and time.monotonic() < deadline:
        assert consumer.poll_batch(50, 10) == []
    assert (consumer.take_events(), consumer.position(partition)) == ([], 3)
    fill(topic, numbers(1))
    assert [record.offset for record in read(consumer, 1)] == [3]


def test_partitions_come_and_go_without_disturbing_the_others(clients, new_topic, read, fill):
    topic = new_topic(3)
    one, two, three = (TopicPartition(topic, number) for number in range(3))
    for partition in (one, two, three):
        fill(topic, numbers(10), partition.partition)
    consumer = clients.consumer()
    consumer.assign({one: 0})
    seen = read(consumer, 10)
    consumer.incremental_assign({two: 4})
    seen += read(consumer, 6)
    consumer.incremental_unassign([one, three])
    consumer.incremental_assign({three: 9})
    fill(topic, numbers(2), 0)
    fill(topic, numbers(2), 1)
    seen += read(consumer, 3)
    by_partition = {p: [r.offset for r in seen if r.partition == p.partition] for p in (one, two, three)}
    assert by_partition == {one: list(range(10)), two: list(range(4, 12)), three: [9]}
    assert consumer.assignment() == {two, three}


def test_assign_replaces_what_was_assigned(clients, new_topic, read, fill):
    topic = new_topic(2)
    fill(topic, numbers(3), 0)
    fill(topic, numbers(3), 1)
    consumer = clients.consumer()
    consumer.assign({TopicPartition(topic, 0): 0})
    read(consumer, 3)
    consumer.assign({TopicPartition(topic, 1): 1})
    assert [(record.partition, record.offset) for record in read(consumer, 2)] == [(1, 1), (1, 2)]


def test_a_partition_cannot_be_assigned_twice(clients, new_topic):
    partition = TopicPartition(new_topic(), 0)
    consumer = clients.consumer()
    consumer.assign({partition: 0})
    with pytest.raises(StreamsError, match="assigned already; use seek"):
        consumer.incremental_assign({partition: 5})


def test_pausing_loses_and_repeats_nothing(clients, new_topic, read, fill):
    topic = new_topic(2)
    one, two = TopicPartition(topic, 0), TopicPartition(topic, 1)
    fill(topic, numbers(200), 0)
    fill(topic, numbers(200), 1)
    consumer = clients.consumer()
    consumer.assign({one: 0, two: 0})
    seen = read(consumer, 1, max_records=20)
    for _ in range(5):
        consumer.pause([one])
        while_paused = consumer.poll_batch(50, 20)
        assert {record.partition for record in while_paused} <= {1}
        consumer.resume([one])
        seen += while_paused + consumer.poll_batch(200, 20)
    seen += read(consumer, 400 - len(seen))
    for number in (0, 1):
        assert [record.offset for record in seen if record.partition == number] == list(range(200))


def test_a_partition_paused_before_its_first_record_begins_where_it_was_told(clients, new_topic, read, fill):
    topic = new_topic(2)
    one, two = TopicPartition(topic, 0), TopicPartition(topic, 1)
    fill(topic, numbers(50), 0)
    fill(topic, numbers(50), 1)
    consumer = clients.consumer()
    consumer.assign({one: 7, two: 0})
    first = read(consumer, 1, max_records=1)[0]
    other = one if first.partition == 1 else two
    begin = 7 if other == one else 0
    consumer.pause([other])
    consumer.resume([other])
    seen = []
    while len(seen) < 50 - begin:
        seen += [record.offset for record in read(consumer, 1) if record.partition == other.partition]
    assert seen == list(range(begin, 50))
    assert consumer.take_events() == []


def test_a_seek_works_on_a_partition_that_was_assigned_a_moment_ago(clients, new_topic, read, fill):
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    fill(topic, numbers(10))
    consumer = clients.consumer()
    consumer.assign({partition: 0})
    consumer.seek(partition, 7)
    assert consumer.position(partition) == 7
    assert [record.offset for record in read(consumer, 3)] == [7, 8, 9]
    consumer.seek(partition, 2)
    assert [record.offset for record in read(consumer, 8)] == list(range(2, 10))


def test_a_seek_keeps_a_paused_partition_paused(clients, new_topic, read, fill):
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    fill(topic, numbers(10))
    consumer = clients.consumer()
    consumer.assign({partition: 0})
    consumer.pause([partition])
    consumer.seek(partition, 5)
    assert consumer.poll_batch(500, 10) == []
    consumer.resume([partition])
    assert read(consumer, 5)[0].offset == 5


@pytest.mark.parametrize("first_to_the_end", [False, True])
def test_a_partition_that_was_given_up_while_it_was_paused_is_read_when_it_is_assigned_again(
    clients, new_topic, read, fill, first_to_the_end
):
    """As when a copy that gave way to a restore becomes the active task: librdkafka would leave it paused."""
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    fill(topic, numbers(10))
    consumer = clients.consumer()
    consumer.assign({partition: 0})
    if first_to_the_end:
        read(consumer, 10)
    consumer.pause([partition])
    consumer.incremental_unassign([partition])
    consumer.incremental_assign({partition: 5})
    assert read(consumer, 5)[0].offset == 5


def test_the_position_counts_aborted_records_and_transaction_markers(clients, admin, new_topic, read):
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    producer = clients.transactional()
    for value, commit in ((b"a", True), (b"b", False), (b"c", True), (b"d", False)):
        producer.begin()
        producer.send(ProducerRecord(topic, b"k", value, 1, (), 0))
        producer.flush(20_000)
        (producer.commit if commit else producer.abort)(20_000)
    end, deadline = 8, time.monotonic() + 20
    while admin.list_offsets([partition], OffsetKind.HIGH_WATERMARK) != {partition: end}:
        assert time.monotonic() < deadline  # the last marker is written a moment after the transaction has ended
    consumer = clients.consumer("restore")
    consumer.assign({partition: 0})
    assert [record.value for record in read(consumer, 2)] == [b"a", b"c"]
    while consumer.position(partition) < end:
        assert time.monotonic() < deadline
        assert consumer.poll_batch(50, 10) == []
    assert (consumer.position(partition), consumer.lag_records(partition)) == (8, 0)


def test_an_open_transaction_is_not_read_and_is_no_lag(clients, admin, new_topic, read, fill):
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    fill(topic, numbers(4))
    producer = clients.transactional()
    producer.begin()
    producer.send(ProducerRecord(topic, b"k", b"open", 1, (), 0))
    producer.flush(20_000)
    assert admin.list_offsets([partition], OffsetKind.HIGH_WATERMARK) == {partition: 5}
    consumer = clients.consumer()
    consumer.assign({partition: 0})
    assert [record.value for record in read(consumer, 4)] == numbers(4)
    deadline = time.monotonic() + 20
    while consumer.lag_records(partition) != 0:
        assert time.monotonic() < deadline
        assert consumer.poll_batch(50, 10) == []
    producer.commit(20_000)
    assert [record.value for record in read(consumer, 1)] == [b"open"]


def test_at_least_once_reads_open_transactions(clients, new_topic, read_topic):
    topic = new_topic()
    producer = clients.transactional()
    producer.begin()
    producer.send(ProducerRecord(topic, b"k", b"open", 1, (), 0))
    producer.flush(20_000)
    assert [record.value for record in read_topic(topic, 1, exactly_once=False)] == [b"open"]


def test_lag_counts_what_is_still_to_be_read(clients, new_topic, read, fill):
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    fill(topic, numbers(30))
    consumer = clients.consumer()
    consumer.assign({partition: 0})
    got = len(read(consumer, 1, max_records=10))
    assert (got, consumer.lag_records(partition)) == (got, 30 - got)
    with pytest.raises(StreamsError, match="not assigned"):
        consumer.position(TopicPartition(topic, 9))
