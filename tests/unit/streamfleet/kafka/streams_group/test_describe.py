"""A described group, from its bytes."""

from __future__ import annotations

import struct

from streamfleet.kafka import wire
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.streams_group.describe import StreamsGroupDescribeResponse, describe

_Group = StreamsGroupDescribeResponse.DescribedGroup
_Part = _Group.Topology.Subtopology


def read(topology: object):
    group = _Group(
        error_code=0, group_id="g", group_state="Empty", group_epoch=3, topology=topology, members=[], version=0
    )
    body = StreamsGroupDescribeResponse(throttle_time_ms=0, groups=[group], version=0).encode(version=0)
    return wire.decode(describe("g"), 7, struct.pack(">i", 7) + b"\x00" + bytes(body))


def test_the_internal_topics_it_was_founded_with_are_read():
    def topic(name: str):
        return _Part.TopicInfo(name=name, partitions=0, replication_factor=0, topic_configs=[], version=0)

    part = _Part(
        subtopology_id="0",
        source_topics=["in"],
        repartition_sink_topics=["sink"],
        state_changelog_topics=[topic("changelog")],
        repartition_source_topics=[topic("repartition")],
        version=0,
    )
    answer = read(_Group.Topology(epoch=0, subtopologies=[part], version=0))
    assert (answer.code, answer.state, answer.epoch) == (ErrorCode.NONE, "Empty", 3)
    assert answer.internal_topics == {"changelog", "repartition"}


def test_a_group_without_a_topology_has_none():
    assert read(None).internal_topics == frozenset()
