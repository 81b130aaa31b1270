"""The topology as the broker is told it: it plans the tasks and creates the internal topics, so it has to know both.

Pure; `group_topology` is called when an app with `group.protocol=streams` is put together. Everything is sorted, because the broker
compares what members send field by field, and the order in which a topology was written must not make two of one. Only co-partition
groups have the order of Java's sets (java_sets.py): so members of Java Kafka Streams may be in the same group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamfleet.config import StreamsConfig
from streamfleet.errors import ConfigError
from streamfleet.kafka.streams_group.java_sets import hash_of, hash_of_set, in_set_order
from streamfleet.topology.nodes import SourceNode
from streamfleet.topology.plan import SubTopologyPlan, TopologyPlan
from streamfleet.topology.topology import Topology

BROKER_COUNTS = 0
"""In place of a partition count: as many as the sub-topology has tasks."""

CopartitionGroup = tuple[tuple[int, ...], tuple[int, ...]]
"""Positions in the sub-topology's source topics, and in its repartition source topics."""


@dataclass(frozen=True)
class InternalTopicInfo:
    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


@dataclass(frozen=True)
class GroupSubTopology:
    id: str
    source_topics: tuple[str, ...]
    repartition_source_topics: tuple[InternalTopicInfo, ...]
    repartition_sink_topics: tuple[str, ...]
    changelog_topics: tuple[InternalTopicInfo, ...]
    copartition_groups: tuple[CopartitionGroup, ...]


@dataclass(frozen=True)
class GroupTopology:
    epoch: int
    """Of the topology: brokers know of no second one yet."""
    sub_topologies: tuple[GroupSubTopology, ...]


def group_topology(topology: Topology, plan: TopologyPlan, config: StreamsConfig) -> GroupTopology:
    _refuse_patterns(topology)
    return _Converter(topology, plan, config).convert()


def _refuse_patterns(topology: Topology) -> None:
    for node in topology.nodes.values():
        if isinstance(node, SourceNode) and node.pattern is not None:
            raise ConfigError(
                f"source {node.name} reads the topics that match {node.pattern.pattern!r}, which brokers cannot plan for yet",
                hint="name its topics, or set group.protocol=classic",
            )


class _Converter:
    def __init__(self, topology: Topology, plan: TopologyPlan, config: StreamsConfig) -> None:
        self._topology = topology
        self._plan = plan
        self._config = config
        self._asked = {self._real(name): count for name, count in topology.repartition_topics.items()}

    def convert(self) -> GroupTopology:
        parts = sorted(self._plan.sub_topologies.items(), key=lambda item: str(item[0]))
        return GroupTopology(0, tuple(self._part(str(number), part) for number, part in parts))

    def _part(self, number: str, part: SubTopologyPlan) -> GroupSubTopology:
        sources = tuple(topic for topic in part.sources if topic not in part.repartition_topics)
        return GroupSubTopology(
            id=number,
            source_topics=sources,
            repartition_source_topics=tuple(
                self._internal(topic, self._asked[topic] or BROKER_COUNTS) for topic in part.repartition_topics
            ),
            repartition_sink_topics=tuple(topic for topic in part.sinks if topic in self._asked),
            changelog_topics=tuple(self._internal(topic, BROKER_COUNTS) for topic in part.changelog_topics),
            copartition_groups=self._copartition_groups(sources, part.repartition_topics),
        )

    def _internal(self, topic: str, partitions: int) -> InternalTopicInfo:
        planned = self._plan.internal_topics.get(topic)  # None: a source topic that serves as its table's changelog
        return InternalTopicInfo(topic, partitions, self._config.replication_factor, planned.configs if planned else {})

    def _copartition_groups(
        self, sources: tuple[str, ...], repartition: tuple[str, ...]
    ) -> tuple[CopartitionGroup, ...]:
        known = {*sources, *repartition}
        return tuple(
            (_positions(sources, group), _positions(repartition, group))
            for group in self._joined_groups()
            if known.issuperset(group)
        )

    def _joined_groups(self) -> list[tuple[str, ...]]:
        """Topics that must have the same number of partitions. Groups that share a topic become one, as the original does it."""
        groups: dict[str, dict[str, None]] = {}
        for nodes in self._topology.copartitioned:
            sources = in_set_order(sorted(nodes), hash_of, made_for=len(nodes))
            topics = in_set_order((topic for name in sources for topic in self._topics_of(name)), hash_of)
            group = next((groups[topic] for topic in topics if topic in groups), {})
            group.update(dict.fromkeys(topics))
            groups.update(dict.fromkeys(topics, group))
        ordered = [tuple(in_set_order(group, hash_of)) for group in groups.values()]
        return in_set_order(ordered, hash_of_set, made_for=len(ordered))

    def _topics_of(self, source: str) -> list[str]:
        node = self._topology.nodes[source]
        assert isinstance(node, SourceNode)
        return [self._real(topic) for topic in node.topics]

    def _real(self, topic: str) -> str:
        return self._topology.topic_name(topic, self._config.application_id)


def _positions(topics: tuple[str, ...], chosen: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(topics.index(topic) for topic in chosen if topic in topics)
