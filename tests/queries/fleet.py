"""Workers of a counting app, as processes, with doors; and its input, of which every record is known by partition and offset."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

APP = """
import os
import streamfleet as sf

def topology():
    builder = sf.StreamsBuilder()
    builder.stream(os.environ["TOPIC"]).group_by_key().count(store="counts")
    return builder.build()
"""

CONFIG = """
application.id: {app}
bootstrap.servers: {servers}
default.key.serde: string
default.value.serde: string
processing.guarantee: {guarantee}
num.standby.replicas: {standbys}
commit.interval.ms: 100
session.timeout.ms: 6000
heartbeat.interval.ms: 100
transaction.timeout.ms: 5000
restore.rate.limit.bytes.per.second: {restore_rate}
"""


class Input:
    """Writes records all the time, and remembers where each key went."""

    def __init__(self, servers: str, topic: str, partitions: int, keys: list[str]) -> None:
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": servers, "partitioner": "murmur2_random", "linger.ms": 5})
        self._changed = threading.Condition()
        self._known: dict[int, int] = {}
        """Partition -> its last offset of which was heard."""
        self._offsets: dict[str, list[int]] = {key: [] for key in keys}
        self.partition_of: dict[str, int] = {}
        self.keys = keys
        self._random = random.Random(7)

    def write(self, count: int) -> None:
        for key in self._random.choices(self.keys, k=count):
            self._producer.produce(self._topic, b"x", key, on_delivery=self._written)
        assert self._producer.flush(30) == 0

    def _written(self, error: Any, message: Message) -> None:
        assert error is None, error
        key, partition, offset = message.key(), message.partition(), message.offset()
        assert isinstance(key, bytes) and partition is not None and offset is not None
        with self._changed:
            self._offsets[key.decode()].append(offset)
            self.partition_of[key.decode()] = partition
            self._known[partition] = offset
            self._changed.notify_all()

    def count(self, key: str) -> int:
        """How often a key was written, as far as was heard."""
        with self._changed:
            return len(self._offsets[key])

    def count_up_to(self, key: str, partition: int, offset: int) -> int:
        """How often a key was written up to an offset of its partition. A worker may have read it before it was heard of here."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._known.get(partition, -1) >= offset, 30)
            return sum(each <= offset for each in self._offsets[key])

    def was_written(self, key: str, times: int) -> bool:
        """Whether a key was written that often; waits for what is on its way."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._offsets[key]) >= times, 10)


class WorkerProcess:
    def __init__(self, fleet: QueryFleet, name: str) -> None:
        self.name = name
        self._fleet = fleet
        self.process: subprocess.Popen[bytes] | None = None
        self.log_path = fleet.directory / f"{name}.log"
        self.address: tuple[str, int] | None = None

    def start(self) -> WorkerProcess:
        command = [sys.executable, "-c", "from streamfleet.cli import main; main()", "run", "counting_app:topology"]
        command += ["--config", "app.yaml", "--state-dir", self.name]
        seen = len(self.events())
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self._fleet.directory, env=self._fleet.environment, stdout=log, stderr=log
            )
        url = until(lambda: [e["url"] for e in self.events()[seen:] if e["event"] == "http door open"], self)[0]
        host, _, port = url.removeprefix("http://").rpartition(":")
        self.address = (host, int(port))
        return self

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        if number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP):
            self.address = None  # nobody asks it any more, except who is asking already
        self.process.send_signal(number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            self.process.wait(60)

    def resume(self, address: tuple[str, int]) -> None:
        self.signal(signal.SIGCONT)
        self.address = address

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def log(self) -> str:
        return self.log_path.read_text("utf-8", "replace") if self.log_path.exists() else ""

    def events(self) -> list[dict[str, Any]]:
        lines = [line for line in self.log().splitlines() if line.startswith("{") and line.endswith("}")]
        return [json.loads(line) for line in lines]


class QueryFleet:
    """One app on a broker; every fleet has names of its own."""

    def __init__(
        self,
        servers: str,
        directory: Path,
        *,
        guarantee: str = "exactly_once_v2",
        partitions: int = 4,
        standbys: int = 0,
        restore_rate: int = 0,
        app_code: str = "",
    ) -> None:
        """`app_code` is put in front of the app: to make it wrong."""
        self.directory = directory
        app = f"queries-{uuid.uuid4().hex[:8]}"
        topic = f"{app}-in"
        admin = AdminClient({"bootstrap.servers": servers})
        for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            future.result(30)
        (directory / "counting_app.py").write_text(app_code + APP)
        config = CONFIG.format(
            app=app, servers=servers, guarantee=guarantee, standbys=standbys, restore_rate=restore_rate
        )
        (directory / "app.yaml").write_text(config)
        self.environment = {**os.environ, "TOPIC": topic}
        self.partitions = partitions
        self.is_exact = guarantee == "exactly_once_v2"
        self.input = Input(servers, topic, partitions, [f"key-{number}" for number in range(60)])
        self.workers: list[WorkerProcess] = []

    def add(self) -> WorkerProcess:
        worker = WorkerProcess(self, f"worker-{len(self.workers)}")
        self.workers.append(worker)
        return worker.start()

    def doors(self) -> list[tuple[str, int]]:
        return [worker.address for worker in self.workers if worker.address is not None]

    def close(self) -> None:
        for worker in self.workers:
            if worker.is_running:
                worker.resume(("", 0))
                worker.signal(signal.SIGKILL)


def until(holds: Callable[[], Any], worker: WorkerProcess | None = None, seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while not (result := holds()):
        assert worker is None or worker.is_running, f"the worker has ended:\n{worker.log()[-3000:]}"
        assert time.monotonic() < deadline, f"not reached in {seconds} s" + (
            f":\n{worker.log()[-3000:]}" if worker else ""
        )
        time.sleep(0.05)
    return result
