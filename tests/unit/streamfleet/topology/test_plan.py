"""Tasks, internal topics and partition counts, without a broker."""

import re

import pytest

import streamfleet as sf

CONFIG = sf.StreamsConfig(application_id="app")


def counted(builder, topic="in", **grouped):
    return builder.stream(topic).group_by(lambda k, v: v, **grouped).count(store=f"counts-of-{topic}")


def test_a_repartition_topic_has_the_partitions_of_its_widest_upstream_source():
    builder = sf.StreamsBuilder()
    builder.stream("a").merge(builder.stream("b")).select_key(lambda k, v: v).repartition(name="r").to("out")
    plan = builder.build().plan({"a": 3, "b": 5}, CONFIG)
    assert plan.internal_topics["app-r-repartition"].partitions == 5
    assert {number: part.tasks for number, part in plan.sub_topologies.items()} == {0: 5, 1: 5}


def test_counts_follow_chains_of_repartition_topics():
    builder = sf.StreamsBuilder()
    stream = builder.stream("in")
    for name in ("one", "two", "three"):
        stream = stream.select_key(lambda k, v: v).repartition(name=name)
    plan = builder.build().plan({"in": 7}, CONFIG)
    assert {topic.partitions for topic in plan.internal_topics.values()} == {7}


def test_a_changelog_has_the_partitions_of_its_sub_topology():
    builder = sf.StreamsBuilder()
    counted(builder, name="g")
    plan = builder.build().plan({"in": 4}, CONFIG)
    assert plan.internal_topics["app-counts-of-in-changelog"].partitions == 4


def test_topic_settings_of_the_app_lose_against_those_of_the_store():
    builder = sf.StreamsBuilder()
    builder.stream("in").group_by_key().count(materialized=sf.Materialized("c", logging={"segment.bytes": "5"}))
    config = sf.StreamsConfig.from_mapping(
        {"application.id": "app", "topic.segment.bytes": 9, "topic.min.insync.replicas": 2}
    )
    configs = builder.build().plan({"in": 1}, config).internal_topics["app-c-changelog"].configs
    assert (configs["segment.bytes"], configs["min.insync.replicas"]) == ("5", "2")


def test_a_pattern_source_takes_the_topics_that_match():
    builder = sf.StreamsBuilder()
    builder.stream(re.compile("logs-.*")).to("out")
    (part,) = builder.build().plan({"logs-1": 2, "logs-2": 6, "other": 9}, CONFIG).sub_topologies.values()
    assert (part.sources, part.tasks) == (("logs-1", "logs-2"), 6)


def test_a_join_gives_the_repartition_topic_the_partitions_of_the_table():
    builder = sf.StreamsBuilder()
    builder.stream("in").select_key(lambda k, v: v).join(builder.table("t"), lambda left, right: left, name="j").to(
        "out"
    )
    plan = builder.build().plan({"in": 2, "t": 6}, CONFIG)
    assert plan.internal_topics["app-j-repartition"].partitions == 6


def test_mismatched_co_partitioning_of_a_stream_table_join_is_refused_with_both_counts():
    builder = sf.StreamsBuilder()
    builder.stream("in").join(builder.table("t"), lambda left, right: left).to("out")
    with pytest.raises(sf.TopologyError, match="in has 2, t has 3.*a join needs equal counts"):
        builder.build().plan({"in": 2, "t": 3}, CONFIG)


def test_an_enforced_count_that_does_not_fit_the_join_is_refused():
    builder = sf.StreamsBuilder()
    stream = builder.stream("in").repartition(name="r", partitions=4)
    stream.join(builder.table("t"), lambda left, right: left).to("out")
    with pytest.raises(sf.TopologyError, match="app-r-repartition was asked to have 4 partitions.*ask for 3"):
        builder.build().plan({"in": 2, "t": 3}, CONFIG)


def test_co_partitioning_is_checked_for_a_topic_that_was_read_twice():
    builder = sf.StreamsBuilder()
    builder.stream("in").to("first")
    builder.stream("in").join(builder.table("t"), lambda left, right: left).to("out")
    with pytest.raises(sf.TopologyError, match="in has 2, t has 3"):
        builder.build().plan({"in": 2, "t": 3}, CONFIG)


def test_a_topic_without_a_known_count_is_named():
    builder = sf.StreamsBuilder()
    builder.stream("in").to("out")
    with pytest.raises(sf.TopologyError, match="partition count of input topic in is not known"):
        builder.build().plan({}, CONFIG)


def test_the_application_id_must_be_known():
    builder = sf.StreamsBuilder()
    builder.stream("in").to("out")
    with pytest.raises(sf.ConfigError, match="application id is not known"):
        builder.build().plan({"in": 1})


@pytest.mark.parametrize("partitions", [0, -3])
def test_an_enforced_count_below_one_is_refused(partitions):
    builder = sf.StreamsBuilder()
    builder.stream("in").repartition(name="r", partitions=partitions).to("out")
    with pytest.raises(sf.OptionError, match="ask for at least 1"):
        builder.build().plan({"in": 1}, CONFIG)


def test_an_epoch_of_a_store_has_a_changelog_of_its_own():
    builder = sf.StreamsBuilder()
    counted(builder, name="g")
    plan = builder.build().plan({"in": 4}, CONFIG.with_(store_epochs={"counts-of-in": 2}))
    assert set(plan.internal_topics) == {"app-g-repartition", "app-counts-of-in-e2-changelog"}


def test_an_epoch_of_a_store_that_is_not_there_is_refused():
    builder = sf.StreamsBuilder()
    counted(builder, name="g")
    with pytest.raises(sf.TopologyError, match="store.epochs names other, which is not a store"):
        builder.build().plan({"in": 4}, CONFIG.with_(store_epochs={"other": 1}))


def test_two_stores_never_share_a_changelog():
    builder = sf.StreamsBuilder()
    builder.stream("a").group_by_key().count(store="s")
    builder.stream("b").group_by_key().count(store="s-e1")
    with pytest.raises(sf.TopologyError, match="would both have the changelog app-s-e1-changelog"):
        builder.build().plan({"a": 1, "b": 1}, CONFIG.with_(store_epochs={"s": 1}))


def joined(left, right):
    builder = sf.StreamsBuilder()
    one = builder.stream("a").repartition(name="r", partitions=left)
    other = builder.stream("b").repartition(name="s", partitions=right)
    one.join(other, lambda one, other: one, window=sf.JoinWindows(1, 1, 0)).to("out")
    return builder


def test_two_enforced_counts_that_differ_are_refused_when_the_topology_is_built():
    with pytest.raises(sf.TopologyError, match="r-repartition has 2, s-repartition has 3.*a join needs equal counts"):
        joined(2, 3).build()
    assert joined(2, 2).build().plan({"a": 1, "b": 1}, CONFIG).internal_topics["app-s-repartition"].partitions == 2


def test_an_enforced_count_beside_one_that_is_open_decides_for_both():
    assert joined(2, None).build().plan({"a": 1, "b": 5}, CONFIG).internal_topics["app-s-repartition"].partitions == 2


def test_a_pattern_does_not_take_the_topics_of_global_stores():
    builder = sf.StreamsBuilder()
    builder.global_table("g1")
    builder.stream(re.compile("g.*")).to("out")
    plan = builder.build().plan({"g1": 7, "g2": 2}, CONFIG)
    assert [(part.sources, part.tasks) for part in plan.sub_topologies.values()] == [(("g2",), 2)]


@pytest.mark.parametrize(
    ("build", "topic"),
    [
        (lambda stream, other: stream.repartition(name="a b").to("out"), "app-a b-repartition"),
        (
            lambda stream, other: stream.select_key(lambda k, v: v).group_by_key(name="a b").count(store="c"),
            "app-a b-repartition",
        ),
        (
            lambda stream, other: stream.join(
                other, lambda one, two: one, window=sf.JoinWindows(1, 1, 0), store_name="a b"
            ),
            "app-a b-this-join-store-changelog",
        ),
    ],
)
def test_a_name_that_cannot_be_that_of_a_topic_is_refused_when_the_topic_is_wanted(build, topic):
    builder = sf.StreamsBuilder()
    build(builder.stream("in"), builder.stream("other"))
    topology = builder.build()
    with pytest.raises(sf.TopologyError, match=f"there can be no internal topic '{topic}'"):
        topology.plan({"in": 1, "other": 1}, CONFIG)


def test_a_name_that_no_topic_gets_may_be_any():
    builder = sf.StreamsBuilder()
    builder.stream("in").group_by_key(name="a b").count(store="c")
    assert list(builder.build().plan({"in": 1}, CONFIG).internal_topics) == ["app-c-changelog"]
