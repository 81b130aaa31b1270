"""Workers as people start them: `streamfleet run` in a process of its own, on the real broker."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

APP = """
import os
import time
import streamfleet as sf

PREFIX = os.environ["TOPICS"]
STRING, LONG = sf.serdes.string(), sf.serdes.long()

def read(word):
    if word == "poison":
        raise ValueError("a word that no one can read, password hunter2")
    if word == "slow":
        time.sleep(60)
    return word

def topology():
    builder = sf.StreamsBuilder()
    words = builder.stream(PREFIX + "-lines").map_values(read, name="read")
    counts = words.group_by(lambda key, word: word, name="by-word").count(store="counts")
    counts.to_stream().to(PREFIX + "-counts", value_serde=LONG)
    return builder.build()

def in_a_builder():
    builder = sf.StreamsBuilder()
    builder.stream(PREFIX + "-lines").to(PREFIX + "-counts")
    return builder
"""

CONFIG = """
application.id: {app}
bootstrap.servers: {servers}
default.key.serde: string
default.value.serde: string
commit.interval.ms: {commit_ms}
session.timeout.ms: 6000
heartbeat.interval.ms: 100
"""


class Door:
    """The HTTP door of a worker."""

    def __init__(self, url):
        self.url = url

    def get(self, path):
        """(status, body); (0, "") while nobody answers."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code, answer.read().decode()

    def json(self, path):
        return json.loads(self.get(path)[1])


class WorkerProcess:
    """One `streamfleet run`; its log is a file, so that it never waits for a reader."""

    def __init__(self, directory, arguments, environment):
        self._log = directory / f"worker-{uuid.uuid4().hex[:6]}.log"
        command = [sys.executable, "-c", "from streamfleet.cli import main; main()", "run", *arguments]
        with self._log.open("w") as log:
            self.process = subprocess.Popen(command, cwd=directory, env=environment, stdout=log, stderr=log)

    def log(self):
        return self._log.read_text()

    def events(self):
        lines = [line for line in self.log().splitlines() if line.startswith("{")]
        return [json.loads(line) for line in lines]

    def door(self):
        def opened():
            return [event["url"] for event in self.events() if event["event"] == "http door open"]

        return Door(self.until(opened)[0])

    def until(self, holds, timeout_seconds=40):
        """What `holds()` returns, as soon as that is true."""
        deadline = time.monotonic() + timeout_seconds
        while not (result := holds()):
            assert self.process.poll() is None, f"the worker ended with {self.process.returncode}:\n{self.log()}"
            assert time.monotonic() < deadline, f"not reached in {timeout_seconds} s:\n{self.log()}"
            time.sleep(0.05)
        return result

    def until_ready(self):
        door = self.door()
        self.until(lambda: door.get("/readyz")[0] == 200)
        return door

    def send(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self, timeout_seconds=40):
        return self.process.wait(timeout_seconds)


class Shop:
    """Topics, configuration, input and output of one app; every test has names of its own."""

    def __init__(self, broker, directory):
        self.servers = broker.bootstrap_servers
        self.directory = directory
        self.app = f"worker-{uuid.uuid4().hex[:8]}"
        self.admin = AdminClient({"bootstrap.servers": self.servers})
        self._workers = []
        (directory / "shop_app.py").write_text(APP)
        self.configure()

    def configure(self, extra="", servers=None, commit_ms=100):
        text = CONFIG.format(app=self.app, servers=servers or self.servers, commit_ms=commit_ms) + extra
        (self.directory / "app.yaml").write_text(text)

    def create_topics(self, *names):
        new = [NewTopic(f"{self.app}-{name}", 2, 1) for name in names or ("lines", "counts")]
        for future in self.admin.create_topics(new).values():
            future.result(10)

    def topics(self):
        return {name for name in self.admin.list_topics(timeout=10).topics if name.startswith(self.app)}

    def write(self, *words):
        producer = Producer({"bootstrap.servers": self.servers})
        for number, word in enumerate(words):
            producer.produce(f"{self.app}-lines", word, str(number))
        assert producer.flush(10) == 0

    def counts(self, until, timeout_seconds=30):
        """The newest count of each word, as soon as `until(counts)` holds."""
        settings = {"bootstrap.servers": self.servers, "group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest"}
        consumer = Consumer({**settings, "enable.auto.commit": False})
        consumer.assign([TopicPartition(f"{self.app}-counts", number, OFFSET_BEGINNING) for number in range(2)])
        found, deadline = {}, time.monotonic() + timeout_seconds
        try:
            while not until(found):
                assert time.monotonic() < deadline, f"not reached: {found}"
                message = consumer.poll(0.2)
                if message is not None and message.error() is None:
                    found[message.key().decode()] = int.from_bytes(message.value(), "big")
        finally:
            consumer.close()
        return found

    def environment(self):
        return {**os.environ, "TOPICS": self.app, "KAFKA_PASSWORD": "hunter2"}

    def run(self, *extra, state="state", function="topology"):
        arguments = [f"shop_app:{function}", "--config", "app.yaml", "--state-dir", state, *extra]
        worker = WorkerProcess(self.directory, arguments, self.environment())
        self._workers.append(worker)
        return worker

    def reset(self, *extra, state="state"):
        command = [sys.executable, "-c", "from streamfleet.cli import main; main()", "worker", "reset"]
        return subprocess.run(
            [*command, "--config", "app.yaml", "--state-dir", state, *extra],
            cwd=self.directory,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def close(self):
        for worker in self._workers:
            if worker.process.poll() is None:
                worker.process.kill()
            worker.process.wait(10)


@pytest.fixture
def shop(broker, tmp_path):
    made = Shop(broker, tmp_path)
    yield made
    made.close()
