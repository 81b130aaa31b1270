"""How long the leader of a large group thinks: python tests/bench/assignor.py [--tasks 5000] [--workers 200]

Every other member waits meanwhile, and tasks that moved stand still: it must stay below a second. Each case is a
rebalance of a group that ran before; the time is the best of three, of `assign` alone (reports are decoded before it).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from tests.unit.streamfleet.assignment.simulated_cluster import Cluster, Process

from streamfleet.assignment.group_assignment import assign
from streamfleet.assignment.snapshot import Snapshot, SubTopologyInfo

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
    print(
        f"{options.tasks} tasks on {options.workers} workers: at most {slowest * 1000:.0f} ms (limit {LIMIT_S * 1000:.0f})"
    )
    return 0 if slowest < LIMIT_S else 1


def _timed(snapshot: Snapshot) -> float:
    begun = time.perf_counter()
    assign(snapshot)
    return time.perf_counter() - begun


if __name__ == "__main__":
    sys.exit(main())
