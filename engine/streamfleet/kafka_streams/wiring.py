"""Puts one app together: clients, internal topics, task factory, threads. Called once by KafkaStreams.start().

The only place that knows all parts; every part gets what it needs passed in.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog

from streamfleet.assignment.assignor_names import task_assignor
from streamfleet.assignment.slot_memory import SlotMemory
from streamfleet.assignment.snapshot import AssignorSettings, MemberReport, Plan
from streamfleet.assignment.streams_protocol import StreamsProtocol
from streamfleet.changelog.listeners import UpdateListeners
from streamfleet.changelog.restore_rate import RestoreRate
from streamfleet.changelog.state_updater import StateUpdater
from streamfleet.clock import Clock
from streamfleet.commit.api import Commit
from streamfleet.commit.at_least_once import AtLeastOnceCommit
from streamfleet.commit.exactly_once import ExactlyOnceCommit
from streamfleet.config import StreamsConfig
from streamfleet.errors import ConfigError
from streamfleet.failpoints import Failpoints
from streamfleet.ids import TopicPartition
from streamfleet.kafka.admin import KafkaAdmin
from streamfleet.kafka.broker_patience import BrokerPatience
from streamfleet.kafka.client_errors import AccessDeniedError
from streamfleet.kafka.client_settings import ClientSettings
from streamfleet.kafka.connection import TcpConnector
from streamfleet.kafka.consumer import KafkaConsumer
from streamfleet.kafka.group_client import GroupClient, GroupSettings
from streamfleet.kafka.group_cluster import GroupCluster
from streamfleet.kafka.internal_topic_manager import InternalTopicManager, message_limits
from streamfleet.kafka.internal_topic_watch import InternalTopicWatch
from streamfleet.kafka.membership import Membership, classic_membership
from streamfleet.kafka.outage import Outage
from streamfleet.kafka.patience import MonotonicClock
from streamfleet.kafka.producer import PRECISION_MS, PlainProducer
from streamfleet.kafka.streams_group.internal_topics import BrokerMadeTopics
from streamfleet.kafka.topic_permissions import READ, WRITE, check_permissions
from streamfleet.kafka.transactional_producer import KafkaTransactionalProducer
from streamfleet.kafka_streams.empty_changelogs import committed_offsets, tell_empty_changelogs
from streamfleet.kafka_streams.member_reports import MemberReports
from streamfleet.kafka_streams.streams_group_wiring import StreamsGroupWiring
from streamfleet.metrics import Metrics, ThreadCounts
from streamfleet.ports import TopicInfo
from streamfleet.state.api import StateStore
from streamfleet.state.memory_limit import database_memory_bytes, memory_limit_bytes
from streamfleet.state.rocksdb_engine import RocksDBMemory, RocksDBOptions
from streamfleet.state.state_directory import StateDirectory
from streamfleet.state.state_inventory import StateInventory, take_inventory
from streamfleet.state.store_caches import StoreCaches
from streamfleet.task.global_task import GlobalTask
from streamfleet.task.store_engines import StoreEngines
from streamfleet.thread.global_updater import GlobalUpdater
from streamfleet.thread.member_offsets import MemberOffsets
from streamfleet.thread.metered_commit import MeteredCommit
from streamfleet.thread.source_watch import SourceWatch, await_source_topics
from streamfleet.thread.stream_thread import StreamThread
from streamfleet.thread.task_factory import TaskFactory
from streamfleet.thread.task_manager import TaskManager
from streamfleet.topology.plan import TopologyPlan
from streamfleet.topology.topology import Topology

log = structlog.get_logger(__name__)

STREAMS_DELIVERY_MS = 3_000
"""At least once, in a group that the broker plans: how long a record may wait to be sent. Short, because nobody tells the session
time-out of such a group; where it is known, a third of it.
"""
LEADER_ASKING_MS = 2_000
"""What the leader of the group may take to ask how long changelogs are: it sends no heartbeats meanwhile, and all wait. A
StateUpdater that asks why a changelog gives nothing holds up restoring meanwhile, so it takes no longer either.
"""
UPDATER_ASKING_MS = 10_000
"""One question of a StateUpdater. A StreamThread that wants a task back waits until it is answered, and takes an updater that does
not let go for one whose disk hangs; so it is less than LET_GO_SECONDS. It is asked again, until the task time-out.
"""
LONGEST_ASKING_MS = 60_000
"""One question to the cluster is asked no longer than this, nor longer than the task time-out."""


@dataclass(frozen=True)
class ThreadParts:
    """A StreamThread with the membership and the StateUpdater that must be stepped beside it."""

    thread: StreamThread[MemberReport, Plan]
    membership: Membership[MemberReport, Plan]
    wake: threading.Event
    """Set when the thread wants something of its membership."""
    updater: StateUpdater
    updater_wake: threading.Event
    """Set when the thread wants something of its StateUpdater."""


class Wiring:
    """Everything that the threads of one app share."""

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        directory: StateDirectory,
        process_id: str,
        clock: Clock,
        metrics: Metrics,
        failpoints: Failpoints,
        listeners: UpdateListeners,
    ) -> None:
        self._topology = topology
        self._config = config
        self._directory = directory
        self._process_id = process_id
        self._clock = clock
        self._metrics = metrics
        self._failpoints = failpoints
        self._settings = ClientSettings.from_mapping(_client_mapping(config))
        self._outage = Outage(metrics.broker)
        asking_ms = min(config.task_timeout_ms, LONGEST_ASKING_MS)
        self._patience = BrokerPatience(timeout_ms=asking_ms, outage=self._outage)
        self._first_patience = BrokerPatience(timeout_ms=config.task_timeout_ms, outage=self._outage)
        self.admin = KafkaAdmin(self._settings.admin(client_id=f"{config.application_id}-admin"), self._patience)
        self._streams_group: StreamsGroupWiring | None = None
        if config.group_protocol == "streams":
            self._streams_group = StreamsGroupWiring(
                topology, config, self._settings.connection, process_id, self._outage
            )
        self._check_internal_topics: Callable[[], None] | None = None
        self._quick_admin = self.admin.with_patience(BrokerPatience(timeout_ms=LEADER_ASKING_MS, outage=self._outage))
        updaters = BrokerPatience(timeout_ms=min(asking_ms, UPDATER_ASKING_MS), outage=self._outage)
        self._updater_admin = self.admin.with_patience(updaters)
        self._changelogs: frozenset[str] = frozenset()
        self._message_limits: dict[str, int] = {}
        self._sources: dict[str, TopicInfo] | None = None
        self._incarnation = uuid.uuid4().hex
        self._caches: dict[int, StoreCaches] = {}
        self._listeners = listeners
        self.restore_rate = RestoreRate(MonotonicClock(), config.restore_rate_limit_bytes_per_second)
        half = (config.rocksdb_memory_max_bytes or database_memory_bytes(memory_limit_bytes())) // 2
        self._rocksdb_options = RocksDBOptions(memory=RocksDBMemory(block_cache_bytes=half, write_buffer_bytes=half))

    @property
    def waits_for_broker(self) -> str | None:
        """What was asked of the cluster and has no answer yet; None: nothing."""
        return self._first_patience.waits_for or self._patience.waits_for

    def global_updater(self) -> GlobalUpdater | None:
        """What feeds the global stores; None if there are none."""
        entries = tuple(self._topology.global_stores.values())
        if not entries:
            return None
        engines = StoreEngines(self._directory.emptied_global(), self._rocksdb_options)
        task = GlobalTask(entries, self._config, clock=self._clock, engines=engines, metrics=self._metrics)
        known = self._source_topics()
        partitions = tuple(TopicPartition(topic, n) for topic in task.topics for n in range(known[topic].partitions))
        return GlobalUpdater(
            task,
            self._consumer("global", self._config.application_id),
            self.admin,
            partitions,
            MonotonicClock(),
            task_timeout_ms=self._config.task_timeout_ms,
            count_stall=self._metrics.record_read_stall,
        )

    def task_factory(self, global_stores: Mapping[str, StateStore]) -> TaskFactory:
        """Find the input topics, create and check the internal ones; the app cannot run without either."""
        manager = InternalTopicManager(self.admin, replication_factor=self._config.replication_factor)
        sources = self._source_topics()
        plan = self._topology.plan({name: info.partitions for name, info in sources.items()}, self._config)
        self._changelogs = frozenset(name for part in plan.sub_topologies.values() for name in part.changelog_topics)
        internal = self._internal_topics(manager, plan)
        self._check_internal_topics = internal.check
        check_permissions(self.admin, self._needed_permissions(sources, plan))
        self._message_limits = self._limits_of(plan)
        partitions = {name: info.partitions for name, info in sources.items()}
        source_ids = {name: info.topic_id for name, info in sources.items()}
        return TaskFactory(
            topology=self._topology,
            plan=plan,
            partitions=partitions | {name: topic.partitions for name, topic in plan.internal_topics.items()},
            topic_ids=lambda: {**source_ids, **internal.ids()},
            check_topics=internal.check,
            config=self._config,
            directory=self._directory,
            clock=self._clock,
            metrics=self._metrics,
            global_stores=global_stores,
            rocksdb_options=self._rocksdb_options,
            inventory=self._inventory(plan),
        )

    def _inventory(self, plan: TopologyPlan) -> StateInventory:
        content_ids = {part.content_id for part in self._topology.sub_topologies() if part.id in plan.sub_topologies}
        return take_inventory(self._directory, self._config.application_id, content_ids)

    def _internal_topics(
        self, manager: InternalTopicManager, plan: TopologyPlan
    ) -> BrokerMadeTopics | InternalTopicWatch:
        """See to it that they are there, or will be when a task is opened."""
        if self._streams_group is not None:
            return self._streams_group.internal_topics(manager, plan)
        timeout_ms = self._config.missing_source_timeout_ms
        prepared, clock, group_id = manager.prepare(plan), MonotonicClock(), self._config.application_id
        connector = TcpConnector({**self._settings.connection, "client.id": f"{group_id}-start"}, clock)
        committed = committed_offsets(group_id, connector, clock, LONGEST_ASKING_MS)
        tell_empty_changelogs(prepared.created, plan, committed, self._metrics.record_empty_changelog)
        return InternalTopicWatch(manager, plan, prepared.topics, clock, missing_timeout_ms=timeout_ms)

    def _source_topics(self) -> dict[str, TopicInfo]:
        """The first question of a start: a broker that is not there yet is waited for as one that has gone away is."""
        if self._sources is None:
            manager = InternalTopicManager(self.admin.with_patience(self._first_patience))
            timeout_ms = self._config.missing_source_timeout_ms
            self._sources = await_source_topics(manager, self._topology, self._config.application_id, timeout_ms)
        return self._sources

    def source_watch(self) -> SourceWatch:
        config = self._config
        return SourceWatch(
            self.admin,
            self._source_topics(),
            self._clock,
            interval_ms=config.source_check_interval_ms,
            missing_timeout_ms=config.missing_source_timeout_ms,
            also=self._check_internal_topics,
        )

    def _needed_permissions(self, sources: Iterable[str], plan: TopologyPlan) -> dict[str, frozenset[str]]:
        """The purge of repartition topics is not among them: the app is right without it, only the topics grow."""
        outputs = self._output_topics(plan) - plan.internal_topics.keys()
        needed = dict.fromkeys(sources, READ) | dict.fromkeys(plan.internal_topics, READ | WRITE)
        return needed | {name: needed.get(name, frozenset()) | WRITE for name in outputs}

    def _output_topics(self, plan: TopologyPlan) -> set[str]:
        outputs = {topic for part in plan.sub_topologies.values() for topic in part.sinks}
        return outputs if self._config.dead_letter_topic is None else outputs | {self._config.dead_letter_topic}

    def _limits_of(self, plan: TopologyPlan) -> dict[str, int]:
        """Of the topics the app writes to. One that it may write but not describe is left out: the broker tells its limit."""
        present = self.admin.describe_topics(plan.internal_topics)  # the broker may have to create some yet
        limits = message_limits(self.admin, present)
        for topic in sorted(self._output_topics(plan) - plan.internal_topics.keys()):
            try:
                limits |= message_limits(self.admin, [topic])
            except AccessDeniedError as error:
                log.info("the size limit of an output topic is not known", topic=topic, reason=str(error))
        return limits

    def thread(self, number: int, factory: TaskFactory, before_step: Callable[[], None] | None = None) -> ThreadParts:
        config = self._config
        name = f"{config.application_id}-{number}"
        self._caches[number] = StoreCaches(config.statestore_cache_max_bytes, config.statestore_object_cache_max_bytes)
        self._share_caches()
        factory = replace(factory, caches=self._caches[number])
        wake = threading.Event()
        membership = self._membership(number, name, wake, factory)
        offsets = MemberOffsets(membership)
        counts = self._metrics.thread(name)
        commit = MeteredCommit(self._commit(number, offsets, counts, membership), counts)
        consumer = self._consumer("main", name)
        updater_wake = threading.Event()
        updater = StateUpdater(
            self._consumer("restore", name),
            self._updater_admin,
            self._failpoints,
            MonotonicClock(),
            task_timeout_ms=config.task_timeout_ms,
            rate=self.restore_rate,
            listeners=self._listeners,
            counts=counts,
            wake=updater_wake.set,
            cluster=self._quick_admin,
            count_stall=self._metrics.record_read_stall,
            outage=self._outage,
        )
        tasks = TaskManager(factory, consumer, self.admin, updater, commit, offsets, self._failpoints, counts)
        told = MemberReport(
            process_id=self._process_id,
            topology_hash=self._topology.short_hash(),
            sub_topologies=(),
            transactional_id=self._transactional_id(number),
            endpoint=config.application_server,
            tags=config.client_tags,
            rack=config.client_rack,
        )
        members = MemberReports(factory, tasks, told)
        thread = StreamThread(
            name,
            config,
            tasks,
            membership,
            consumer,
            commit,
            self._clock,
            report=members.report,
            tasks_of=members.tasks_of,
            fences_of=lambda plan: plan.fence,
            asks_for_shutdown=lambda plan: plan.shutdown,
            failpoints=self._failpoints,
            counts=counts,
            before_step=before_step,
            count_stall=self._metrics.record_read_stall,
            outage=self._outage,
        )
        return ThreadParts(thread, membership, wake, updater, updater_wake)

    def forget_thread(self, number: int) -> None:
        """A thread is gone for good: the others get its share of the memory for caches."""
        self._caches.pop(number, None)
        self._share_caches()

    def _share_caches(self) -> None:
        config = self._config
        shares = max(1, len(self._caches))
        for caches in self._caches.values():
            caches.resize(
                config.statestore_cache_max_bytes // shares, config.statestore_object_cache_max_bytes // shares
            )

    def _membership(
        self, number: int, name: str, wake: threading.Event, factory: TaskFactory
    ) -> Membership[MemberReport, Plan]:
        if self._streams_group is not None:
            return self._streams_group.membership(name, factory, wake.set)
        config = self._config
        clock = MonotonicClock()
        instance = None if config.group_instance_id is None else f"{config.group_instance_id}-{number}"
        settings = GroupSettings(
            config.application_id,
            instance,
            config.session_timeout_ms,
            config.max_poll_interval_ms,
            config.heartbeat_interval_ms,
        )
        connector = TcpConnector({**self._settings.connection, "client.id": name}, clock)
        protocol = StreamsProtocol(
            self._incarnation,
            settings=_assignor_settings(config),
            assignor=task_assignor(config.task_assignor),
            cluster=GroupCluster(
                self._quick_admin, config.application_id, connector, clock, timeout_ms=LEADER_ASKING_MS
            ),
            memory=SlotMemory(self._directory.path / f".tasks-{number}"),
        )
        client = GroupClient(settings, connector, clock, protocol=protocol.name, outage=self._outage)
        return classic_membership(client, protocol, clock, wake=wake.set)

    def _at_least_once(
        self, client_id: str, offsets: MemberOffsets, counts: ThreadCounts, membership: Membership[MemberReport, Plan]
    ) -> Commit:
        timeout_ms = STREAMS_DELIVERY_MS if self._streams_group else self._config.session_timeout_ms // 3
        settings = self._settings.plain_producer(
            client_id=client_id, delivery_timeout_ms=timeout_ms, message_limits=self._message_limits
        )
        producer = PlainProducer(
            settings,
            self._message_limits,
            counts.add_moved_timestamp,
            tenure=membership.tenure,
            reserve_ms=timeout_ms + PRECISION_MS,
        )
        return AtLeastOnceCommit(producer, self.admin, offsets, self._failpoints)

    def _commit(
        self, number: int, offsets: MemberOffsets, counts: ThreadCounts, membership: Membership[MemberReport, Plan]
    ) -> Commit:
        client_id = f"{self._config.application_id}-{number}-producer"
        if not self._config.is_exactly_once:
            return self._at_least_once(client_id, offsets, counts, membership)
        transactional_id = self._transactional_id(number)
        assert transactional_id is not None
        settings = self._settings.transactional_producer(
            client_id=client_id, transactional_id=transactional_id, message_limits=self._message_limits
        )
        settings["transaction.timeout.ms"] = self._config.transaction_timeout_ms
        return ExactlyOnceCommit(
            lambda blames: KafkaTransactionalProducer(
                settings,
                tracked=self._changelogs,
                blame_single_records=blames,
                message_limits=self._message_limits,
                on_moved=counts.add_moved_timestamp,
            ),
            offsets,
            self._failpoints,
        )

    def _consumer(self, role: Any, name: str) -> KafkaConsumer:
        return KafkaConsumer(
            self._settings.consumer(
                role,
                group_id=self._config.application_id,
                client_id=f"{name}-{role}",
                exactly_once=self._config.is_exactly_once,
            )
        )

    def _transactional_id(self, number: int) -> str | None:
        if not self._config.is_exactly_once:
            return None
        return f"{self._config.application_id}-{self._process_id}-{number}"

    def close(self) -> None:
        self._quick_admin.close()
        self._updater_admin.close()
        self.admin.close()


def _client_mapping(config: StreamsConfig) -> dict[str, Any]:
    if config.bootstrap_servers is None:
        raise ConfigError("bootstrap.servers is missing", hint="name at least one broker, as host:port")
    rack = {} if config.client_rack is None else {"client.rack": config.client_rack}
    return {"bootstrap.servers": config.bootstrap_servers, **rack, **config.client_settings}


def _assignor_settings(config: StreamsConfig) -> AssignorSettings:
    return AssignorSettings(
        num_standby_replicas=config.num_standby_replicas,
        acceptable_recovery_lag=config.acceptable_recovery_lag,
        max_warmup_replicas=config.max_warmup_replicas,
        probing_interval_ms=config.probing_rebalance_interval_ms,
        rack_aware_strategy=config.rack_aware_assignment_strategy,
        rack_aware_tags=config.rack_aware_assignment_tags,
        rack_aware_traffic_cost=config.rack_aware_assignment_traffic_cost,
        rack_aware_non_overlap_cost=config.rack_aware_assignment_non_overlap_cost,
    )
