"""A newcomer's path through the command line, on a real broker: from a definition to running workers, through an upgrade and a
reset, to an app that is gone without a trace.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from streamfleet_platform.client import FleetClient
from streamfleet_platform.errors import FleetError

STREAMFLEET = Path(sys.executable).with_name("streamfleet")
WORDS = [f"word-{number % 37}" for number in range(2000)]
COUNTS = Counter(WORDS)
OUTPUT = "words-out"
INTERNAL = {"words-app-counts-changelog", "words-app-by-word-repartition"}

APP = """\
import streamfleet as sf

text, number = sf.serdes.string(), sf.serdes.long()


def topology():
    builder = sf.StreamsBuilder()
    (
        builder.stream("words-in", key_serde=text, value_serde=text)
        .group_by(lambda _, word: word, key_serde=text, value_serde=text, name="by-word")
        .count(store="counts")
        .to_stream(name="updates")
        .to("words-out", key_serde=text, value_serde=number)
    )
    return builder.build()
"""
FLEET = """\
apiVersion: streamfleet/v1
kind: Fleet
metadata: {{name: words}}
spec:
  clusters:
    dev: {{bootstrap: "{bootstrap}"}}
  defaults:
    run: {{config: {{commit.interval.ms: 200, session.timeout.ms: 6000}}}}
    rollout: {{gate: {{restoredWithin: 60s, lagBelow: 1000, for: 1s}}}}
"""
DEFINITION = """\
apiVersion: streamfleet/v1
kind: StreamsApp
metadata: {name: words, owner: team-words}
spec:
  code: {entrypoint: "words:topology"}
  cluster: dev
  applicationId: words-app
  inputs: {words: {topic: words-in}}
  outputs: {counts: {topic: words-out, partitions: 2}}
  topology: {lock: words.lock.json}
  scale: {max: 2}
"""


class Newcomer:
    """Somebody at a terminal, with a home directory of their own."""

    def __init__(self, home: Path, bootstrap: str) -> None:
        self.source = home / "source"
        self.data = home / "data"
        self.config = home / "config"
        self._environment = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(self.config)}
        (self.source / "apps").mkdir(parents=True)
        (self.source / "words.py").write_text(APP)
        (self.source / "fleet.yaml").write_text(FLEET.format(bootstrap=bootstrap))
        (self.source / "apps" / "words.yaml").write_text(DEFINITION)

    def run(self, *arguments, expected=0):
        command = [str(STREAMFLEET), *map(str, arguments)]
        result = subprocess.run(
            command, cwd=self.source, env=self._environment, capture_output=True, text=True, timeout=150
        )
        assert result.returncode == expected, f"{arguments}: {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result.stdout

    def json(self, *arguments, expected=0):
        return json.loads(self.run(*arguments, "--json", expected=expected))

    def phase(self):
        return [app["phase"] for app in self.json("status")["apps"]]

    def counts(self):
        """Of every word, asked as other programs ask: by the address and token that the command line keeps. None: no answer yet."""
        known = json.loads((self.config / "streamfleet" / "connection.json").read_text())
        found = dict.fromkeys(COUNTS)
        with FleetClient(known["server"], token=known["token"]) as client:
            for word in found:
                with suppress(FleetError):
                    found[word] = client.query("words", "counts", word).get("value")
        return found

    def processes(self):
        """Command lines of keepers and workers, asked of the machine."""
        slots, found = str(self.data / "workers").encode(), []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                line = (process / "cmdline").read_bytes()
                found += [line.replace(b"\0", b" ").decode()] if slots in line else []
        return found


def until(condition, what, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what() if callable(what) else what}"
        time.sleep(0.3)


@pytest.fixture
def newcomer(broker, tmp_path):
    newcomer = Newcomer(tmp_path, broker.bootstrap_servers)
    yield newcomer
    newcomer.run("down", "--workers", "--data", newcomer.data)


@pytest.fixture
def admin(broker):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic("words-in", 2, 1)])["words-in"].result(30)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for word in WORDS:
        producer.produce("words-in", word)
    producer.flush(30)
    return admin


def internal_topics(admin):
    return {topic for topic in admin.list_topics(timeout=30).topics if topic.startswith("words-app-")}


def assert_counts_are_exact(newcomer):
    until(lambda: newcomer.counts() == COUNTS, lambda: f"exact counts of all words, now {newcomer.counts()}")


def ends_of(admin, topic):
    places = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(2)}
    return {place.partition: future.result(30).offset for place, future in admin.list_offsets(places).items()}


def last_results(admin, broker, begins):
    """The last count of each word in the output topic, of records from these offsets on."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader", "enable.auto.commit": False}
    )
    ends = ends_of(admin, OUTPUT)
    found, missing = {}, {partition for partition, end in ends.items() if end > begins[partition]}
    consumer.assign([TopicPartition(OUTPUT, partition, begins[partition]) for partition in missing])
    deadline = time.monotonic() + 60
    while missing:
        assert time.monotonic() < deadline, f"{missing} have not ended"
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            found[message.key().decode()] = int.from_bytes(message.value(), "big", signed=True)
            if message.offset() + 1 >= ends[message.partition()]:
                missing.discard(message.partition())
    consumer.close()
    return found


def assert_nothing_is_left(newcomer, admin):
    until(lambda: internal_topics(admin) == set(), "internal topics to be gone")
    topics = {topic for topic in admin.list_topics(timeout=30).topics if topic.startswith("words")}
    assert topics == {"words-in", OUTPUT}, "others read what it has written"
    groups = admin.list_consumer_groups().result().valid
    assert "words-app" not in {group.group_id for group in groups}
    assert newcomer.phase() == []
    assert newcomer.processes() == []
    files = [path for path in newcomer.data.rglob("*") if path.is_file()]
    kept = {path.relative_to(newcomer.data).parts[0] for path in files}
    assert kept.isdisjoint({"code", "snapshots", "runs"}), files
    assert [path for path in (newcomer.data / "workers").rglob("*") if "words" in path.name] == []


@pytest.mark.timeout(900)  # three dozen commands, each a process of its own
def test_the_whole_path_of_an_app(newcomer, admin, broker):
    newcomer.run("validate", expected=3)  # the lock that the definition names is not there yet
    newcomer.run("lock", "words")
    newcomer.run("validate")
    newcomer.run("up", "--data", newcomer.data, "--port", 0)

    planned = newcomer.json("plan", expected=3)
    assert [(change["app"], change["action"]) for change in planned["changes"]] == [("words", "create")]
    newcomer.run("apply")
    until(lambda: newcomer.phase() == ["running"], "the app to run")
    assert internal_topics(admin) == INTERNAL
    assert_counts_are_exact(newcomer)
    assert last_results(admin, broker, {0: 0, 1: 0}) == COUNTS
    assert len(newcomer.processes()) == 2, "a keeper and its worker"
    newcomer.json("plan")  # nothing to do: exit code 0

    # another version: what it means is said before anything happens
    edited = APP.replace(
        '.to_stream(name="updates")', '.to_stream(name="updates").filter(lambda _, n: n > 0, name="seen")'
    )
    (newcomer.source / "words.py").write_text(edited)
    assert "streamfleet lock words" in json.dumps(newcomer.json("plan", expected=3))
    newcomer.run("lock", "words")
    (change,) = newcomer.json("plan", expected=3)["changes"]
    assert (change["action"], change["verdict"], change["lost_state"]) == ("upgrade", "ROLLING", [])
    newcomer.run("upgrade", "words")
    assert_counts_are_exact(newcomer)  # its state is still there
    before = ends_of(admin, OUTPUT)
    assert last_results(admin, broker, dict(before)) == {}

    # a reset: not without a word for it, and then everything is computed once more, exactly
    newcomer.run("reset", "words", "--confirm", "other", expected=1)
    assert internal_topics(admin) == INTERNAL
    newcomer.run("reset", "words", "--confirm", "words")
    until(lambda: newcomer.phase() == ["running"], "the app to run again")
    assert_counts_are_exact(newcomer)
    until(lambda: last_results(admin, broker, before) == COUNTS, "every count to be written once more")

    newcomer.run("retire", "words", "--confirm", "words", "--undo-window", 0)
    assert_nothing_is_left(newcomer, admin)
