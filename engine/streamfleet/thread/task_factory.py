"""Makes StreamTasks and StandbyTasks: knows the topology, the partition counts of the cluster and where state is kept. Called by
TaskManager and StandbyManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from streamfleet.clock import Clock
from streamfleet.config import StreamsConfig
from streamfleet.errors import StateStoreError, TopologyError
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.metrics import Metrics
from streamfleet.ports import Producer
from streamfleet.state.api import StateStore
from streamfleet.state.rocksdb_engine import RocksDBEngine, RocksDBOptions
from streamfleet.state.state_directory import StateDirectory
from streamfleet.state.state_inventory import StateInventory, StateKey
from streamfleet.state.store_caches import StoreCaches
from streamfleet.task.standby_task import StandbyTask
from streamfleet.task.store_engines import StoreEngines
from streamfleet.task.stream_task import StreamTask, inputs_of
from streamfleet.topology.nodes import OffsetReset, ProcessorTopology, SourceNode
from streamfleet.topology.plan import SubTopologyPlan, TopologyPlan
from streamfleet.topology.topology import Topology

log = structlog.get_logger(__name__)

LagOf = Callable[[TopicPartition], int | None]


def _nothing_to_check() -> None:
    pass


@dataclass(frozen=True)
class TaskFactory:
    """`partitions` has the partition count of every topic that some source reads, internal ones by their real names, `topic_ids`
    gives the present id of each. `check_topics` asks the cluster whether the internal topics are still the same, and raises if not.
    """

    topology: Topology
    plan: TopologyPlan
    partitions: Mapping[str, int]
    topic_ids: Callable[[], Mapping[str, str]]
    config: StreamsConfig
    directory: StateDirectory
    clock: Clock
    metrics: Metrics
    global_stores: Mapping[str, StateStore]
    rocksdb_options: RocksDBOptions
    caches: StoreCaches | None = None
    """Of the thread that the tasks are for."""
    inventory: StateInventory = field(default_factory=StateInventory)
    check_topics: Callable[[], None] = _nothing_to_check
    outgrown: set[StateKey] = field(default_factory=set)
    """States whose changelogs no longer go on from what was here: a snapshot may be as old, and would be wiped again, for ever."""

    @property
    def repartition_topics(self) -> frozenset[str]:
        return frozenset(topic for part in self.plan.sub_topologies.values() for topic in part.repartition_topics)

    def content_ids(self) -> dict[int, str]:
        """SubTopology number -> content id, of those that have tasks."""
        parts = self.topology.sub_topologies()
        return {part.id: part.content_id for part in parts if part.id in self.plan.sub_topologies}

    def inputs(self, task_id: TaskId) -> tuple[TopicPartition, ...]:
        """The partitions a task reads; a topic with fewer partitions than its SubTopology has tasks gives none to the last ones."""
        sources = self._plan_of(task_id).sources
        return tuple(
            TopicPartition(topic, task_id.partition) for topic in sources if task_id.partition < self.partitions[topic]
        )

    def offset_reset(self, task_id: TaskId, topic: str) -> OffsetReset:
        """What the source of a topic wants without a committed offset; the original's default is earliest."""
        policy = self.source(task_id, topic).offset_reset
        return "earliest" if policy is None else policy  # a duration of zero is false, too

    def source(self, task_id: TaskId, topic: str) -> SourceNode:
        """The source of a task that reads a topic."""
        whole = self._topology_of(task_id)
        partition = TopicPartition(topic, task_id.partition)
        return inputs_of(whole, [partition])[partition]

    def create(
        self, task_id: TaskId, producer: Producer, lag_of: LagOf, engines: StoreEngines | None = None
    ) -> StreamTask:
        """`engines`: those of the StandbyTask that it takes over; without them it opens its own. Raises TaskLockedError."""
        topology = self._topology_of(task_id)
        inputs = inputs_of(topology, self.inputs(task_id))
        return StreamTask(
            task_id,
            topology,
            inputs,
            self.config,
            clock=self.clock,
            producer=producer,
            engines=engines or self._engines(task_id),
            metrics=self.metrics,
            lag_of=lag_of,
            global_stores=self.global_stores,
            state_id=self.task_directory(task_id).name,
            topic_ids=self.topic_ids(),
            snapshots=self._snapshots(task_id),
            caches=self.caches,
        )

    def create_standby(self, task_id: TaskId, engines: StoreEngines | None = None) -> StandbyTask:
        """`engines`: those of the StreamTask that it is made of; without them it opens its own. Raises TaskLockedError."""
        return StandbyTask(
            task_id,
            self._topology_of(task_id),
            self.config,
            engines=engines or self._engines(task_id),
            metrics=self.metrics,
            state_id=self.task_directory(task_id).name,
            topic_ids=self.topic_ids(),
            snapshots=self._snapshots(task_id),
        )

    def _snapshots(self, task_id: TaskId) -> Path | None:
        return None if self.state_key(task_id) in self.outgrown else self.config.state_snapshot_dir

    def _engines(self, task_id: TaskId) -> StoreEngines:
        path = self.directory.claim_task(*self.state_key(task_id))
        return StoreEngines(path, self.rocksdb_options, lambda: self.directory.give_up_task(path))

    def task_directory(self, task_id: TaskId) -> Path:
        return self.directory.task_directory(*self.state_key(task_id))

    def state_key(self, task_id: TaskId) -> StateKey:
        """Names the task's state, whatever number its SubTopology has."""
        return self.content_ids()[task_id.sub_topology], task_id.partition

    def note_state(self, task: StreamTask | StandbyTask) -> None:
        """Remember how much of its changelogs is on disk, of a task that is about to be closed."""
        key = self.state_key(task.task_id)
        try:
            self.inventory.note(key, task.offset_sum_on_disk())
        except StateStoreError:
            self.inventory.forget(key)  # what cannot be read is of no use

    def unlogged_stores(self, task_id: TaskId) -> list[str]:
        """Stores on disk without a changelog: what is lost of them is lost for good."""
        stores = self._topology_of(task_id).stores
        return [e.name for e in stores if e.changelog is None and getattr(e.builder, "kind", None) == "rocksdb"]

    def wipe(self, task_id: TaskId, *, keeps_former: bool = False, is_outgrown: bool = False) -> None:
        """Delete a task's state; or set it aside, to be compared with what is restored. `is_outgrown`: it is not damaged, but its
        changelog does not go on from it; then everything is replayed, also where there are snapshots.
        """
        key = self.state_key(task_id)
        if is_outgrown:
            self.outgrown.add(key)
            if self.config.state_snapshot_dir is not None:
                log.warning(
                    "snapshots are not used for this task, its changelog may have outgrown them", task=str(task_id)
                )
        (self.directory.set_task_aside if keeps_former else self.directory.wipe_task)(*key)
        self.inventory.forget(key)

    def count_lost_rows(self, task: StreamTask) -> int | None:
        """Rows of the state that was set aside for a task, and which it has not got back; None if nothing was."""
        key = self.state_key(task.task_id)
        path = self.directory.former_task(*key)
        if path is None:
            return None
        try:
            former = RocksDBEngine(path, self.rocksdb_options)
            try:
                return task.lost_rows(former)
            finally:
                former.close()
        finally:
            self.directory.drop_former_task(*key)

    def _topology_of(self, task_id: TaskId) -> ProcessorTopology:
        config = self.config
        return self.topology.processor_topology(config.application_id, task_id.sub_topology, config.store_epochs)

    def _plan_of(self, task_id: TaskId) -> SubTopologyPlan:
        part = self.plan.sub_topologies.get(task_id.sub_topology)
        if part is None or not 0 <= task_id.partition < part.tasks:
            raise TopologyError(
                f"the topology has no task {task_id}",
                hint="all members of a group must run the same topology; deploy the same version everywhere",
            )
        return part
