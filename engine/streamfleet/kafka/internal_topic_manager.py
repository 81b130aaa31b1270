"""The topics an app needs: finds what it reads, creates its internal topics, checks those that exist.

Called when an app starts. In a group that the broker plans, the broker creates the internal topics, and this only checks them
(streams_group/internal_topics.py). Everything may be done twice, and by several workers
at once: who comes second finds the topics of the first and checks them. What the topics must look like is decided by
topology/plan.py; whether a topic was deleted and made anew is seen by its id, by whoever recorded the former one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec
import structlog

from streamfleet.kafka.broker_patience import BrokerPatience
from streamfleet.kafka.client_errors import (
    BrokerUnavailableError,
    MissingSourceTopicError,
    PartitionCountError,
    TopicSettingsError,
)
from streamfleet.kafka.topic_drift import SettingDrift, find_drift
from streamfleet.ports import Admin, TopicInfo, TopicToCreate
from streamfleet.state.changelog_names import is_changelog_of
from streamfleet.topology.nodes import SourceNode
from streamfleet.topology.plan import InternalTopic, TopologyPlan
from streamfleet.topology.topology import Topology

log = structlog.get_logger(__name__)

BROKER_DEFAULT = -1
_KAFKAS_OWN = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


class InternalTopics(msgspec.Struct, frozen=True):
    """Internal topics as they are now: all there, with the right number of partitions."""

    topics: dict[str, TopicInfo]
    created: frozenset[str]
    """Those that this call created. A changelog among them is empty, whatever the state on disk says."""
    drifts: tuple[SettingDrift, ...]
    """Settings that differ without losing data."""


def log_drift(drift: SettingDrift) -> None:
    log.warning(
        "internal topic has another setting than the app would give it",
        topic=drift.topic,
        setting=drift.setting,
        expected=drift.expected,
        actual=drift.actual,
    )


class InternalTopicManager:
    """`on_drift` hears of every setting that differs, also of one that is then refused."""

    def __init__(
        self,
        admin: Admin,
        *,
        replication_factor: int = BROKER_DEFAULT,
        patience: BrokerPatience | None = None,
        on_drift: Callable[[SettingDrift], None] = log_drift,
    ) -> None:
        self._admin = admin
        self._replication_factor = replication_factor
        self._patience = patience or BrokerPatience()
        self._on_drift = on_drift

    def source_topics(self, topology: Topology, application_id: str) -> dict[str, TopicInfo]:
        """Every topic the app reads and does not create itself, those of global stores included."""
        sources = [node for node in topology.nodes.values() if isinstance(node, SourceNode)]
        sources += [entry.source for entry in topology.global_stores.values()]
        internal = set(topology.repartition_topics)
        named = {topic for source in sources for topic in source.topics if topic not in internal}
        own = {topology.topic_name(topic, application_id) for topic in internal}
        own_stores = [store for store in topology.stores if topology.changelog_topic(store, application_id) is not None]
        matching = {
            topic
            for topic in self._matching(sources, own)
            if not any(is_changelog_of(topic, application_id, store) for store in own_stores)
        }
        found = self._admin.describe_topics(named | matching)
        missing = sorted(named - found.keys())
        if missing:
            raise MissingSourceTopicError(missing)
        return found

    def prepare(self, plan: TopologyPlan) -> InternalTopics:
        """Create what is missing and check what is there."""
        wanted = plan.internal_topics
        found = self._admin.describe_topics(wanted)
        missing = [self._to_create(name, wanted[name]) for name in wanted if name not in found]
        created = self._admin.create_topics(missing)
        if missing:
            found |= self._await([topic.name for topic in missing])
        for name in sorted(created):
            log.info("internal topic created", topic=name, partitions=wanted[name].partitions)
        return self._checked(wanted, found, created)

    def found(self, plan: TopologyPlan) -> dict[str, TopicInfo]:
        """What is there, as it is."""
        return self._admin.describe_topics(plan.internal_topics)

    def present(self, plan: TopologyPlan) -> InternalTopics:
        """Check what is there, and create nothing: the broker will."""
        found = self.found(plan)
        return self._checked({name: plan.internal_topics[name] for name in found}, found, frozenset())

    def verified(self, plan: TopologyPlan) -> InternalTopics:
        """All of them, checked, once somebody else has created them."""
        return self._checked(plan.internal_topics, self._await(list(plan.internal_topics)), frozenset())

    def _checked(
        self, wanted: Mapping[str, InternalTopic], found: dict[str, TopicInfo], created: frozenset[str]
    ) -> InternalTopics:
        for name, topic in wanted.items():
            if found[name].partitions != topic.partitions:
                raise PartitionCountError(name, actual=found[name].partitions, expected=topic.partitions)
        drifts = self._check_settings({name: topic for name, topic in wanted.items() if name not in created})
        return InternalTopics(found, created, drifts)

    def _matching(self, sources: Iterable[SourceNode], own: set[str]) -> set[str]:
        patterns = [source.pattern for source in sources if source.pattern is not None]
        if not patterns:
            return set()
        candidates = self._admin.topic_names() - own - _KAFKAS_OWN
        return {name for name in candidates if any(pattern.fullmatch(name) for pattern in patterns)}

    def _to_create(self, name: str, topic: InternalTopic) -> TopicToCreate:
        return TopicToCreate(name, topic.partitions, topic.configs, self._replication_factor)

    def _await(self, names: list[str]) -> dict[str, TopicInfo]:
        """A topic that was just created may take a moment until every broker knows it."""
        doing = f"waiting for new topics {', '.join(names)}"

        def attempt(_: int) -> dict[str, TopicInfo]:
            found = self._admin.describe_topics(names)
            if len(found) < len(names):
                unseen = ", ".join(name for name in names if name not in found)
                raise BrokerUnavailableError(f"topics are not visible yet: {unseen}", code="UNKNOWN_TOPIC_OR_PART")
            return found

        return self._patience.ask(doing, attempt)

    def _check_settings(self, existing: Mapping[str, InternalTopic]) -> tuple[SettingDrift, ...]:
        actual = self._admin.describe_configs(existing)
        drifts = [
            drift for name, settings in actual.items() for drift in find_drift(name, existing[name].configs, settings)
        ]
        for drift in drifts:
            self._on_drift(drift)
        for drift in drifts:
            if drift.loses_data:
                raise TopicSettingsError(drift.topic, drift.setting, actual=drift.actual, expected=drift.expected)
        return tuple(drifts)


def message_limits(admin: Admin, topics: Iterable[str]) -> dict[str, int]:
    """`max.message.bytes` of those topics that exist: what a producer must obey."""
    return {name: int(settings["max.message.bytes"]) for name, settings in admin.describe_configs(topics).items()}
