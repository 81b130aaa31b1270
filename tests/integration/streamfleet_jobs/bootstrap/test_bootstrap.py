"""A bootstrap on a real broker: by the job's own command, killed and resumed, adopted by the engine, refused where it must be."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import streamfleet as sf
from streamfleet.partitioner import partition_for

PARTITIONS = 2
KEYS = 20_000
EVENTS = 50_000
STATES = ["computed", "staged", "changelog_written", "verified"]


def topology(topic):
    builder = sf.StreamsBuilder()
    text = sf.serdes.string()
    builder.stream(topic, key_serde=text, value_serde=sf.serdes.long()).group_by_key().count(
        materialized=sf.Materialized("counts", key_serde=text, value_serde=sf.serdes.long())
    )
    return builder.build()


class World:
    """An input topic, the table that was landed from it, and the app's directories."""

    def __init__(self, broker, directory, name):
        self.broker, self.directory, self.name = broker, directory, name
        self.topic = f"{name}-in"
        self.random = random.Random(7)
        self.ends = Counter()
        self.counts = Counter()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic(self.topic, PARTITIONS, 1)])[self.topic].result()

    def produce(self, events):
        producer = Producer({"bootstrap.servers": self.broker.bootstrap_servers, "linger.ms": 20})
        rows = []
        for _ in range(events):
            key = f"k{self.random.randrange(KEYS)}"
            partition = partition_for(key.encode(), PARTITIONS)
            at = 1_000_000 + self.random.randrange(1_000_000)
            producer.produce(self.topic, (1).to_bytes(8, "big"), key.encode(), partition, timestamp=at)
            rows.append((key, partition, self.ends[partition], at))
            self.ends[partition] += 1
            self.counts[key] += 1
            producer.poll(0)
        producer.flush(30)
        return rows

    def land(self, rows):
        names = ["customer", "p", "o", "ts"]
        table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
        (self.directory / "table").mkdir(exist_ok=True)
        pq.write_table(table, self.directory / "table" / "part-0.parquet")

    def spec(self, **changes):
        base = {
            "run_id": f"{self.name}-run",
            "token": 1,
            "epoch": 1,
            "app": {"application_id": self.name, "bootstrap_servers": self.broker.bootstrap_servers},
            "store": {
                "name": "counts",
                "kind": "timestamped_key_value",
                "key_serde": "string",
                "value_serde": "long",
                "partitions": PARTITIONS,
            },
            "input": {"topic": self.topic, "partitions": PARTITIONS, "stores_fed": ["counts"]},
            "source": {
                "parquet": str(self.directory / "table"),
                "key": "customer",
                "partition": "p",
                "offset": "o",
                "timestamp": "ts",
            },
            "value": {"of": {"function": "count"}},
            "directory": str(self.directory / "run"),
            "snapshot_directory": str(self.directory / "snapshots"),
        }
        return base | changes

    def run(self, engine="local", kill_after=None, **changes):
        path = self.directory / "spec.json"
        path.write_text(json.dumps(self.spec(**changes)))
        command = [sys.executable, "-m", "streamfleet_jobs", "bootstrap", "--spec", str(path), "--engine", engine]
        environment = os.environ | ({"STREAMFLEET_BOOTSTRAP_KILL_AFTER": kill_after} if kill_after else {})
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment, check=False)
        return done, [json.loads(line) for line in done.stdout.splitlines()]

    def app(self, restored, **changes):
        settings = {
            "application_id": self.name,
            "bootstrap_servers": self.broker.bootstrap_servers,
            "state_dir": self.directory / "state",
            "state_snapshot_dir": self.directory / "snapshots",
            "store_epochs": {"counts": 1},
            "commit_interval_ms": 200,
            "session_timeout_ms": 6000,
            "statestore_cache_max_bytes": 0,
        }
        app = sf.KafkaStreams(topology(self.topic), sf.StreamsConfig(**(settings | changes)))
        app.set_state_restore_listener(restored)
        return app


class Restored(sf.StateRestoreListener):
    """Counts what was replayed from changelogs."""

    def __init__(self):
        self.records = 0

    def on_restore_end(self, partition, store, total):
        self.records += total


@pytest.fixture
def world(broker, tmp_path, request):
    name = f"boot-{abs(hash(request.node.name)) % 10**8}"
    return World(broker, tmp_path, name)


def changelog(world, topic):
    """Counts by key, as the changelog has them now."""
    settings = {"bootstrap.servers": world.broker.bootstrap_servers, "group.id": "reader", "enable.partition.eof": True}
    consumer = Consumer(settings | {"auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found, ended = {}, 0
    while ended < PARTITIONS:
        for message in consumer.consume(10_000, timeout=0.1):
            if message.error() is None:
                found[message.key().decode()] = int.from_bytes(message.value(), "big")
            else:
                ended += 1
    consumer.close()
    return found


def run_until_equal(world, restored, **changes):
    """The app, until its changelog says what an app would that had processed everything; it has been stopped then."""
    topic = f"{world.name}-counts{'-e1' if changes.get('store_epochs', True) else ''}-changelog"
    app = world.app(restored, **changes)
    app.start()
    try:
        app.wait_until_running()
        deadline = time.monotonic() + 60
        while (found := changelog(world, topic)) != world.counts:
            assert time.monotonic() < deadline, f"{len(found)} keys of {len(world.counts)}"
            time.sleep(0.3)
    finally:
        app.close()


def wipe(world):
    shutil.rmtree(world.directory / "state", ignore_errors=True)


def test_an_adopted_bootstrap_equals_processing_everything_and_only_the_tail_is_replayed(world, capfd):
    world.land(world.produce(EVENTS))
    done, told = world.run()
    assert done.returncode == 0, done.stderr
    assert [line["state"] for line in told] == STATES
    keys = len(world.counts)
    assert told[-1]["detail"]["records"] == keys
    tail = 500
    world.produce(tail)
    first = Restored()
    run_until_equal(world, first)
    assert first.records == 0
    assert "snapshot taken over" in capfd.readouterr().out
    wipe(world)
    world.produce(50)
    second = Restored()
    run_until_equal(world, second)
    assert 0 < second.records <= tail
    wipe(world)
    for file in (world.directory / "snapshots").rglob("*.sst"):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    capfd.readouterr()
    world.produce(50)
    third = Restored()
    run_until_equal(world, third)
    assert third.records >= keys
    assert "snapshot not used, the changelog is replayed" in capfd.readouterr().out


@pytest.mark.parametrize("state", STATES)
def test_a_run_that_was_killed_after_a_step_goes_on(world, state):
    world.land(world.produce(300))
    killed, told = world.run(kill_after=state)
    assert killed.returncode == -9
    assert [line["state"] for line in told] == STATES[: STATES.index(state) + 1]
    done, told = world.run(token=2)
    assert done.returncode == 0, done.stderr
    proven = [line["state"] for line in told if line["detail"]["resumed"]]
    assert proven == [one for one in STATES[: STATES.index(state) + 1] if one != "verified"]
    assert changelog(world, f"{world.name}-counts-e1-changelog") == world.counts


def test_a_token_that_was_overtaken_is_refused(world):
    world.land(world.produce(100))
    assert world.run(token=5)[0].returncode == 0
    done, told = world.run(token=4)
    assert (done.returncode, told) == (4, [])
    assert "token 4 is fenced: 5 has been seen" in done.stderr


def test_it_is_refused_while_the_app_runs(world):
    world.land(world.produce(100))
    app = world.app(Restored(), store_epochs={}, state_snapshot_dir=None)
    app.start()
    try:
        app.wait_until_running()
        done, told = world.run()
    finally:
        app.close()
    assert (done.returncode, told) == (4, [])
    assert "stop the app" in done.stderr


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda rows: rows[:40] + rows[41:], "lacks 1 offsets"),
        (lambda rows: [*rows, rows[7]], "has 1 rows twice"),
        (lambda rows: [(k, p + 5, o, t) for k, p, o, t in rows], "has rows of partition"),
    ],
    ids=["hole", "duplicate", "other-partitions"],
)
def test_a_table_that_is_not_the_topic_is_refused(world, change, why):
    world.land(change(world.produce(200)))
    done, told = world.run()
    assert (done.returncode, told) == (4, [])
    assert why in done.stderr


def test_spark_computes_the_same_rows(world):
    world.land(world.produce(EVENTS))
    local, told_by_local = world.run()
    spark, told_by_spark = world.run(
        engine="spark-local",
        run_id="second",
        epoch=2,
        directory=str(world.directory / "run-2"),
        snapshot_directory=str(world.directory / "snapshots-2"),
    )
    assert (local.returncode, spark.returncode) == (0, 0), spark.stderr
    computed = [json.loads((world.directory / run / "computed.json").read_text()) for run in ("run", "run-2")]
    assert computed[0]["detail"]["digests"] == computed[1]["detail"]["digests"]
    assert told_by_local[-1]["detail"]["offsets"] == told_by_spark[-1]["detail"]["offsets"]
