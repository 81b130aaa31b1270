from __future__ import annotations

from datetime import timedelta

import pytest

from streamfleet.errors import DeserializationError, TimestampError
from streamfleet.ids import TopicPartition
from streamfleet.processor.handlers import DeserializationHandler, HandlerResponse, HandlerResult
from streamfleet.processor.timestamps import (
    FailOnInvalidTimestamp,
    LogAndSkipOnInvalidTimestamp,
    SkipFutureTimestamp,
    TimestampExtractor,
    UsePartitionTimeOnInvalidTimestamp,
)
from streamfleet.records import ProducerRecord, RawRecord
from streamfleet.task.record_deserializer import RecordDeserializer
from streamfleet.task.record_queue import RecordQueue
from streamfleet.testing.manual_clock import ManualClock
from streamfleet.topology.nodes import SourceNode


@pytest.fixture
def environment(environment_with):
    return environment_with(deserialization_handler="continue")


def queue_of(environment, extractor=None, handler=None):
    source = SourceNode("src", ("in",))
    deserializer = RecordDeserializer(source, environment, handler or environment.handlers.deserialization)
    return RecordQueue(TopicPartition("in", 0), "src", deserializer, extractor or FailOnInvalidTimestamp(), environment)


def test_records_come_out_in_offset_order_with_their_timestamps(environment, raw):
    queue = queue_of(environment)
    queue.add([raw("a", 5, 0), raw("b", 3, 1)])
    assert len(queue) == 2
    assert [(value, context.timestamp) for context, _, value in queue.take(9)] == [("a", 5), ("b", 3)]
    assert queue.take(9) == []


def test_no_more_than_asked_for_is_taken_and_the_rest_waits(environment, raw):
    queue = queue_of(environment)
    queue.add([raw("a", 5, 0), raw("b", 3, 1), raw("c", 4, 2)])
    assert [value for _, _, value in queue.take(2)] == ["a", "b"]
    assert (len(queue), queue.taken_offset, queue.head_offset, queue.head_timestamp) == (1, 1, 2, 4)


def test_what_follows_the_head_must_be_older_than_the_bound(environment, raw):
    queue = queue_of(environment)
    queue.add([raw("a", 9, 0), raw("b", 3, 1), raw("c", 4, 2), raw("d", 1, 3)])
    assert [value for _, _, value in queue.take(9, before=4)] == ["a", "b"]
    assert queue.head_offset == 2


def test_the_context_of_a_record_says_where_it_came_from(environment, raw):
    queue = queue_of(environment)
    queue.add([raw("a", 5, 3)])
    assert queue.take(1) == [(RawRecord("in", 0, 3, 5, b"k", b"a"), "k", "a")]


def test_null_keys_and_values_are_not_shown_to_the_serdes(environment, raw):
    queue = queue_of(environment)
    queue.add([raw(None, 1, key=None)])
    [(_, key, value)] = queue.take(1)
    assert (key, value) == (None, None)


def test_partition_time_is_the_highest_timestamp_that_was_taken(environment, raw):
    queue = queue_of(environment)
    queue.add([raw("a", 5, 0), raw("b", 9, 1), raw("c", 7, 2)])
    seen = []
    while queue.take(1):
        seen.append(queue.partition_time)
    assert seen == [5, 9, 9]


def test_extractor_is_given_the_partition_time_of_the_records_before(environment, raw):
    queue = queue_of(environment, UsePartitionTimeOnInvalidTimestamp())
    queue.add([raw("a", 5, 0), raw("b", -1, 1), raw("c", 3, 2), raw("d", -1, 3)])
    assert [context.timestamp for context, _, _ in queue.take(4)] == [5, 5, 3, 5]


def test_negative_timestamp_drops_the_record_and_counts_it(environment, raw):
    queue = queue_of(environment, LogAndSkipOnInvalidTimestamp())
    queue.add([raw("a", -1, 0), raw("b", 3, 1)])
    assert queue.head_offset == 1
    assert environment.dropped == {("src", "negative timestamp"): 1}


def test_F43_F44_records_from_the_far_future_are_dropped_counted_and_move_no_time(environment, raw):
    queue = queue_of(environment, SkipFutureTimestamp(timedelta(milliseconds=100), clock=ManualClock(1000)))
    queue.add([raw("a", 5, 0), raw("b", 1101, 1), raw("c", 2**62, 2), raw("d", 1100, 3), raw("e", 7, 4)])
    assert [context.timestamp for context, _, _ in queue.take(9)] == [5, 1100, 7]
    assert queue.partition_time == 1100
    assert environment.dropped == {("src", "timestamp in the future"): 2}


def test_F43_a_limit_for_the_future_leaves_the_past_to_another_extractor(environment, raw):
    queue = queue_of(environment, SkipFutureTimestamp(0, LogAndSkipOnInvalidTimestamp(), ManualClock(1000)))
    queue.add([raw("a", -5, 0), raw("b", 1001, 1), raw("c", 1000, 2)])
    assert [context.timestamp for context, _, _ in queue.take(9)] == [1000]
    assert environment.dropped == {("src", "negative timestamp"): 1, ("src", "timestamp in the future"): 1}


def test_unreadable_record_is_dropped_and_counted(environment, raw):
    queue = queue_of(environment)
    queue.add([raw("what?", 1, 0), raw("b", 3, 1)])
    assert [value for _, _, value in queue.take(9)] == ["b"]
    assert environment.dropped == {("src", "deserialization error"): 1}


def test_last_unusable_record_stays_at_the_head_so_that_its_offset_is_committed(environment, raw):
    queue = queue_of(environment)
    queue.add([raw("one?", 1, 0), raw("two?", 2, 1)])
    assert len(queue) == 1
    assert (queue.head_offset, queue.head_timestamp) == (1, -1)
    assert queue.take(9) == []
    assert (queue.partition_time, queue.taken_offset, len(queue)) == (-1, 1, 0)


def test_unusable_record_behind_a_good_one_is_taken_by_itself(environment, raw):
    queue = queue_of(environment)
    queue.add([raw("a", 1, 0), raw("b?", 2, 1)])
    assert [value for _, _, value in queue.take(9)] == ["a"]
    assert (len(queue), queue.taken_offset) == (1, 0)
    queue.add([raw("c", 3, 2)])
    assert queue.take(9) == []
    assert (queue.taken_offset, queue.head_offset) == (1, 2)


def test_unreadable_record_fails_the_task_if_the_handler_says_so(environment_with, raw):
    queue = queue_of(environment_with())
    with pytest.raises(DeserializationError) as caught:
        queue.add([raw("what?", 1, 4)])
    error = caught.value
    assert (error.operator, error.topic, error.partition, error.offset) == ("src", "in", 0, 4)
    assert "the value of an input record does not fit the source's value serde: refused what?" in str(error)
    assert "deserialization.exception.handler" in str(error)
    assert isinstance(error.__cause__, ValueError)


def test_error_says_whether_it_was_the_key(environment_with, raw):
    with pytest.raises(DeserializationError, match="the key of an input record does not fit the source's key serde"):
        queue_of(environment_with()).add([raw("v", 1, key="k?")])


def test_dead_letter_holds_the_record_as_it_was_read(environment_with, raw, producer):
    queue = queue_of(environment_with(dead_letter_topic="dlq"))
    with pytest.raises(DeserializationError):
        queue.add([raw("what?", 1, 4)])
    (letter,) = producer.sent
    assert (letter.topic, letter.key, letter.value, letter.timestamp) == ("dlq", b"k", b"what?", 1)
    assert ("__streams.errors.offset", b"4") in letter.headers


def test_handler_may_write_its_own_dead_letters(environment, raw, producer):
    class Keep(DeserializationHandler):
        def handle(self, context, record, error):
            return HandlerResult(HandlerResponse.CONTINUE, (ProducerRecord("bad", record.key, record.value, None),))

    queue_of(environment, handler=Keep()).add([raw("what?", 1)])
    assert producer.sent == [ProducerRecord("bad", b"k", b"what?", None)]


def test_handler_that_raises_stops_the_task(environment, raw):
    class Broken(DeserializationHandler):
        def handle(self, context, record, error):
            raise RuntimeError("broken")

    with pytest.raises(DeserializationError, match=r"handler .*Broken raised RuntimeError\('broken'\)"):
        queue_of(environment, handler=Broken()).add([raw("what?", 1)])


def test_extractor_that_raises_is_named_with_the_record(environment, raw):
    class Broken(TimestampExtractor):
        def extract(self, record, partition_time):
            raise KeyError("time")

    with pytest.raises(
        TimestampError, match=r"Broken raised KeyError: 'time' \(operator src; topic in, partition 0, offset 6\)"
    ):
        queue_of(environment, Broken()).add([raw("a", 1, 6)])


def test_policy_of_a_built_in_extractor_passes_unchanged(environment, raw):
    with pytest.raises(TimestampError, match="invalid \\(negative\\) timestamp -5"):
        queue_of(environment).add([raw("a", -5)])


def test_cleared_queue_forgets_its_time(environment, raw):
    queue = queue_of(environment)
    queue.add([raw("a", 5), raw("b", 6)])
    queue.take(1)
    queue.clear()
    assert (len(queue), queue.partition_time, queue.head_offset) == (0, -1, None)
