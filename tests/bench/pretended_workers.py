"""Workers that only exist as what their doors would say, for platform_scale.py: pages as those of real ones, in the form of
docs/worker.md, so that everything behind HTTP is the platform's own code: reading, measuring, health, decisions.

Every app has two sub-topologies with a repartition topic between them. Most keep up; every tenth lags and needs more slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from tests.unit.streamfleet_platform.simulated_world import Clock, SimulatedCluster, SimulatedDoors

from streamfleet_platform.operations.cluster import GroupFacts, TopicFacts
from streamfleet_platform.runtime.api import WorkerState
from streamfleet_platform.runtime.simulated import SimulatedRuntime

PARTITIONS = 12
RATE = 50.0
"""Records per second and task of an app that keeps up; one that lags has twenty times as many."""
BUSY = {0: 0.0002, 1: 0.0005}
"""Seconds per record, by sub-topology."""
STORE_BYTES = 3 * 2**20


class PretendedCluster(SimulatedCluster):
    """One that remembers how its topics were made."""

    def __init__(self, runtime: SimulatedRuntime) -> None:
        super().__init__(runtime)
        self.made: dict[str, dict[str, str]] = {}

    def create_topics(self, topics: Any) -> None:
        topics = list(topics)
        self.made.update({topic.name: dict(topic.configs) for topic in topics})
        super().create_topics(topics)


class SightOfCluster:
    """What looks at it are told."""

    def __init__(self, cluster: PretendedCluster) -> None:
        self._cluster = cluster

    def topics(self, names: Iterable[str]) -> dict[str, TopicFacts]:
        return {name: self._cluster.there[name] for name in names if name in self._cluster.there}

    def configs(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        return {name: self._cluster.made[name] for name in names if name in self._cluster.made}

    def end_offsets(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        return {name: dict.fromkeys(range(self._cluster.there[name].partitions), 1_000_000) for name in topics}

    def groups(self, groups: Iterable[str]) -> dict[str, GroupFacts]:
        return {group: GroupFacts(False, "stable", (group,), ()) for group in groups}


class PretendedDoors(SimulatedDoors):
    """Answers for every worker that runs, as of the lab's clock."""

    def __init__(self, runtime: SimulatedRuntime, clock: Clock, hashes: Mapping[str, str]) -> None:
        super().__init__()
        self._runtime = runtime
        self._clock = clock
        self._hashes = hashes
        self._began = clock.now
        self._slots: dict[str, int] = {}

    def look(self) -> None:
        """How many workers each app has now; once per pass."""
        self._slots = {}
        for worker in self._runtime.list():
            self._slots[worker.app] = self._slots.get(worker.app, 0) + worker.is_alive

    def status(self, worker: WorkerState) -> dict[str, Any]:
        app, slots = worker.app, self._slots.get(worker.app, 1)
        lags = int(app.removeprefix("app")) % 10 == 0
        seconds = (self._clock.now - self._began).total_seconds()
        mine = range(worker.slot % slots, PARTITIONS, slots)
        tasks = [_task(app, number, partition, seconds, lags=lags) for number in (0, 1) for partition in mine]
        busy = sum(task["busy_seconds"] for task in tasks)
        thread = {
            "name": f"{app}-{worker.slot}", "leads_group": worker.slot == 0, "tasks": tasks, "standbys": [],
            "activity_seconds": {"restore": 0.0, "poll": 1.0, "process": busy, "punctuate": 0.0, "commit": 0.5},
        }  # fmt: skip
        return {
            "topology_hash": self._hashes[app], "started_at_ms": _milliseconds(self._began), "state": "running", "paused": False,
            "ready": {"ok": True}, "restore_rate_bytes_per_second": 0, "failure": None, "rebalances": 1, "dropped_records": {},
            "threads": [thread],
        }  # fmt: skip


def _task(app: str, number: int, partition: int, seconds: float, *, lags: bool) -> dict[str, Any]:
    done = int(seconds * RATE * (20 if lags else 1))
    topic = f"{app}-in" if number == 0 else f"{app}-by-country-repartition"
    lag = 500_000 if lags else 3
    return {
        "id": f"{number}_{partition}", "phase": "running", "restore": None,
        "processed_records": done, "busy_seconds": done * BUSY[number],
        "inputs": [{"topic": topic, "partition": partition, "position": done, "lag_records": lag, "committed": done}],
    }  # fmt: skip


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)
