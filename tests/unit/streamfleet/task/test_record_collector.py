from __future__ import annotations

import pytest

from streamfleet import serdes
from streamfleet.errors import ProductionError, SerializationError
from streamfleet.processor.handlers import HandlerResponse, ProductionHandler
from streamfleet.records import ProducerRecord, Record
from streamfleet.task.record_collector import RecordCollector

RECORD: Record[str, str] = Record("k", "v", 7, (("h", b"1"),))


class Asked(ProductionHandler):
    def __init__(self, answer):
        self.answer = answer
        self.calls = []

    def handle(self, context, record, error):
        self.calls.append((context, record, error))
        return self.answer

    def handle_serialization_error(self, context, record, error, origin):
        self.calls.append((context, record, error, origin))
        return self.answer


@pytest.fixture
def environment(environment_with):
    return environment_with()


@pytest.fixture
def send(environment, text):
    def send_record(record=RECORD, partitioner=None, collector=None):
        (collector or environment.sender).send("snk", "out", record, text, text, partitioner)

    return send_record


def test_record_is_serialized_with_its_timestamp_and_headers(send, producer):
    send()
    assert producer.sent == [ProducerRecord("out", b"k", b"v", 7, (("h", b"1"),), None)]


def test_null_key_and_value_stay_null(send, producer):
    send(Record(None, None, 7))
    assert (producer.sent[0].key, producer.sent[0].value) == (None, None)


def test_partitioner_sees_the_typed_record_and_the_partition_count(send, producer):
    seen = []
    producer.partition_counts["out"] = 4

    def choose(*arguments):
        seen.append(arguments)
        return [2]

    send(partitioner=choose)
    assert seen == [("out", "k", "v", 4)]
    assert [record.partition for record in producer.sent] == [2]


def test_partitioner_may_send_to_several_partitions(send, producer):
    producer.partition_counts["out"] = 4
    send(partitioner=lambda topic, key, value, count: {3, 0})
    assert [record.partition for record in producer.sent] == [0, 3]


def test_partitioner_that_answers_none_leaves_the_choice_to_the_producer(send, producer):
    producer.partition_counts["out"] = 4
    send(partitioner=lambda topic, key, value, count: None)
    assert [record.partition for record in producer.sent] == [None]


def test_record_without_any_partition_is_dropped_and_counted(send, producer, environment):
    producer.partition_counts["out"] = 4
    send(partitioner=lambda topic, key, value, count: [])
    assert producer.sent == []
    assert environment.dropped == {("snk", "no partition"): 1}


@pytest.mark.parametrize(
    ("partitioner", "fact"),
    [
        (lambda topic, key, value, count: [-1], "negative partition -1"),
        (lambda topic, key, value, count: 1 // 0, "ZeroDivisionError"),
        (lambda topic, key, value, count: 3, "returned 3"),
    ],
)
def test_partitioner_that_does_not_answer_properly_is_an_error_of_the_sink(send, producer, partitioner, fact):
    producer.partition_counts["out"] = 4
    with pytest.raises(ProductionError, match=rf"{fact}.*operator snk"):
        send(partitioner=partitioner)


def test_partitioner_needs_a_known_topic(send):
    with pytest.raises(ProductionError, match="partitions of topic out are not known"):
        send(partitioner=lambda topic, key, value, count: [0])


def test_value_that_does_not_fit_tells_types_sink_and_remedy(send):
    with pytest.raises(SerializationError) as caught:
        send(Record("k", 5, 7))
    message = str(caught.value)
    assert "the value of a record for topic out is of type int" in message
    assert "expected text, got int" in message
    assert "operator snk; topic in, partition 3, offset 42" in message
    assert "pass value_serde=..." in message
    assert isinstance(caught.value.__cause__, TypeError)


def test_key_that_does_not_fit_is_called_a_key(send):
    with pytest.raises(SerializationError, match="the key of a record for topic out .* pass key_serde="):
        send(Record("k!", "v", 7))


def test_handler_may_leave_out_what_cannot_be_serialized(environment, producer, send):
    handler = Asked(HandlerResponse.CONTINUE)
    send(Record("k", "v!", 7), collector=RecordCollector(environment, producer, handler))
    context, record, error, origin = handler.calls[0]
    assert (context.operator, record.value, str(error), origin) == ("snk", "v!", "refused v!", "value")
    assert producer.sent == []
    assert environment.dropped == {("snk", "serialization error"): 1}


def test_record_that_the_producer_refuses_fails_the_task(send, producer):
    producer.refused_topics.add("out")
    with pytest.raises(ProductionError, match="a record could not be sent to topic out: out is full"):
        send()


def test_handler_may_leave_out_what_the_producer_refuses(environment, producer, send):
    producer.refused_topics.add("out")
    handler = Asked(HandlerResponse.CONTINUE)
    send(collector=RecordCollector(environment, producer, handler))
    assert handler.calls[0][1] == ProducerRecord("out", b"k", b"v", 7, (("h", b"1"),), None)
    assert environment.dropped == {("snk", "production error"): 1}


def test_retry_of_a_refused_record_fails(environment, producer, send):
    producer.refused_topics.add("out")
    with pytest.raises(ProductionError):
        send(collector=RecordCollector(environment, producer, Asked(HandlerResponse.RETRY)))


@pytest.mark.parametrize("value", ["v", "v!"])
def test_handler_that_does_not_answer_stops_the_task(environment, producer, send, value):
    producer.refused_topics.add("out")
    with pytest.raises(ProductionError, match="the production handler Asked raised TypeError"):
        send(Record("k", value, 7), collector=RecordCollector(environment, producer, Asked(None)))


def test_built_in_handler_sends_a_dead_letter_before_it_fails(environment_with, producer, text):
    environment = environment_with(dead_letter_topic="dlq")
    with pytest.raises(SerializationError):
        environment.sender.send("snk", "out", Record("k", "v!", 7), text, text, None)
    assert [(r.topic, r.key, r.value) for r in producer.sent] == [("dlq", b"raw-k", b"raw-v")]


def test_dead_letter_that_cannot_be_sent_fails_without_asking_again(environment_with, producer, text):
    environment = environment_with(dead_letter_topic="dlq")
    producer.refused_topics.add("dlq")
    with pytest.raises(ProductionError, match="a dead letter could not be sent to topic dlq"):
        environment.sender.send("snk", "out", Record("k", "v!", 7), text, text, None)


def test_production_handler_is_not_asked_about_a_value_of_the_wrong_type(environment, producer, text):
    handler = Asked(HandlerResponse.CONTINUE)
    collector = RecordCollector(environment, producer, handler)
    with pytest.raises(SerializationError, match="the value of a record for topic out is of type int"):
        collector.send("snk", "out", Record("k", 5, 7), text, serdes.string(), None)
    assert handler.calls == []
