from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamfleet.ids import TopicPartition
from streamfleet.processor.timestamps import FailOnInvalidTimestamp
from streamfleet.task.partition_group import PartitionGroup
from streamfleet.task.record_deserializer import RecordDeserializer
from streamfleet.task.record_queue import RecordQueue
from streamfleet.topology.nodes import SourceNode

A, B, C = (TopicPartition(topic, 0) for topic in "abc")


@pytest.fixture
def group_of(environment_with):
    environment = environment_with()

    def build(*partitions, max_task_idle_ms=0, lag_of=lambda partition: 0):
        queues = {}
        for partition in partitions:
            source = SourceNode(partition.topic, (partition.topic,))
            deserializer = RecordDeserializer(source, environment, environment.handlers.deserialization)
            queues[partition] = RecordQueue(partition, source.name, deserializer, FailOnInvalidTimestamp(), environment)
        return PartitionGroup(queues, max_task_idle_ms, lag_of)

    return build


def values(group: PartitionGroup, limit: int = 1) -> list[str]:
    taken = []
    while (item := group.take(limit)) is not None:
        taken += [value for _, _, value in item[1]]
    return taken


def test_smallest_head_timestamp_goes_first(group_of, raw):
    group = group_of(A, B)
    group.add(A, [raw("a3", 3), raw("a9", 9)])
    group.add(B, [raw("b1", 1), raw("b5", 5)])
    assert values(group) == ["b1", "a3", "b5", "a9"]


def test_records_of_one_partition_keep_their_order(group_of, raw):
    group = group_of(A, B)
    group.add(A, [raw("a9", 9), raw("a1", 1)])
    group.add(B, [raw("b5", 5)])
    assert values(group) == ["b5", "a9", "a1"]


def test_of_equal_heads_the_partition_that_filled_first_goes_first(group_of, raw):
    group = group_of(A, B)
    group.add(B, [raw("b", 5)])
    group.add(A, [raw("a", 5)])
    assert values(group) == ["b", "a"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from([A, B, C]), st.integers(0, 9)), max_size=30), st.integers(1, 9))
def test_every_record_comes_out_once_and_none_overtakes_a_smaller_head(group_of, raw, arrivals, limit):
    group, by_runs = group_of(A, B, C), group_of(A, B, C)
    waiting: dict[TopicPartition, list[tuple[int, str]]] = {partition: [] for partition in (A, B, C)}
    order = []
    for number, (partition, timestamp) in enumerate(arrivals):
        group.add(partition, [raw(str(number), timestamp)])
        by_runs.add(partition, [raw(str(number), timestamp)])
        waiting[partition].append((timestamp, str(number)))
    while (item := group.take(1)) is not None:
        queue, [(context, _, value)] = item
        heads = [line[0][0] for line in waiting.values() if line]
        assert waiting[queue.partition].pop(0) == (context.timestamp, value)
        assert context.timestamp == min(heads)
        order.append(value)
    assert not any(waiting.values())
    assert values(by_runs, limit) == order


def test_stream_time_is_the_highest_timestamp_taken(group_of, raw):
    group = group_of(A)
    group.add(A, [raw("x", 5), raw("y", 3)])
    assert group.stream_time_ms == -1
    group.take(1)
    group.take(1)
    assert group.stream_time_ms == 5


def test_committed_partition_time_seeds_stream_time(group_of):
    group = group_of(A, B)
    group.set_partition_time(A, 70)
    group.set_partition_time(B, 30)
    assert (group.stream_time_ms, group.partition_time(B)) == (70, 30)


def test_group_without_records_is_never_ready(group_of):
    assert not group_of(A, max_task_idle_ms=-1).is_ready(0)
    assert not group_of(A, max_task_idle_ms=0).is_ready(0)


def test_all_partitions_buffered_is_ready_at_once(group_of, raw):
    group = group_of(A, B, max_task_idle_ms=100, lag_of=lambda partition: None)
    group.add(A, [raw("a", 1)])
    group.add(B, [raw("b", 1)])
    assert group.is_ready(0)


def test_idle_time_zero_goes_on_when_the_empty_partition_has_no_lag(group_of, raw):
    group = group_of(A, B, max_task_idle_ms=0)
    group.add(A, [raw("a", 1)])
    assert group.is_ready(0)


@pytest.mark.parametrize("lag", [None, 3])
def test_partition_with_data_on_the_broker_is_waited_for_without_limit(group_of, raw, lag):
    group = group_of(A, B, max_task_idle_ms=0, lag_of=lambda partition: lag)
    group.add(A, [raw("a", 1)])
    assert not group.is_ready(0)
    assert not group.is_ready(10**9)


def test_idle_time_of_minus_one_never_waits(group_of, raw):
    group = group_of(A, B, max_task_idle_ms=-1, lag_of=lambda partition: 3)
    group.add(A, [raw("a", 1)])
    assert group.is_ready(0)


def test_empty_partition_is_waited_for_as_long_as_configured(group_of, raw):
    group = group_of(A, B, max_task_idle_ms=100)
    group.add(A, [raw("a", 1)])
    assert [group.is_ready(now_ms) for now_ms in (0, 50, 99, 100)] == [False, False, False, True]


def test_waiting_begins_anew_after_the_partition_had_data(group_of, raw):
    group = group_of(A, B, max_task_idle_ms=100)
    group.add(A, [raw("a", 9)])
    assert not group.is_ready(0)
    group.add(B, [raw("b", 1)])
    assert group.is_ready(50)
    group.take(1)
    assert [group.is_ready(now_ms) for now_ms in (60, 159, 160)] == [False, False, True]
