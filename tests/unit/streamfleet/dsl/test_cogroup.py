"""Streams aggregated together, against one stream that carries the values of all with their origin."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import streamfleet as sf

slow = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
arrivals = st.lists(
    st.tuples(
        st.sampled_from("LR"), st.sampled_from([*"ab", None]), st.sampled_from([*"xy", None]), st.integers(0, 50)
    ),
    max_size=25,
)
FOREVER = 10**6  # nothing is late: every input has a stream time of its own, where one stream has one
WINDOWS = {
    "whole": None,
    "time": sf.TimeWindows(10, FOREVER, advance=5),
    "sliding": sf.SlidingWindows(5, FOREVER),
    "session": sf.SessionWindows(5, FOREVER),
}


def add(tag):
    return lambda key, value, aggregate: aggregate + tag + str(value)


def add_tagged(key, value, aggregate):
    return aggregate + value


def merge(key, one, other):
    return f"{one}|{other}"


def aggregated(grouped, windows, *aggregators):
    store = sf.Materialized("s", value_serde=sf.serdes.string())
    if isinstance(windows, sf.SessionWindows):
        return grouped.windowed_by(windows).aggregate(str, *aggregators, merger=merge, materialized=store)
    chosen = grouped if windows is None else grouped.windowed_by(windows)
    return chosen.aggregate(str, *aggregators, materialized=store)


@slow
@given(arrivals)
@pytest.mark.parametrize("kind", WINDOWS)
def test_a_cogroup_is_the_aggregation_of_all_streams_in_one(run, kind, script):
    windows = WINDOWS[kind]

    def cogrouped(builder):
        left, right = builder.stream("L").group_by_key(), builder.stream("R").group_by_key()
        table = aggregated(left.cogroup(add("l")).cogroup(right, add("r")), windows)
        table.to_stream(lambda key, _: str(key)).to("out")

    def merged(builder):
        streams = [
            builder.stream(topic).map_values(lambda value, tag=tag: None if value is None else tag + value)
            for topic, tag in (("L", "l"), ("R", "r"))
        ]
        grouped = (
            streams[0].merge(streams[1]).group_by_key(key_serde=sf.serdes.string(), value_serde=sf.serdes.string())
        )
        aggregated(grouped, windows, add_tagged).to_stream(lambda key, _: str(key)).to("out")

    script = [(side, key, value or ("-" if windows is not None else None), time) for side, key, value, time in script]
    assert facts(run(cogrouped, script)) == facts(run(merged, script))


def facts(outcome):
    results, stores, dropped = outcome
    return [(r.key, r.value, r.timestamp) for r in results], stores["s"], dropped


def test_inputs_without_names_have_repartition_topics_of_their_own():
    builder = sf.StreamsBuilder()
    left = builder.stream("L").group_by(lambda key, value: value)
    right = builder.stream("R").group_by(lambda key, value: value)
    left.cogroup(add("l")).cogroup(right, add("r")).aggregate(str, store="s")
    plan = builder.build().plan({"L": 2, "R": 2}, sf.StreamsConfig(application_id="app"))
    assert {name for name in plan.internal_topics if "repartition" in name} == {
        "app-s-repartition",
        "app-s-1-repartition",
    }


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda g, s: g.cogroup(lambda v: v), r"cogroup: the aggregator is called with \(key, value, aggregate\)"),
        (lambda g, s: g.cogroup(add("l")).cogroup(s, add("r")), "cogroup needs a KGroupedStream"),
        (lambda g, s: g.cogroup(add("l")).aggregate(""), "aggregate needs a function of"),
        (lambda g, s: g.cogroup(add("l")).windowed_by(5), "which is not a kind of windows"),
        (
            lambda g, s: g.cogroup(add("l")).windowed_by(sf.SessionWindows(5, 0)).aggregate(str, lambda a: a),
            r"the merger is called with \(key, one, other\)",
        ),
    ],
)
def test_a_cogroup_that_cannot_be_is_refused(act, message):
    stream = sf.StreamsBuilder().stream("in")
    with pytest.raises(sf.OptionError, match=message):
        act(stream.group_by_key(), stream)


def test_a_stream_given_twice_has_the_later_aggregator(run):
    def build(builder):
        left, right = builder.stream("L").group_by_key(), builder.stream("R").group_by_key()
        cogrouped = left.cogroup(add("l")).cogroup(right, add("r")).cogroup(left, add("again"))
        aggregated(cogrouped, None).to_stream().to("out")

    records = [("L", "a", "x", 1), ("R", "a", "y", 2), ("L", "a", "z", 3)]
    results, _, _ = run(build, records)
    assert [record.value for record in results] == [b"againx", b"againxry", b"againxryagainz"]


def test_a_stream_added_later_is_in_all_that_is_made_of_the_group(run):
    def build(builder):
        left, right = builder.stream("L").group_by_key(), builder.stream("R").group_by_key()
        cogrouped = left.cogroup(add("l"))
        windowed = cogrouped.windowed_by(sf.TimeWindows(10, 0))
        cogrouped.cogroup(right, add("r"))
        aggregated(windowed, None).to_stream(lambda key, _: str(key)).to("out")

    results, _, _ = run(build, [("L", "a", "x", 1), ("R", "a", "y", 2)])
    assert [record.value for record in results] == [b"lx", b"lxry"]
