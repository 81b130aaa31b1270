"""What the leader has to ask the cluster before it assigns: how long changelogs are, and in which racks partitions are.

Called by streams_protocol.py, on the thread that keeps the membership, with a ClusterReader that answers soon or fails.
An assignor can do without either: tasks then stay where they are, and are looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import structlog

from streamfleet.assignment.runnable import runnable_sub_topologies
from streamfleet.assignment.snapshot import AssignorSettings, Member, SubTopologyInfo, TaskKey
from streamfleet.errors import StreamsError
from streamfleet.ids import TopicPartition
from streamfleet.ports import ClusterReader, OffsetKind

log = structlog.get_logger(__name__)


class ClusterFacts(msgspec.Struct, frozen=True, kw_only=True):
    """See Snapshot."""

    end_offset_sums: Mapping[TaskKey, int] | None = None
    partition_racks: Mapping[TopicPartition, frozenset[str]] = {}


def cluster_facts(cluster: ClusterReader, members: Sequence[Member], settings: AssignorSettings) -> ClusterFacts:
    infos = [entry.info for entry in runnable_sub_topologies(members)[0].values()]
    try:
        ends = _end_offset_sums(cluster, infos)
    except StreamsError as error:
        log.warning("tasks are assigned without knowing how far their state is", why=str(error))
        return ClusterFacts()
    if settings.rack_aware_strategy == "none":
        return ClusterFacts(end_offset_sums=ends)
    try:
        racks = cluster.partition_racks({topic for info in infos for topic in (*info.sources, *info.changelogs)})
    except StreamsError as error:
        log.warning("tasks are assigned without knowing the racks of their topics", why=str(error))
        racks = {}
    return ClusterFacts(end_offset_sums=ends, partition_racks=racks)


def _end_offset_sums(cluster: ClusterReader, infos: Sequence[SubTopologyInfo]) -> dict[TaskKey, int]:
    stateful = [info for info in infos if info.stateful]
    changelogs = {task: tuple(info.changelogs_of(task)) for info in stateful for task in info.tasks()}
    partitions = {partition for each in changelogs.values() for partition in each}
    # Behind the last record, not the last stable one: that is where a restore has to get to before the task can run.
    # Of an input topic, a copy has what was processed of it: what waits behind that is for whoever will run the task.
    inputs = {partition for info in stateful for partition in _read_as_changelogs(info)}
    written = partitions - inputs
    ends = cluster.list_offsets(written, OffsetKind.HIGH_WATERMARK) if written else {}
    if inputs:
        ends = ends | cluster.committed(inputs)
    return {task: sum(ends.get(partition, 0) for partition in each) for task, each in changelogs.items() if each}


def _read_as_changelogs(info: SubTopologyInfo) -> Iterator[TopicPartition]:
    return (each for task in info.tasks() for each in info.changelogs_of(task) if each.topic in info.sources)
