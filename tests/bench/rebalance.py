"""How long a group takes to rebalance: `make bench`. Heartbeats decide it, since a member hears of a rebalance by one.

Memberships of the engine on a broker of its own, their StreamThreads played by hand and all stepped in turn by one thread: no
restoring, no user code. Two members share six tasks; a third comes, and has its share after two steps (give up, take over). Then
one member of the three calls for a rebalance, and all have the new plan after one step. `shipped` is with the shorter heartbeats
between two steps that the engine has, `plain` without; beside them what a bare client took that did nothing but speak the
protocol, on an idle machine. The last line says whether what is shipped keeps up with it, and so does the exit code.
"""

from __future__ import annotations

import logging
import statistics
import sys
import time
from collections.abc import Callable, Mapping

import structlog
from tests.integration.streamfleet.kafka.group_actors import (
    HandThread,
    balanced,
    connector,
    create_topic,
    settle,
    unique,
)

from streamfleet.kafka.connection import TcpConnector
from streamfleet.kafka.group_client import GroupSettings
from streamfleet_devbroker.pytest_plugin import temporary_cluster

TASKS = 6
SESSION_TIMEOUT_MS = 10_000
BARE_CLIENT_MS = {3000: (5707, 2705), 1000: (1710, 703), 200: (309, 105), 50: (64, 9)}
"""By heartbeat interval: third member in, and enforced."""
SHORT_MS = 200
TOLERANCE, TOLERANCE_MS = 1.25, 30
"""What may be slower than the bare client: the engine decides, and the machine may not be idle."""
REPEATS = 5
"""With heartbeats up to SHORT_MS; once with longer ones."""


def main() -> int:
    """0 if what is shipped keeps up with a bare client, else 1."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with temporary_cluster(nodes=1) as cluster:
        bootstrap = cluster.bootstrap_servers
        connect, topic = connector(bootstrap), create_topic(bootstrap, TASKS)
        print(f"{'heartbeat':>12}{'third member in, ms':>40}{'enforced, ms':>26}", flush=True)
        print(f"{'ms':>12}{'shipped':>14}{'plain':>12}{'bare client':>14}{'here':>12}{'bare client':>14}", flush=True)
        measure(connect, topic, 50, GroupSettings.follow_up_heartbeat_ms)  # the first group waits for the offsets topic
        measured: dict[int, tuple[float, float]] = {}
        for interval_ms, (bare_in, bare_enforced) in BARE_CLIENT_MS.items():
            repeats = range(REPEATS if interval_ms <= SHORT_MS else 1)
            shipped = [measure(connect, topic, interval_ms, GroupSettings.follow_up_heartbeat_ms) for _ in repeats]
            plain = [measure(connect, topic, interval_ms, interval_ms) for _ in repeats]
            columns = (_median(shipped, 0), _median(plain, 0), bare_in, _median(shipped + plain, 1), bare_enforced)
            print(
                f"{interval_ms:>12}"
                + "".join(f"{c:>{w}.0f}" for c, w in zip(columns, (14, 12, 14, 12, 14), strict=True))
            )
            measured[interval_ms] = columns[0], columns[3]
    return verdict(measured)


def verdict(measured: Mapping[int, tuple[float, float]]) -> int:
    """By heartbeat interval: third member in, and enforced, in ms."""
    slow = [
        f"{what} at {interval_ms} ms took {here:.0f} ms, the bare client {bar} ms"
        for interval_ms, both in measured.items()
        for what, here, bar in zip(("third member in", "enforced"), both, BARE_CLIENT_MS[interval_ms], strict=True)
        if here > bar * TOLERANCE + TOLERANCE_MS
    ]
    print(f"as quick as a bare client: {'NOT MET: ' + '; '.join(slow) if slow else 'met'}")
    return 1 if slow else 0


def measure(connect: TcpConnector, topic: str, interval_ms: int, follow_up_ms: int) -> tuple[float, float]:
    """Milliseconds until a third member has its share, and until a rebalance that was called for is over."""
    group = unique("rebalance")

    def member(name: str) -> HandThread:
        return HandThread(
            connect,
            group,
            topic,
            name,
            partitions=TASKS,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=interval_ms,
            follow_up_heartbeat_ms=follow_up_ms,
        )

    threads = [member("a"), member("b")]
    settle(*threads, until=lambda: balanced(*threads))
    began = time.perf_counter()
    threads.append(member("c"))
    came_in = _until(began, threads, lambda: balanced(*threads))
    generation = threads[0].plans[-1].generation_id
    began = time.perf_counter()
    threads[2].membership.enforce_rebalance("to measure it")
    enforced = _until(began, threads, lambda: all(t.plans[-1].generation_id > generation for t in threads))
    for thread in threads:
        thread.leave()
    return came_in, enforced


def _until(began: float, threads: list[HandThread], condition: Callable[[], bool]) -> float:
    settle(*threads, until=condition, seconds=60)
    return (time.perf_counter() - began) * 1000


def _median(runs: list[tuple[float, float]], column: int) -> float:
    return statistics.median(run[column] for run in runs)


if __name__ == "__main__":
    sys.exit(main())
