"""What an app will be on a cluster: SubTopologies with their number of tasks, internal topics with settings and partition counts.

A pure function of the topology, the configuration and the partition counts of the input topics; made before anything is created.
Better than the Java original: co-partitioning is always checked, not only when the topology has a repartition topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamfleet.config import StreamsConfig
from streamfleet.errors import OptionError, TopologyError
from streamfleet.ids import LEGAL_NAME, MAX_NAME_LENGTH
from streamfleet.state.changelog_names import changelog_name
from streamfleet.topology.internal_topics import changelog_settings, repartition_settings
from streamfleet.topology.nodes import SinkNode, SourceNode
from streamfleet.topology.sub_topologies import SubTopology

if TYPE_CHECKING:
    from streamfleet.topology.topology import Topology


@dataclass(frozen=True)
class InternalTopic:
    """A topic the app creates by itself."""

    partitions: int
    configs: dict[str, str]


@dataclass(frozen=True)
class SubTopologyPlan:
    """One SubTopology on the cluster; all topics by their real names, sorted. A changelog may be an input topic."""

    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    repartition_topics: tuple[str, ...]
    changelog_topics: tuple[str, ...]
    tasks: int


@dataclass(frozen=True)
class TopologyPlan:
    """SubTopologies by number (those of global stores have no tasks and are left out), internal topics by name."""

    sub_topologies: dict[int, SubTopologyPlan]
    internal_topics: dict[str, InternalTopic]


def make_plan(topology: Topology, config: StreamsConfig, partitions: Mapping[str, int]) -> TopologyPlan:
    return _Planner(topology, config, partitions).plan()


def check_asked_counts(topology: Topology) -> None:
    """What is wrong on every cluster is said when the topology is built: joined topics of which all were asked for, with different
    counts. Where other topics are among them, only their counts can tell.
    """
    for group in topology.copartitioned:
        nodes = [node for name in group if isinstance(node := topology.nodes[name], SourceNode)]
        asked = {topic: topology.repartition_topics.get(topic) for node in nodes for topic in node.topics}
        counts = {topic: count for topic, count in asked.items() if count is not None}
        if counts and len(counts) == len(asked):
            _same_count(counts, "repartition topics")


class _Planner:
    def __init__(self, topology: Topology, config: StreamsConfig, partitions: Mapping[str, int]) -> None:
        self._topology = topology
        self._config = config
        self._external = partitions
        self._parts = [part for part in topology.sub_topologies() if part.global_store is None]
        self._sources = {part.id: self._source_topics(part.nodes) for part in self._parts}
        self._repartition = {self._real(name): asked for name, asked in topology.repartition_topics.items()}
        self._counts: dict[str, int] = {}

    def plan(self) -> TopologyPlan:
        self._check_asked_counts()
        self._check_epochs()
        self._count_repartition_topics()
        for group in self._topology.copartitioned:
            self._enforce_copartitioning(group)
        internal: dict[str, InternalTopic] = {}
        plans: dict[int, SubTopologyPlan] = {}
        for part in self._parts:
            plans[part.id] = self._plan_part(part, internal)
        for topic in internal:
            _check_topic_name(topic)
        return TopologyPlan(plans, internal)

    def _plan_part(self, part: SubTopology, internal: dict[str, InternalTopic]) -> SubTopologyPlan:
        sources = self._sources[part.id]
        tasks = max((self._count_of(topic) for topic in sources), default=0)
        repartition = [topic for topic in sources if topic in self._repartition]
        for topic in repartition:
            internal[topic] = InternalTopic(self._counts[topic], repartition_settings(self._config))
        changelogs = []
        for store in part.stores:
            changelog = self._topology.changelog_topic(store, self._config.application_id, self._config.store_epochs)
            if changelog is None:
                continue
            changelogs.append(changelog)
            if store not in self._topology.source_changelogs:
                settings = changelog_settings(self._topology.stores[store], self._config)
                internal[changelog] = InternalTopic(tasks, settings)
        return SubTopologyPlan(
            sources=tuple(sorted(sources)),
            sinks=tuple(sorted(self._sink_topics(part))),
            repartition_topics=tuple(sorted(repartition)),
            changelog_topics=tuple(sorted(set(changelogs))),
            tasks=tasks,
        )

    def _count_repartition_topics(self) -> None:
        """Each has as many partitions as the widest source of the SubTopologies that write it; chains are followed in rounds."""
        self._counts.update({topic: asked for topic, asked in self._repartition.items() if asked is not None})
        missing = [topic for part in self._parts for topic in self._sources[part.id] if self._is_uncounted(topic)]
        while missing:
            for topic in missing:
                widest = max(self._known_upstream_counts(topic), default=None)
                if widest is not None:
                    self._counts[topic] = widest
            still = [topic for topic in missing if topic not in self._counts]
            if still == missing:
                raise TopologyError(
                    f"the partition counts of the repartition topics {', '.join(still)} cannot be computed",
                    hint="make sure that a source with a known partition count leads to each of them",
                )
            missing = still

    def _is_uncounted(self, topic: str) -> bool:
        return topic in self._repartition and topic not in self._counts

    def _known_upstream_counts(self, topic: str) -> Iterable[int]:
        for part in self._parts:
            if topic not in self._sink_topics(part):
                continue
            for source in self._sources[part.id]:
                if not self._is_uncounted(source):
                    yield self._count_of(source)

    def _enforce_copartitioning(self, source_nodes: frozenset[str]) -> None:
        nodes = [self._topology.nodes[name] for name in sorted(source_nodes)]
        topics = self._source_topics(nodes)
        inner = [topic for topic in topics if topic in self._repartition]
        outer = {topic: self._count_of(topic) for topic in topics if topic not in self._repartition}
        asked = {topic: count for topic in inner if (count := self._repartition[topic]) is not None}
        if outer:
            decisive = _same_count(outer, "input topics")
        elif asked:
            decisive = _same_count(asked, "repartition topics")
        else:
            decisive = max((self._counts[topic] for topic in inner), default=0)
        for topic in inner:
            count = self._repartition[topic]
            if count is not None and count != decisive:
                raise TopologyError(
                    f"repartition topic {topic} was asked to have {count} partitions, but is joined with topics that have "
                    f"{decisive}",
                    hint=f"ask for {decisive} partitions, or leave the number out",
                )
            self._counts[topic] = decisive

    def _check_asked_counts(self) -> None:
        for topic, count in self._repartition.items():
            if count is not None and count < 1:
                raise OptionError(
                    f"repartition topic {topic} was asked to have {count} partitions", hint="ask for at least 1"
                )

    def _check_epochs(self) -> None:
        """Epochs are of stores that have a changelog of their own, and two stores never share one."""
        own = [
            store
            for store, builder in self._topology.stores.items()
            if builder.logging_enabled and store not in self._topology.source_changelogs
        ]
        for store in self._config.store_epochs:
            if store not in own:
                raise TopologyError(
                    f"store.epochs names {store}, which is not a store with a changelog of its own",
                    hint=f"this topology has {', '.join(own) or 'none'}",
                )
        named: dict[str, str] = {}
        for store in own:
            topic = changelog_name(self._config.application_id, store, self._config.store_epochs.get(store, 0))
            if topic in named:
                raise TopologyError(
                    f"stores {named[topic]} and {store} would both have the changelog {topic}",
                    hint="take another epoch in store.epochs, or rename one of them",
                )
            named[topic] = store

    def _count_of(self, topic: str) -> int:
        if topic in self._repartition:
            return self._counts[topic]
        if topic not in self._external:
            raise TopologyError(
                f"the partition count of input topic {topic} is not known",
                hint="create the topic, or name its partitions",
            )
        return self._external[topic]

    def _source_topics(self, nodes: Iterable[object]) -> list[str]:
        topics: list[str] = []
        for node in nodes:
            if isinstance(node, SourceNode):
                topics += self._matching(node) if node.pattern is not None else map(self._real, node.topics)
        return topics

    def _matching(self, node: SourceNode) -> list[str]:
        assert node.pattern is not None
        fed = {topic for entry in self._topology.global_stores.values() for topic in entry.source.topics}
        return [topic for topic in self._external if topic not in fed and node.pattern.fullmatch(topic)]

    def _sink_topics(self, part: SubTopology) -> set[str]:
        sinks = (node.topic for node in part.nodes if isinstance(node, SinkNode))
        return {self._real(topic) for topic in sinks if isinstance(topic, str)}

    def _real(self, topic: str) -> str:
        return self._topology.topic_name(topic, self._config.application_id)


def _check_topic_name(topic: str) -> None:
    if LEGAL_NAME.fullmatch(topic) is None or len(topic) > MAX_NAME_LENGTH:
        raise TopologyError(
            f"there can be no internal topic {topic!r}",
            hint=f"rename the store or repartition: a topic has up to {MAX_NAME_LENGTH} characters out of ASCII letters, digits, "
            "'.', '_' and '-'",
        )


def _same_count(counts: Mapping[str, int], what: str) -> int:
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{topic} has {count}" for topic, count in sorted(counts.items()))
        raise TopologyError(
            f"{what} that must be co-partitioned have different partition counts: {shown}",
            hint="a join needs equal counts on both sides, and a cogroup in all its inputs: re-create one topic, or call "
            "repartition(partitions=...) on one of them",
        )
    return next(iter(counts.values()))
