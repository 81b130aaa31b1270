"""The development broker of a person: one per user, started in the background, found again by the next command.

Called by cli.py. What was started is written to `broker.json` beside the data; whether it still lives is asked of the
kernel (node.py). Commands that change something take turns by a lock file, so two terminals cannot start two brokers.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from streamfleet_devbroker import readiness
from streamfleet_devbroker.cluster import Cluster, ClusterSpec
from streamfleet_devbroker.directories import cache_directory, make_directory, state_directory
from streamfleet_devbroker.errors import BrokerConflictError
from streamfleet_devbroker.node import detached_pid, stop_detached
from streamfleet_devbroker.storage import HOST, stored_cluster_id

Report = Callable[[str], None]
DEFAULT_PORT = 9092
MAJORITY_SECONDS = 5.0
"""How long the last nodes of a cluster of three may wait for a majority that is going away with them."""


@dataclass(frozen=True)
class Asked:
    """What the person asked for when the data was made or the broker last started."""

    nodes: int
    port: int

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{HOST}:{self.port + i}" for i in range(self.nodes))


@dataclass(frozen=True)
class BrokerStatus:
    """What is there now."""

    asked: Asked | None
    pids: tuple[int, ...]
    answering_nodes: int
    log_paths: tuple[Path, ...]

    @property
    def running(self) -> bool:
        """Every node lives and the cluster lists all of them."""
        return self.asked is not None and len(self.pids) == self.asked.nodes == self.answering_nodes


@dataclass(frozen=True)
class BrokerService:
    """start, stop, status, reset."""

    directory: Path = field(default_factory=state_directory)
    cache: Path = field(default_factory=cache_directory)

    def start(self, report: Report, *, nodes: int | None = None, port: int | None = None) -> BrokerStatus:
        """The running broker; started now unless it runs already. What is not given is as it was last time."""
        with self._taking_turns():
            before, stored_nodes = self._read(), self._stored_nodes()
            asked = Asked(nodes or stored_nodes or 1, port or (before.port if before else DEFAULT_PORT))
            self._refuse_conflicts(before, asked, stored_nodes)
            if before == asked and self.status().running:
                report(f"the broker runs already at {asked.bootstrap_servers}")
            else:
                self._start(asked, report)
            return self.status()

    def stop(self, report: Report) -> bool:
        """End the broker, keep its data; whether one was running."""
        with self._taking_turns():
            return self._stop(report)

    def status(self) -> BrokerStatus:
        asked, pids = self._read(), self._pids()
        answering = readiness.count_brokers(asked.bootstrap_servers) if asked and pids else 0
        return BrokerStatus(asked, pids, answering, tuple(path / "broker.log" for path in self._node_directories()))

    def reset(self, report: Report) -> None:
        """Stop the broker and delete every topic, record and offset in it."""
        with self._taking_turns():
            self._stop(report)
            for path in (*self._node_directories(), self._record):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            report(f"the broker's data under {self.directory} is deleted")

    def _start(self, asked: Asked, report: Report) -> None:
        if self._pids():
            report("the broker runs only in part or does not answer: starting it again")
            self._stop(report)
        spec = ClusterSpec(self.directory, asked.nodes, asked.port, detached=True, cache=self.cache)
        self._record.write_text(json.dumps(asdict(asked)) + "\n", "utf-8")
        cluster = Cluster.start(spec, report)
        cluster.detach()
        report(f"the broker is up at {asked.bootstrap_servers}")

    def _stop(self, report: Report) -> bool:
        directories = [path for path in self._node_directories() if detached_pid(path) is not None]
        if not directories:
            report("no broker is running")
            return False
        report("stopping the broker")
        if len(directories) == 1:
            if not stop_detached(directories):
                report("the broker did not stop in time and was killed; it will repair its logs when it starts")
        else:
            stop_detached(directories, seconds=MAJORITY_SECONDS)
        return True

    def _refuse_conflicts(self, before: Asked | None, asked: Asked, stored_nodes: int) -> None:
        if before and before != asked and self._pids():
            raise BrokerConflictError(
                f"a broker with {before.nodes} node(s) runs already at {before.bootstrap_servers}",
                hint="stop it first: streamfleet broker stop",
            )
        if stored_nodes not in (0, asked.nodes):
            raise BrokerConflictError(
                f"the data under {self.directory} belongs to a cluster of {stored_nodes} node(s), not {asked.nodes}",
                hint=f"start with --nodes {stored_nodes}, or delete the data: streamfleet broker reset --yes",
            )

    def _stored_nodes(self) -> int:
        return sum(stored_cluster_id(path / "data") is not None for path in self._node_directories())

    @property
    def _record(self) -> Path:
        return self.directory / "broker.json"

    def _read(self) -> Asked | None:
        try:
            return Asked(**json.loads(self._record.read_text("utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None  # never started, or a half-written record: as good as none

    def _node_directories(self) -> list[Path]:
        return sorted(self.directory.glob("node-*"))

    def _pids(self) -> tuple[int, ...]:
        found = (detached_pid(path) for path in self._node_directories())
        return tuple(pid for pid in found if pid is not None)

    @contextmanager
    def _taking_turns(self) -> Iterator[None]:
        with (make_directory(self.directory) / "command.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
