"""One or three nodes that form one cluster: prepared, started, waited for until they answer, stopped.

Called by service.py (for people, detached) and pytest_plugin.py (for tests, guarded). Whatever keeps a cluster from
coming up leaves this module as one BrokerError, with every process that was started ended again.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from streamfleet_devbroker import node as node_module
from streamfleet_devbroker import readiness, storage
from streamfleet_devbroker.diagnosis import explain_end
from streamfleet_devbroker.directories import cache_directory, make_directory
from streamfleet_devbroker.errors import BrokerConflictError, NoSpaceError, PortTakenError
from streamfleet_devbroker.jars import ensure_jars
from streamfleet_devbroker.java import find_java
from streamfleet_devbroker.node import STOP_SECONDS, NodeProcess
from streamfleet_devbroker.ports import check_port, free_ports
from streamfleet_devbroker.storage import HOST, NodeSpec

Report = Callable[[str], None]
START_ATTEMPTS = 3
"""A free port can be taken by another process between our look and Kafka's bind; then other ports are tried."""


def _say_nothing(_: str) -> None:
    pass


@dataclass(frozen=True)
class ClusterSpec:
    """What to start and where."""

    directory: Path
    """Holds one directory per node: settings, data, log."""
    nodes: int = 1
    """1, or 3."""
    port: int | None = None
    """The first node's port, the others follow it; None takes free ones."""
    detached: bool = False
    """Whether the cluster outlives the process that starts it."""
    cache: Path = field(default_factory=cache_directory)
    """Jars and, where it was needed, Java."""
    heap_mb: int = 384
    log_level: str = "INFO"
    min_free_mb: int = 300
    """Refuse to start with less than this free: Kafka would come up and die later."""
    ready_seconds: float = 90.0
    settings: Mapping[str, str] = field(default_factory=dict)
    """Kafka broker settings that differ from ours."""


class Cluster:
    """A running cluster. Made by `Cluster.start`; a context manager that stops it."""

    def __init__(self, spec: ClusterSpec, nodes: Sequence[NodeSpec], command: _CommandFor) -> None:
        self.spec = spec
        self.nodes = tuple(nodes)
        self._command = command
        self._running: dict[int, NodeProcess] = {}

    @classmethod
    def start(cls, spec: ClusterSpec, report: Report = _say_nothing) -> Self:
        """Bring the cluster up and return when every node answers."""
        _check_directory(spec)
        java = find_java(spec.cache, report)
        jars = ensure_jars(spec.cache, java, report)
        checkpoint = storage.format_template(spec.cache, java, jars)
        command = _CommandFor(str(java.executable), jars.class_path, spec.heap_mb)
        for attempt in range(1, START_ATTEMPTS + 1):
            nodes = _node_specs(spec)
            _prepare(spec, nodes, checkpoint)
            cluster = cls(spec, nodes, command)
            report(f"starting Apache Kafka: {spec.nodes} node{'s' if spec.nodes > 1 else ''}, Java {java.major}")
            try:
                cluster._start_all()
            except PortTakenError as error:
                if error.port == spec.port or attempt == START_ATTEMPTS:
                    raise
            else:
                return cluster
        raise AssertionError("unreachable: the last attempt returns or raises")

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{HOST}:{node.broker_port}" for node in self.nodes)

    @property
    def log_paths(self) -> tuple[Path, ...]:
        return tuple(node.log_path for node in self.nodes)

    @property
    def pids(self) -> tuple[int, ...]:
        """Of the processes that were started: Kafka's, or that of a guard whose child Kafka is."""
        return tuple(running.process.pid for running in self._running.values())

    def alive_nodes(self) -> tuple[int, ...]:
        """The ids of the nodes whose process runs."""
        return tuple(node_id for node_id, process in self._running.items() if process.alive)

    def start_node(self, node_id: int) -> None:
        """Start one node that was stopped or killed, with its data; returns when the cluster is complete again."""
        node = next(node for node in self.nodes if node.node_id == node_id)
        start = node_module.start_detached if self.spec.detached else node_module.start_guarded
        self._running[node_id] = start(node, self._command(node))
        self._wait_until_ready(len(self.alive_nodes()))

    def stop_node(self, node_id: int) -> None:
        """Stop one node cleanly; its data stays."""
        process = self._running[node_id]
        process.ask_to_stop()
        if not process.wait(STOP_SECONDS):
            process.kill()
            process.wait(STOP_SECONDS)

    def kill_node(self, node_id: int) -> None:
        """End one node without warning; its data stays."""
        self._running[node_id].kill()
        self._running[node_id].wait(STOP_SECONDS)

    def stop(self) -> None:
        """Stop every node, all at once; repeating it is harmless."""
        for process in self._running.values():
            process.ask_to_stop()
        # The last nodes of a cluster wait, in vain, for a majority to confirm their shutdown: patience is short then.
        deadline = time.monotonic() + (STOP_SECONDS if len(self.nodes) == 1 else 2.0)
        for process in self._running.values():
            if not process.wait(max(0.0, deadline - time.monotonic())):
                process.kill()
                process.wait(STOP_SECONDS)

    def detach(self) -> None:
        """Let the nodes run on when this process ends."""
        for process in self._running.values():
            process.detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start_all(self) -> None:
        start = node_module.start_detached if self.spec.detached else node_module.start_guarded
        try:
            for node in self.nodes:
                self._running[node.node_id] = start(node, self._command(node))
            self._wait_until_ready(len(self.nodes))
        except BaseException:
            self.stop()
            raise

    def _wait_until_ready(self, expected: int) -> None:
        readiness.wait_for_brokers(self.bootstrap_servers, expected, self.spec.ready_seconds, self._raise_if_ended)

    def _raise_if_ended(self) -> None:
        for process in self._running.values():
            if not process.alive:
                raise explain_end(process.spec)


@dataclass(frozen=True)
class _CommandFor:
    """The JVM's command line for a node."""

    java: str
    class_path: str
    heap_mb: int

    def __call__(self, node: NodeSpec) -> list[str]:
        # C1 only and the serial collector: half the CPU of a start, and a small process; throughput is not the point.
        options = [f"-Xmx{self.heap_mb}m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError"]
        options += ["-Djava.awt.headless=true", f"-Dlog4j2.configurationFile={node.log_settings_path}"]
        return [self.java, *options, "-cp", self.class_path, "kafka.Kafka", str(node.settings_path)]


def _check_directory(spec: ClusterSpec) -> None:
    if spec.nodes not in (1, 3):
        raise BrokerConflictError(f"a cluster of {spec.nodes} nodes was asked for", hint="choose 1 or 3 nodes")
    make_directory(spec.directory)
    free_mb = shutil.disk_usage(spec.directory).free >> 20
    if free_mb < spec.min_free_mb:
        raise NoSpaceError(
            f"only {free_mb} MB are free for {spec.directory}, the broker wants {spec.min_free_mb} MB",
            hint="free some disk space, or use another directory",
        )


def _prepare(spec: ClusterSpec, nodes: Sequence[NodeSpec], checkpoint: bytes) -> None:
    cluster_id = storage.stored_cluster_id(nodes[0].data_directory) or storage.new_id()
    try:
        for node in nodes:
            storage.prepare_node(
                node,
                nodes,
                checkpoint=checkpoint,
                cluster_id=cluster_id,
                overrides=spec.settings,
                log_level=spec.log_level,
            )
    except OSError as error:
        raise NoSpaceError(
            f"the broker's directory {spec.directory} cannot be written: {error.strerror or error}",
            hint="free some disk space, or use another directory",
        ) from error


def _node_specs(spec: ClusterSpec) -> list[NodeSpec]:
    brokers = free_ports(spec.nodes) if spec.port is None else [spec.port + i for i in range(spec.nodes)]
    if spec.port is not None:
        for port in brokers:
            check_port(port)
    controllers = free_ports(spec.nodes, avoid=brokers)
    return [NodeSpec(i + 1, brokers[i], controllers[i], spec.directory / f"node-{i + 1}") for i in range(spec.nodes)]
