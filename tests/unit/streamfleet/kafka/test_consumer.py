"""What the consumer makes of librdkafka's messages that carry no record; reading itself is tested on a broker."""

import pytest
from confluent_kafka import KafkaError, Message

from streamfleet.errors import StreamsError
from streamfleet.ids import TopicPartition
from streamfleet.kafka.consumer import KafkaConsumer
from streamfleet.ports import ClientTrouble, OffsetOutOfRange, PartitionUnavailable

T0 = TopicPartition("t", 0)


class Librdkafka:
    """Hands out `messages`; knows nothing of positions."""

    def __init__(self):
        self.messages, self.error_cb = [], None

    def make(self, _kind, _settings, error_cb):
        self.error_cb = error_cb
        return self

    def incremental_assign(self, partitions):
        self.assigned = [(each.topic, each.partition, each.offset) for each in partitions]

    def poll(self, _seconds):
        return self.messages.pop(0) if self.messages else None

    def consume(self, count, _seconds):
        taken, self.messages = self.messages[:count], self.messages[count:]
        return taken

    def position(self, partitions):
        return partitions

    def get_watermark_offsets(self, _partition, cached):
        return (-1001, -1001)


@pytest.fixture
def librdkafka(monkeypatch):
    client = Librdkafka()
    monkeypatch.setattr("streamfleet.kafka.consumer.make_client", client.make)
    return client


@pytest.fixture
def consumer(librdkafka):
    made = KafkaConsumer({})
    made.assign({T0: 5})
    return made


def trouble(code, *, offset=-1001, topic="t", partition=0):
    return Message(topic=topic, partition=partition, offset=offset, error=KafkaError(code, "why"), timestamp=(0, -1))


def record(offset):
    return Message(topic="t", partition=0, offset=offset, key=b"k", value=b"v", timestamp=(1, 1000))


@pytest.mark.parametrize(
    ("message", "event"),
    [
        (trouble(KafkaError._AUTO_OFFSET_RESET, offset=7), OffsetOutOfRange(T0, 7)),
        (trouble(KafkaError._AUTO_OFFSET_RESET, offset=-1001), OffsetOutOfRange(T0, 5)),
        (
            trouble(KafkaError.TOPIC_AUTHORIZATION_FAILED),
            PartitionUnavailable(T0, "TOPIC_AUTHORIZATION_FAILED", "why"),
        ),
        (trouble(KafkaError._BAD_MSG, offset=9), PartitionUnavailable(T0, "_BAD_MSG", "why")),
        (trouble(KafkaError._ALL_BROKERS_DOWN, topic=None, partition=-1), ClientTrouble("_ALL_BROKERS_DOWN", "why")),
    ],
)
def test_what_is_no_record_becomes_an_event_between_the_records(consumer, librdkafka, message, event):
    librdkafka.messages = [record(5), message, record(6)]
    assert [each.offset for each in consumer.poll_batch(100, 10)] == [5, 6]
    assert consumer.take_events() == [event]
    assert consumer.take_events() == []


def test_trouble_with_the_connection_is_an_event(consumer, librdkafka):
    librdkafka.error_cb(KafkaError(KafkaError._TRANSPORT, "refused"))
    assert consumer.take_events() == [ClientTrouble("_TRANSPORT", "refused")]


def test_the_end_of_a_partition_moves_the_position_over_what_the_log_lacks(consumer, librdkafka):
    assert (consumer.position(T0), consumer.lag_records(T0)) == (5, None)
    librdkafka.messages = [trouble(KafkaError._PARTITION_EOF, offset=9)]
    assert consumer.poll_batch(100, 10) == []
    assert (consumer.position(T0), consumer.lag_records(T0), consumer.take_events()) == (9, 0, [])


def test_the_end_of_a_partition_that_was_given_up_is_forgotten(consumer, librdkafka):
    librdkafka.messages = [trouble(KafkaError._PARTITION_EOF, offset=9, partition=3)]
    consumer.poll_batch(100, 10)
    consumer.incremental_assign({TopicPartition("t", 3): 2})
    assert consumer.position(TopicPartition("t", 3)) == 2


@pytest.mark.parametrize("offset", [-1, -2, -1001])
def test_a_symbolic_offset_is_refused(consumer, offset):
    with pytest.raises(StreamsError, match=f"t-1 cannot be read from offset {offset}; look up the offset first"):
        consumer.incremental_assign({TopicPartition("t", 1): offset})


def test_a_batch_of_one_takes_one(consumer, librdkafka):
    librdkafka.messages = [record(5), record(6)]
    assert [each.offset for each in consumer.poll_batch(100, 1)] == [5]
