"""What goes wrong on a cluster: said once, by name, with what to do; nothing lost and nothing half done."""

import time

import pytest

import streamfleet as sf
from streamfleet.kafka_streams import ClientState, KafkaStreams


def counting(source):
    builder = sf.StreamsBuilder()
    builder.stream(source).group_by_key().count(store="counts")
    return builder.build()


def test_a_missing_source_topic_is_named(bench):
    with (
        KafkaStreams(counting(f"{bench.app}-nowhere"), bench.config()) as streams,
        pytest.raises(sf.StreamsError, match=f"{bench.app}-nowhere"),
    ):
        streams.start()


def test_an_internal_topic_with_the_wrong_partition_count_is_refused_with_both_numbers(bench):
    source = bench.topic("in", 3)
    bench.topic("counts-changelog", 2)
    with KafkaStreams(counting(source), bench.config()) as streams, pytest.raises(sf.StreamsError, match="2.*3|3.*2"):
        streams.start()


def test_a_raising_operator_ends_the_app_with_its_error(bench):
    source = bench.topic("in", 1)
    builder = sf.StreamsBuilder()
    builder.stream(source).map_values(int, name="to-number").foreach(lambda key, value: None)
    bench.write(source, [("a", "1"), ("a", "not a number")])
    with KafkaStreams(builder.build(), bench.config()) as streams:
        streams.start()
        wait_for(lambda: streams.state is ClientState.ERROR)
        assert isinstance(streams.failure, sf.ProcessingError)
        assert "operator to-number" in str(streams.failure)
        assert "partition 0, offset 1" in str(streams.failure)


def wait_for(condition, timeout_seconds=30):
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        assert time.monotonic() < deadline, "not reached in time"
        time.sleep(0.02)
