"""The topology as a broker is told it: everything it needs to plan tasks and create internal topics, always in the same order."""

from __future__ import annotations

import re

import pytest

import streamfleet as sf
from streamfleet.kafka.streams_group.topology import GroupSubTopology, GroupTopology, InternalTopicInfo, group_topology

STRING = sf.serdes.string()
COMPACTED = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
REPARTITION = {
    "cleanup.policy": "delete",
    "segment.bytes": "52428800",
    "retention.ms": "-1",
    "message.timestamp.type": "CreateTime",
}


def config(**settings):
    return sf.StreamsConfig(application_id="app", default_key_serde=STRING, default_value_serde=STRING, **settings)


def converted(builder: sf.StreamsBuilder, partitions: dict[str, int], **settings) -> GroupTopology:
    topology, chosen = builder.build(), config(**settings)
    return group_topology(topology, topology.plan(partitions, chosen), chosen)


def test_sources_repartition_topics_and_changelogs_are_told_with_their_settings():
    builder = sf.StreamsBuilder()
    builder.stream("in").group_by(lambda k, v: v, name="words").count(store="counts").to_stream().to("out")
    words, counts = "app-words-repartition", "app-counts-changelog"
    assert converted(builder, {"in": 3}, replication_factor=2) == GroupTopology(
        0,
        (
            GroupSubTopology("0", ("in",), (), (words,), (), ()),
            GroupSubTopology(
                "1",
                (),
                (InternalTopicInfo(words, 0, 2, REPARTITION),),
                (),
                (InternalTopicInfo(counts, 0, 2, COMPACTED),),
                (),
            ),
        ),
    )


def test_a_count_that_was_asked_for_is_told_and_others_are_left_to_the_broker():
    builder = sf.StreamsBuilder()
    builder.stream("in").repartition(name="wide", partitions=7).repartition(name="same").to("out")
    told = [topic for part in converted(builder, {"in": 3}).sub_topologies for topic in part.repartition_source_topics]
    assert {topic.name: topic.partitions for topic in told} == {"app-wide-repartition": 7, "app-same-repartition": 0}


def test_topics_that_are_joined_are_told_by_their_positions():
    builder = sf.StreamsBuilder()
    moved = builder.stream("b").repartition(name="moved")
    moved.join(builder.table("a", store="rows"), lambda one, other: one).to("out")
    parts = {part.source_topics: part for part in converted(builder, {"a": 3, "b": 3}).sub_topologies}
    joined = parts["a",]
    assert [topic.name for topic in joined.repartition_source_topics] == ["app-moved-repartition"]
    assert joined.copartition_groups == (((0,), (0,)),)
    assert parts["b",].copartition_groups == ()


def test_the_order_in_which_a_topology_is_written_does_not_matter_to_lists():
    def told(*topics: str) -> GroupTopology:
        builder = sf.StreamsBuilder()
        builder.stream(list(topics)).to("out")
        return converted(builder, dict.fromkeys(topics, 2))

    assert told("x", "y") == told("y", "x")


def test_global_tables_are_not_told():
    builder = sf.StreamsBuilder()
    builder.global_table("everywhere")
    builder.stream("in").to("out")
    assert [part.source_topics for part in converted(builder, {"in": 1, "everywhere": 1}).sub_topologies] == [("in",)]


def test_patterns_are_refused():
    builder = sf.StreamsBuilder()
    builder.stream(re.compile("in-.*")).to("out")
    with pytest.raises(sf.ConfigError, match=r"'in-\.\*'.*classic"):
        converted(builder, {"in-1": 1})


def test_joined_topics_are_told_in_the_order_that_java_tells_them():
    """Java Kafka Streams sends them in the order of a hash set, and the broker compares lists."""
    left, right = "interop-91f035a7-left", "interop-91f035a7-right"
    builder = sf.StreamsBuilder()
    builder.table(left, store="left").join(builder.table(right, store="right"), lambda one, other: one)
    [part] = converted(builder, {left: 3, right: 3}).sub_topologies
    assert part.source_topics == (left, right)
    assert part.copartition_groups == (((1, 0), ()),)


def test_joins_that_share_a_topic_are_told_as_one_group():
    builder = sf.StreamsBuilder()
    a, b, c = (builder.table(topic, store=topic) for topic in "abc")
    a.join(b, lambda one, other: one)
    a.join(c, lambda one, other: one)
    [part] = converted(builder, dict.fromkeys("abc", 3)).sub_topologies
    assert part.copartition_groups == (((0, 1, 2), ()),)
