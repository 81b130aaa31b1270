"""An app that counts words and remembers the last text of each, as a worker in a process of its own, with a store to audit."""

import json
import os
import subprocess
import sys
import threading
import time
import uuid

import msgspec
from confluent_kafka import Producer

from streamfleet_jobs.audit.job import run_audit
from streamfleet_jobs.audit.local_engine import LocalEngine
from streamfleet_jobs.audit.spec import AuditSpec
from streamfleet_jobs.engines import EngineName

APP = """
import os
import streamfleet as sf

TEXT = {"key_serde": sf.serdes.string(), "value_serde": sf.serdes.string()}

def topology():
    builder = sf.StreamsBuilder()
    words = builder.stream(os.environ["INPUT"], **TEXT).group_by_key(**TEXT)
    words.reduce(lambda old, new: new, materialized=sf.Materialized("last", caching=False))
    words.windowed_by(sf.TimeWindows(size=60_000, grace=0)).count(materialized=sf.Materialized("minutes", caching=False))
    return builder.build()
"""

CONFIG = """
application.id: {app}
bootstrap.servers: {servers}
processing.guarantee: {guarantee}
commit.interval.ms: 100
session.timeout.ms: 6000
heartbeat.interval.ms: 100
"""

PARTITIONS = 2


class RunningApp:
    def __init__(self, lab, directory, guarantee="exactly_once_v2"):
        self.lab = lab
        self.directory = directory
        self.guarantee = guarantee
        self.name = f"audited-{uuid.uuid4().hex[:8]}"
        self.input = lab.create("input", PARTITIONS, cleanup_policy="delete")
        (directory / "audited_app.py").write_text(APP)
        config = CONFIG.format(app=self.name, servers=lab.servers, guarantee=guarantee)
        (directory / "app.yaml").write_text(config)
        command = [sys.executable, "-c", "from streamfleet.cli import main; main()", "run", "audited_app:topology"]
        command += ["--config", "app.yaml", "--state-dir", "state", "--http", "127.0.0.1:0"]
        self._log = directory / "worker.log"
        with self._log.open("w") as log:
            environment = {**os.environ, "INPUT": self.input}
            self.process = subprocess.Popen(command, cwd=directory, env=environment, stdout=log, stderr=log)
        self.door = self._until(self._url)
        self._runs = 0
        self._stop = threading.Event()
        self._writer = None

    @property
    def changelogs(self):
        return {store: f"{self.name}-{store}-changelog" for store in ("last", "minutes")}

    def write(self, pairs, **settings):
        self.lab.write(self.input, [(key.encode(), value.encode()) for key, value in pairs], **settings)

    def digest(self, store, partition):
        import urllib.request

        with urllib.request.urlopen(f"{self.door}/digest/{store}?partition={partition}", timeout=30) as answer:
            return json.loads(answer.read())

    def until_rows(self, count, store="last", timeout_seconds=120):
        """Until the committed rows are as many."""

        def there():
            rows = 0
            for partition in range(PARTITIONS):
                try:
                    rows += sum(found[0] for found in self.digest(store, partition)["buckets"].values())
                except OSError:
                    return False
            return rows == count

        self._until(there, timeout_seconds)

    def until_offset(self, store, partition, offset):
        """Until the store's last commit contains that offset of its changelog."""
        self._until(lambda: (self.digest(store, partition)["offset"] or 0) >= offset)

    def keep_writing(self, keys, pause_seconds=0.02):
        """Updates without end, until close: 50, and a pause."""

        def write():
            producer = Producer({"bootstrap.servers": self.lab.servers, "partitioner": "murmur2", "log_level": 0})
            n = 0
            while not self._stop.is_set():
                for _ in range(50):
                    producer.produce(self.input, key=f"k{n * 7919 % keys}", value=f"text {n}")
                    n += 1
                producer.poll(0)
                time.sleep(pause_seconds)
            producer.flush(10)

        self._writer = threading.Thread(target=write, daemon=True)
        self._writer.start()

    def spec(self, **options):
        self._runs += 1
        stores = [
            {
                "name": "last",
                "changelog": self.changelogs["last"],
                "partitions": PARTITIONS,
                "timestamps": True,
                "kind": "timestamped_key_value",
                "configs": {"cleanup.policy": "compact"},
            },
            {
                "name": "minutes",
                "changelog": self.changelogs["minutes"],
                "partitions": PARTITIONS,
                "timestamps": True,
                "kind": "timestamped_window",
                "key_format": "window",
                "retention_ms": 60_000,
                "configs": {"cleanup.policy": "compact,delete"},
            },
        ]
        content = {
            "run_id": f"{self.name}-{self._runs}",
            "app": self.name,
            "application_id": self.name,
            "bootstrap_servers": self.lab.servers,
            "output": str(self.directory / f"audit-{self._runs}"),
            "stores": stores,
            "mode": "deep",
            "doors": [self.door],
            "guarantee": self.guarantee,
            "clear_keys": True,
        }
        return msgspec.convert(content | options, AuditSpec)

    def audit(self, spec=None, engine=None):
        """The result, as the platform would get it."""
        spec = spec or self.spec()
        run_audit(spec, engine or LocalEngine(spec, lambda _: None), EngineName.LOCAL, lambda _: None)
        return json.loads((spec.directory / "result.json").read_text())

    def close(self):
        self._stop.set()
        if self._writer is not None:
            self._writer.join(20)
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)

    def _url(self):
        for line in self._log.read_text().splitlines():
            if line.startswith("{") and (event := json.loads(line)).get("event") == "http door open":
                return event["url"]
        return None

    def _until(self, holds, timeout_seconds=60):
        deadline = time.monotonic() + timeout_seconds
        while not (found := holds()):
            assert self.process.poll() is None, f"the worker ended:\n{self._log.read_text()}"
            assert time.monotonic() < deadline, f"not reached in {timeout_seconds} s:\n{self._log.read_text()[-3000:]}"
            time.sleep(0.1)
        return found
