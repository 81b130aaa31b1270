"""A node's directory before its JVM starts: formatted storage, server settings, log settings.

Called by cluster.py. Kafka's own format command is run once per machine; what it writes is two small files, and every
later node gets a copy of the one and its own text of the other, which saves a second of JVM per node.
"""

from __future__ import annotations

import base64
import subprocess
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from streamfleet_devbroker.directories import KAFKA_VERSION
from streamfleet_devbroker.errors import BrokerCrashedError
from streamfleet_devbroker.jars import JarSet
from streamfleet_devbroker.java import Java

HOST = "127.0.0.1"


@dataclass(frozen=True)
class NodeSpec:
    """One node: its id, its two ports and the directory that holds all of it."""

    node_id: int
    broker_port: int
    controller_port: int
    directory: Path

    @property
    def data_directory(self) -> Path:
        return self.directory / "data"

    @property
    def settings_path(self) -> Path:
        return self.directory / "server.properties"

    @property
    def log_path(self) -> Path:
        return self.directory / "broker.log"

    @property
    def log_settings_path(self) -> Path:
        return self.directory / "log4j2.properties"


def new_id() -> str:
    """A Kafka Uuid: 16 random bytes, URL-safe base64 without padding, never starting with a dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def format_template(cache: Path, java: Java, jars: JarSet) -> bytes:
    """The checkpoint file that Kafka's format command writes; made on the first call, read from `cache` afterwards."""
    kept = cache / f"kafka-{KAFKA_VERSION}" / "bootstrap.checkpoint"
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix="format-") as scratch:
            _run_format(NodeSpec(1, 9092, 9093, Path(scratch)), java, jars)
            (Path(scratch) / "data" / "bootstrap.checkpoint").rename(kept)
    return kept.read_bytes()


def _run_format(node: NodeSpec, java: Java, jars: JarSet) -> None:
    node.settings_path.write_text(server_settings(node, [node], {}), "utf-8")
    tool = [str(java.executable), "-cp", jars.class_path, "kafka.tools.StorageTool"]
    command = [*tool, "format", "--cluster-id", new_id(), "--config", str(node.settings_path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        lines = tuple((answer.stdout + answer.stderr).strip().splitlines()[-8:])
        raise BrokerCrashedError(
            "Kafka's format command failed", hint="its last words follow; is the disk full?", last_lines=lines
        )


def prepare_node(
    node: NodeSpec,
    quorum: Sequence[NodeSpec],
    *,
    checkpoint: bytes,
    cluster_id: str,
    overrides: Mapping[str, str],
    log_level: str,
) -> None:
    """Write whatever is missing in the node's directory; data that is there stays."""
    node.data_directory.mkdir(parents=True, exist_ok=True)
    meta = node.data_directory / "meta.properties"
    if not meta.exists():
        (node.data_directory / "bootstrap.checkpoint").write_bytes(checkpoint)
        meta.write_text(
            f"node.id={node.node_id}\ndirectory.id={new_id()}\nversion=1\ncluster.id={cluster_id}\n", "utf-8"
        )
    node.settings_path.write_text(server_settings(node, quorum, overrides), "utf-8")
    node.log_settings_path.write_text(_LOG_SETTINGS.format(level=log_level), "utf-8")


def stored_cluster_id(data_directory: Path) -> str | None:
    """The cluster the data belongs to, or None when there is none yet."""
    try:
        lines = (data_directory / "meta.properties").read_text("utf-8").splitlines()
    except FileNotFoundError:
        return None
    return next((line.removeprefix("cluster.id=") for line in lines if line.startswith("cluster.id=")), None)


def server_settings(node: NodeSpec, quorum: Sequence[NodeSpec], overrides: Mapping[str, str]) -> str:
    """The text of server.properties: every node is broker and controller, loopback only, small and quick."""
    voters = ",".join(f"{voter.node_id}@{HOST}:{voter.controller_port}" for voter in quorum)
    replicas, in_sync = (3, 2) if len(quorum) >= 3 else (1, 1)
    settings = {
        "process.roles": "broker,controller",
        "node.id": str(node.node_id),
        "controller.quorum.voters": voters,
        "listeners": f"PLAINTEXT://{HOST}:{node.broker_port},CONTROLLER://{HOST}:{node.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{node.broker_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(node.data_directory),
        "default.replication.factor": str(replicas),
        "offsets.topic.replication.factor": str(replicas),
        "offsets.topic.num.partitions": "1",  # one partition is created and elected sooner than fifty
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(in_sync),
        "transaction.state.log.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": str(in_sync),
        "group.initial.rebalance.delay.ms": "0",  # a first member need not wait for others
        "group.streams.initial.rebalance.delay.ms": "0",
        "group.streams.min.session.timeout.ms": "2000",  # Kafka allows no group less than 45 s, a long time for a test
        "group.streams.min.heartbeat.interval.ms": "100",
        "auto.create.topics.enable": "false",  # a misspelt topic is an error, not a new topic
        "log.cleaner.dedupe.buffer.size": "16777216",  # Kafka's 128 MB is for millions of keys per pass
        **overrides,
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


_LOG_SETTINGS = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{{ISO8601}} %-5p %c{{1}}: %m%n
rootLogger.level = {level}
rootLogger.appenderRef.out.ref = out
"""
