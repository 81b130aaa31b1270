"""Puts together what is different in an app whose group the broker plans (`group.protocol=streams`). Called by wiring.py."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from streamfleet.assignment.broker_plans import BrokerPlans
from streamfleet.assignment.snapshot import MemberReport, Plan
from streamfleet.config import StreamsConfig
from streamfleet.ids import TopicPartition
from streamfleet.kafka.address import Address
from streamfleet.kafka.connection import TcpConnector
from streamfleet.kafka.coordinator import CoordinatorLine
from streamfleet.kafka.internal_topic_manager import InternalTopicManager
from streamfleet.kafka.membership import Membership
from streamfleet.kafka.offset_client import OffsetClient
from streamfleet.kafka.outage import Outage
from streamfleet.kafka.patience import MonotonicClock
from streamfleet.kafka.streams_group.client import StreamsGroupClient, StreamsGroupSettings
from streamfleet.kafka.streams_group.describe import describe
from streamfleet.kafka.streams_group.group_settings import share_standbys
from streamfleet.kafka.streams_group.heartbeat import MemberFacts
from streamfleet.kafka.streams_group.internal_topics import BrokerMadeTopics
from streamfleet.kafka.streams_group.membership import streams_group_membership
from streamfleet.kafka.streams_group.topology import group_topology
from streamfleet.thread.task_factory import TaskFactory
from streamfleet.topology.plan import TopologyPlan
from streamfleet.topology.topology import Topology

ASKING_MS = 30_000


class StreamsGroupWiring:
    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        connection: Mapping[str, Any],
        process_id: str,
        outage: Outage | None = None,
    ) -> None:
        self._topology = topology
        self._config = config
        self._connection = connection
        self._process_id = process_id
        self._clock = MonotonicClock()
        self._outage = outage

    def internal_topics(self, manager: InternalTopicManager, plan: TopologyPlan) -> BrokerMadeTopics:
        """Check those that are there, and tell the broker what it has to know before the first member joins."""
        group_topology(self._topology, plan, self._config)  # what cannot be told is refused before anything is done
        connector = self._connector(f"{self._config.application_id}-start")
        line = CoordinatorLine(connector, self._clock, self._group_id, outage=self._outage)
        try:
            topics = BrokerMadeTopics(manager, plan, self._clock)
            topics.check_start(lambda: self._has_run(line, plan))
            standbys, deadline_ms = self._config.num_standby_replicas, self._clock.now_ms() + ASKING_MS
            share_standbys(line, self._group_id, standbys, deadline_ms)
        finally:
            line.close()
        return topics

    def membership(self, name: str, factory: TaskFactory, wake: Callable[[], None]) -> Membership[MemberReport, Plan]:
        config = self._config
        facts = MemberFacts(
            group_id=self._group_id,
            member_id=str(uuid.uuid4()),
            process_id=self._process_id,
            topology=group_topology(self._topology, factory.plan, config),
            rebalance_timeout_ms=config.max_poll_interval_ms,
            endpoint=None if config.application_server is None else Address.parse(config.application_server),
            rack=config.client_rack,
            tags=config.client_tags,
        )
        settings = StreamsGroupSettings(config.max_poll_interval_ms, config.missing_source_timeout_ms)
        client = StreamsGroupClient(facts, settings, self._connector(name), self._clock, outage=self._outage)
        sources = {number: part.sources for number, part in factory.plan.sub_topologies.items()}
        return streams_group_membership(client, BrokerPlans(factory.content_ids(), sources), self._clock, wake=wake)

    @property
    def _group_id(self) -> str:
        return self._config.application_id

    def _connector(self, client_id: str) -> TcpConnector:
        return TcpConnector({**self._connection, "client.id": client_id}, self._clock, not_needed=())

    def _has_run(self, line: CoordinatorLine, plan: TopologyPlan) -> bool:
        """With these topics, that is: if the group was founded with others, the broker will say so."""
        founded_with = line.ask(describe(self._group_id), self._clock.now_ms() + ASKING_MS).internal_topics
        if founded_with and not plan.internal_topics.keys() <= founded_with:
            return False
        parts = plan.sub_topologies.values()
        read = {TopicPartition(topic, n) for part in parts for topic in part.sources for n in range(part.tasks)}
        return bool(OffsetClient(self._group_id, line, self._clock).committed(read, ASKING_MS))
