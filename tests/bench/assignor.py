"""How long the leader of a large group thinks: python tests/bench/assignor.py [--tasks 5000] [--workers 200]

Every other member waits meanwhile, and tasks that moved stand still: it must stay below a second. Each case is a
rebalance of a group that ran before; the time is CPU time, the best of three, of `assign` alone. The last line is everything
that the leader does, from the bytes of the reports to those of the plans, which the broker keeps in one record.
"""

from __future__ import annotations

import argparse
import sys
import time
import uuid
from collections.abc import Callable, Collection, Iterable

import msgspec
from tests.unit.streamfleet.assignment.simulated_cluster import Cluster, Process

from streamfleet.assignment.group_assignment import assign
from streamfleet.assignment.snapshot import Snapshot, SubTopologyInfo
from streamfleet.assignment.streams_protocol import StreamsProtocol
from streamfleet.ids import TopicPartition
from streamfleet.kafka.group_protocol import Subscriber
from streamfleet.ports import OffsetKind

LIMIT_S = 1.0
SUB_TOPOLOGIES = 10


def group(tasks: int, workers: int, standbys: int) -> Cluster:
    partitions = tasks // SUB_TOPOLOGIES
    infos = tuple(
        SubTopologyInfo(f"part-{n}", {f"in-{n}": partitions}, n % 5 != 0, (f"log-{n}",) if n % 5 else ())
        for n in range(SUB_TOPOLOGIES)
    )
    processes = [Process(f"worker-{n:03}") for n in range(workers)]
    return Cluster(infos, processes, num_standby_replicas=standbys)


def after(change: Callable[[Cluster], None], tasks: int, workers: int, standbys: int) -> Snapshot:
    """The group when something has changed since it settled."""
    cluster = group(tasks, workers, standbys)
    cluster.settle()
    change(cluster)
    return cluster.snapshot()


def one_comes(cluster: Cluster) -> None:
    cluster.processes["worker-new"] = Process("worker-new")


def one_dies(cluster: Cluster) -> None:
    cluster.leave(max(cluster.processes))


def all_start_again(cluster: Cluster) -> None:
    cluster.restart()


def all_but_two_are_new(cluster: Cluster) -> None:
    for name in sorted(cluster.processes)[2:]:
        cluster.leave(name)
    cluster.settle()
    for number in range(198):
        cluster.processes[f"new-{number:03}"] = Process(f"new-{number:03}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=5_000)
    parser.add_argument("--workers", type=int, default=200)
    options = parser.parse_args()
    slowest = 0.0
    for standbys in (0, 1):
        cases = {"first start": group(options.tasks, options.workers, standbys).snapshot()}
        for change in (one_comes, one_dies, all_start_again, all_but_two_are_new):
            cases[change.__name__.replace("_", " ")] = after(change, options.tasks, options.workers, standbys)
        for name, snapshot in cases.items():
            best = min(_timed(snapshot) for _ in range(3))
            slowest = max(slowest, best)
            print(f"{name:<22} standbys {standbys}   {best * 1000:7.0f} ms")
    everything, size = _whole_protocol(after(one_comes, options.tasks, options.workers, 1))
    slowest = max(slowest, everything)
    print(
        f"{'with reports and plans':<22} standbys 1   {everything * 1000:7.0f} ms   plans {size / 1000:.0f} kB in all"
    )
    print(
        f"{options.tasks} tasks on {options.workers} workers: at most {slowest * 1000:.0f} ms (limit {LIMIT_S * 1000:.0f})"
    )
    return 0 if slowest < LIMIT_S else 1


def _timed(snapshot: Snapshot) -> float:
    begun = time.process_time()
    assign(snapshot)
    return time.process_time() - begun


def _whole_protocol(snapshot: Snapshot) -> tuple[float, int]:
    subscribers = []
    for member in snapshot.members:
        name = uuid.uuid4().hex
        told = msgspec.structs.replace(
            member.report, endpoint=f"{member.member_id}:8080", transactional_id=f"app-{name}-0"
        )
        subscription = StreamsProtocol().subscribe(told, generation_id=member.generation_id, counter=0)
        subscribers.append(Subscriber(member.member_id, None, subscription))
    leader = StreamsProtocol(cluster=EveryChangelog())
    begun = time.process_time()
    plans = leader.assign(subscribers)
    return time.process_time() - begun, sum(len(plan.user_data) for plan in plans.values())


class EveryChangelog:
    """A cluster in which all changelogs are as long."""

    def list_offsets(self, partitions: Iterable[TopicPartition], kind: OffsetKind) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 1_000_000)

    def committed(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {}

    def partition_racks(self, names: Iterable[str]) -> dict[TopicPartition, frozenset[str]]:
        return {}


if __name__ == "__main__":
    sys.exit(main())
