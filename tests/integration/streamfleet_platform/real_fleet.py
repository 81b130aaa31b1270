"""One app on a real broker under real servers that tests kill: server processes, keepers and workers are all real, and outlive
one another as they do on a machine.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from streamfleet_platform.api.token_file import TokenFile
from streamfleet_platform.client import FleetClient
from streamfleet_platform.errors import FleetError
from streamfleet_platform.runtime.local import LocalRuntime, LocalSettings

REAL_SERVER = Path(__file__).with_name("real_server.py")
ROOT = Path(__file__).parents[3]
FAILPOINT = "STREAMFLEET_FAILPOINT"
WORDS = [f"word-{number}" for number in range(8)]
CODE = """\
import streamfleet as sf

text, number = sf.serdes.string(), sf.serdes.long()


def topology(*names):
    builder = sf.StreamsBuilder()
    stream = (
        builder.stream("NAME-in", key_serde=text, value_serde=text)
        .group_by(lambda _, word: word, key_serde=text, value_serde=text, name="by-word")
        .count(store="counts")
        .to_stream(name="updates")
    )
    for name in names:
        stream = stream.filter(lambda _, count: count > 0, name=name)
    stream.to("NAME-out", value_serde=number)
    return builder.build()


def other():
    return topology("seen")


class Broken(sf.Processor):
    def init(self, context):
        raise RuntimeError("this version never works")

    def process(self, record):
        pass


def broken():  # compiles, and no worker comes up with it
    builder = sf.StreamsBuilder()
    updates = (
        builder.stream("NAME-in", key_serde=text, value_serde=text)
        .group_by(lambda _, word: word, key_serde=text, value_serde=text, name="by-word")
        .count(store="counts")
        .to_stream(name="updates")
    )
    updates.process(Broken, name="broken")
    updates.to("NAME-out", value_serde=number)
    return builder.build()


def restart():  # one store more beside the first one: two such versions cannot share a group
    builder = sf.StreamsBuilder()
    updates = (
        builder.stream("NAME-in", key_serde=text, value_serde=text)
        .group_by(lambda _, word: word, key_serde=text, value_serde=text, name="by-word")
        .count(store="counts")
        .to_stream(name="updates")
    )
    updates.group_by_key(key_serde=text, value_serde=number).count(store="changes")
    updates.to("NAME-out", value_serde=number)
    return builder.build()
"""
FLEET = """\
apiVersion: streamfleet/v1
kind: Fleet
metadata: {{name: real}}
spec:
  clusters: {{dev: {{bootstrap: "{bootstrap}"}}}}
  defaults:
    run: {{config: {{commit.interval.ms: 100, session.timeout.ms: 6000}}}}
    rollout: {{gate: {{restoredWithin: 60s, lagBelow: 1000, for: 0s}}}}
"""
APP = """\
apiVersion: streamfleet/v1
kind: StreamsApp
metadata: {{name: {name}, owner: team-words}}
spec:
  code: {{entrypoint: "words:{entry}"}}
  cluster: dev
  applicationId: {name}
  inputs: {{words: {{topic: {name}-in}}}}
  outputs: {{counts: {{topic: {name}-out, partitions: 2}}}}
  scale: {{max: 3}}
"""


def until(condition, what, seconds=90.0):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {seconds} s for {what() if callable(what) else what}"
        time.sleep(0.1)
    return found


class RealFleet:
    """Close it: it ends its servers and workers, and deletes its topics."""

    def __init__(self, directory: Path, bootstrap: str, registry: str | None = None) -> None:
        self.name = f"w{uuid.uuid4().hex[:8]}"
        self.source, self.data, self.registry = directory / "source", directory / "data", registry
        (self.source / "apps").mkdir(parents=True)
        self.data.mkdir(mode=0o700)
        (self.source / "fleet.yaml").write_text(FLEET.format(bootstrap=bootstrap))
        (self.source / "words.py").write_text(CODE.replace("NAME", self.name))
        self.declare("topology")
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self.admin.create_topics([NewTopic(f"{self.name}-in", 2, 1)])[f"{self.name}-in"].result(30)
        self.producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        self.token = TokenFile(self.data / "tokens.json").create("test", "admin", teams="all")
        self.sent: Counter[str] = Counter()
        self.servers: list[subprocess.Popen[bytes]] = []
        self.client: FleetClient | None = None
        self._clients: list[FleetClient] = []

    def declare(self, entry):
        (self.source / "apps" / f"{self.name}.yaml").write_text(APP.format(name=self.name, entry=entry))

    # servers

    def start_server(self, failpoint=None, *, leads=True):
        """A client of it, once it answers and, where nobody else does, leads."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        told = {"source": str(self.source), "data": str(self.data), "port": port, "registry": self.registry}
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        environment.pop(FAILPOINT, None)
        if failpoint is not None:
            environment[FAILPOINT] = failpoint
        with (self.data.parent / "server.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, str(REAL_SERVER), json.dumps(told)], env=environment, stdout=log, stderr=log
            )
        self.servers.append(process)
        client = FleetClient(f"http://127.0.0.1:{port}", token=self.token)
        self._clients.append(client)

        def ready():
            assert process.poll() is None, self.log()
            try:
                return client.fleet().is_leader == leads
            except FleetError:
                return False

        until(ready, lambda: f"the server to answer; {self.log()}")
        if leads:
            self.client = client
        return client

    def kill_server(self):
        self.servers[-1].send_signal(signal.SIGKILL)
        self.servers[-1].wait(30)

    def await_its_death(self, seconds=60):
        """At its failpoint."""
        assert self.servers[-1].wait(seconds) == -signal.SIGKILL, self.log()

    def log(self):
        return "\n".join((self.data.parent / "server.log").read_text().splitlines()[-30:])

    # operations

    def finish(self, operation, state="succeeded"):
        over = until(
            lambda: (found := self.client.operation(operation.id)).state.is_over and found,
            lambda: str(self.client.operation(operation.id)),
            120,
        )
        assert over.state == state, f"{over.error}\n{self.log()}"
        return over

    def deployed(self):
        self.start_server()
        result = self.client.apply()
        assert result.operations, result.plan
        self.finish(result.operations[0])
        return self

    def upgrade_to(self, entry):
        self.declare(entry)
        return self.client.upgrade(
            self.name, accept_lost_state=True
        )  # a store more may have been in the version before

    # workers and records

    @property
    def runtime(self):
        return LocalRuntime(LocalSettings(self.data / "workers"))

    def pids(self):
        """Asked of the machine, not of a server."""
        return {worker.slot: worker.pid for worker in self.runtime.list(self.name) if worker.is_alive}

    def send(self, count=16):
        words = [WORDS[number % len(WORDS)] for number in range(count)]
        for word in words:
            self.producer.produce(f"{self.name}-in", word)
        self.producer.flush(30)
        self.sent.update(words)

    def results(self):
        """How many there are by now."""
        places = {TopicPartition(f"{self.name}-out", number): OffsetSpec.latest() for number in range(2)}
        return sum(future.result(30).offset for future in self.admin.list_offsets(places).values())

    def internal_topics(self):
        return sorted(
            topic
            for topic in self.admin.list_topics(timeout=30).topics
            if topic.startswith(f"{self.name}-by-") or (topic.endswith("changelog") and topic.startswith(self.name))
        )

    def assert_counts_are_exact(self):
        def counts():
            found = {}
            for word in self.sent:
                try:
                    found[word] = self.client.query(self.name, "counts", word).get("value")
                except FleetError:
                    found[word] = None
            return found

        until(lambda: counts() == dict(self.sent), lambda: f"{dict(self.sent)}, found {counts()}", 60)

    def close(self):
        for client in self._clients:
            client.close()
        for server in self.servers:
            if server.poll() is None:
                server.kill()
                server.wait(30)
        runtime = self.runtime
        for worker in runtime.list():
            if worker.is_alive:
                runtime.kill(worker.app, worker.slot, token=runtime.newest_token())
        until(lambda: not any(worker.is_alive for worker in runtime.list()), "workers to end", 30)
        ours = [topic for topic in self.admin.list_topics(timeout=30).topics if topic.startswith(self.name)]
        for future in self.admin.delete_topics(ours).values() if ours else ():
            future.result(30)
