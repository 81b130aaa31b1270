"""Windowed keys are partitioned by their inner key, as in the original."""

import pytest

import streamfleet as sf
from streamfleet.partitioner import partition_for

STRING = sf.serdes.string()


def sink_partitioner(windows, **to_options):
    builder = sf.StreamsBuilder()
    counts = builder.stream("in").group_by_key(key_serde=STRING).windowed_by(windows).count()
    counts.to_stream().to("out", name="sink", **to_options)
    return builder.build().nodes["sink"].partitioner


@pytest.mark.parametrize(
    ("windows", "window"),
    [
        (sf.TimeWindows(10, 0), sf.TimeWindow(20, 30)),
        (sf.SlidingWindows(10, 0), sf.TimeWindow(21, 31)),
        (sf.SessionWindows(10, 0), sf.SessionWindow(5, 25)),
    ],
)
def test_all_windows_of_a_key_go_to_the_partition_of_the_key(windows, window):
    partitioner = sink_partitioner(windows)
    for key in ("a", "b", "some-key"):
        assert partitioner("out", sf.Windowed(key, window), 1, 7) == (partition_for(key.encode(), 7),)


def test_a_partitioner_of_the_user_wins():
    def chosen(topic, key, value, partitions):
        return (0,)

    assert sink_partitioner(sf.TimeWindows(10, 0), partitioner=chosen) is chosen


def test_plain_keys_are_left_to_the_producer():
    builder = sf.StreamsBuilder()
    builder.stream("in", key_serde=STRING).to("out", name="sink")
    assert builder.build().nodes["sink"].partitioner is None
