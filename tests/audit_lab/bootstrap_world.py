"""An app that counts, its input topic, the table that was landed from it, and the job that bootstraps the app from the table."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import streamfleet as sf
from streamfleet.partitioner import partition_for

APP = """
import streamfleet as sf

def topology():
    builder, text = sf.StreamsBuilder(), sf.serdes.string()
    stream = builder.stream("{topic}", key_serde=text, value_serde=sf.serdes.long()){more}
    stream.group_by_key().count(
        materialized=sf.Materialized("counts", key_serde=text, value_serde=sf.serdes.long())
    )
    return builder.build()
"""


def topology(topic):
    builder = sf.StreamsBuilder()
    text = sf.serdes.string()
    builder.stream(topic, key_serde=text, value_serde=sf.serdes.long()).group_by_key().count(
        materialized=sf.Materialized("counts", key_serde=text, value_serde=sf.serdes.long())
    )
    return builder.build()


class World:
    """`expected` is what the app must hold in the end: count and timestamp by key."""

    def __init__(self, broker, directory, name, keys=20_000, partitions=2):
        self.broker, self.directory, self.name, self.keys, self.partitions = broker, directory, name, keys, partitions
        self.topic = f"{name}-in"
        self.random = random.Random(7)
        self.ends = [0] * partitions
        self.expected, self.produced = {}, []
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic(self.topic, partitions, 1)])[self.topic].result()

    def produce(self, events):
        """So many events of random keys; as rows of the table."""
        return self.produce_keys(f"k{self.random.randrange(self.keys)}" for _ in range(events))

    def produce_keys(self, keys):
        settings = {"linger.ms": 20, "queue.buffering.max.messages": 1_000_000}
        producer = Producer({"bootstrap.servers": self.broker.bootstrap_servers, **settings})
        rows = []
        for n, key in enumerate(keys):
            partition = partition_for(key.encode(), self.partitions)
            at = 1_000_000 + self.random.randrange(1_000_000)
            while True:
                try:
                    producer.produce(self.topic, (1).to_bytes(8, "big"), key.encode(), partition, timestamp=at)
                    break
                except BufferError:
                    producer.poll(0.1)
            rows.append((key, partition, self.ends[partition], at))
            self.ends[partition] += 1
            count, last = self.expected.get(key, (0, 0))
            self.expected[key] = (count + 1, max(last, at))
            if n % 1000 == 0:
                producer.poll(0)
        assert producer.flush(60) == 0
        self.produced += rows
        return rows

    def delete_before(self, offset):
        """What retention does, at once, to partition 0."""
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap_servers})
        for done in admin.delete_records([TopicPartition(self.topic, 0, offset)]).values():
            done.result()

    def land(self, rows):
        table = pa.table(dict(zip(["customer", "p", "o", "ts"], map(list, zip(*rows, strict=True)), strict=True)))
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
                "partitions": self.partitions,
            },
            "input": {"topic": self.topic, "partitions": self.partitions, "stores_fed": ["counts"]},
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

    def with_code(self, more=""):
        """Changes of a spec: it names the app's code, in which `more` follows the stream."""
        code = self.directory / "code"
        code.mkdir(exist_ok=True)
        (code / "counting.py").write_text(APP.format(topic=self.topic, more=more))
        return {"app": self.spec()["app"] | {"code": {"directory": str(code), "entrypoint": "counting:topology"}}}

    def second_run(self, **changes):
        """Changes of a spec: another run, with directories and an epoch of its own."""
        places = {"directory": str(self.directory / "run-2"), "snapshot_directory": str(self.directory / "snapshots-2")}
        return {"run_id": "second", "epoch": 2, **places, **changes}

    def run(self, engine="local", kill_after=None, arguments=(), remote=None, seconds=300, **changes):
        """The job, by its command: how it ended, and what it told on the way."""
        environment = {"STREAMFLEET_BOOTSTRAP_KILL_AFTER": kill_after} if kill_after else {}
        environment |= {"SPARK_REMOTE": remote} if remote else {}
        done = subprocess.run(
            self._command(engine, arguments, changes),
            capture_output=True,
            text=True,
            timeout=seconds,
            env=os.environ | environment,
            check=False,
        )
        return done, [json.loads(line) for line in done.stdout.splitlines()]

    def run_for(self, seconds, engine="local", **changes):
        """The job, killed after a while wherever it is; its exit code."""
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(self._command(engine, (), changes), **silent) as process:
            try:
                return process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                return process.wait()

    def _command(self, engine, arguments, changes):
        path = self.directory / "spec.json"
        path.write_text(json.dumps(self.spec(**changes)))
        command = [sys.executable, "-m", "streamfleet_jobs", "bootstrap", "--spec", str(path), "--engine", engine]
        return [*command, *arguments]

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

    def run_until_equal(self, restored, seconds=60, **changes):
        """The app, until it has committed all of its input and stopped; then its changelog must say what is expected."""
        epoch = "-e1" if changes.get("store_epochs", True) else ""
        topic = f"{changes.get('application_id', self.name)}-counts{epoch}-changelog"
        app = self.app(restored, **changes)
        app.start()
        try:
            app.wait_until_running(seconds)
            self._until_committed(changes.get("application_id", self.name), time.monotonic() + seconds)
        finally:
            app.close()
        found = self.changelog(topic)
        assert found == self.expected, f"{len(found)} keys, not {len(self.expected)}, or other counts"

    def _until_committed(self, group, deadline):
        """Everything has been processed: cheap to ask, while the app needs the interpreter."""
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap_servers, "group.id": group})
        asked = [TopicPartition(self.topic, partition) for partition in range(self.partitions)]
        while (found := [at.offset for at in consumer.committed(asked, timeout=30)]) != self.ends:
            assert time.monotonic() < deadline, f"committed {found}, not {self.ends}"
            time.sleep(0.3)
        consumer.close()

    def changelog(self, topic=None):
        """Count and timestamp by key, as the changelog has them now."""
        servers = {
            "bootstrap.servers": self.broker.bootstrap_servers,
            "group.id": "reader",
            "enable.partition.eof": True,
        }
        quick = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "fetch.queue.backoff.ms": 2}
        consumer = Consumer(servers | quick)
        topic = topic or f"{self.name}-counts-e1-changelog"
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(self.partitions)])
        found, ended = {}, 0
        while ended < self.partitions:
            for message in consumer.consume(10_000, timeout=0.1):
                if message.error() is None:
                    found[message.key().decode()] = (int.from_bytes(message.value(), "big"), message.timestamp()[1])
                else:
                    ended += 1
        consumer.close()
        return found

    def wipe(self):
        """The worker's disk is gone."""
        shutil.rmtree(self.directory / "state", ignore_errors=True)

    def flip_a_byte(self):
        """In the middle of every table file that was published."""
        for file in (self.directory / "snapshots").rglob("*.sst"):
            data = bytearray(file.read_bytes())
            data[len(data) // 2] ^= 1
            file.write_bytes(data)


class Restored(sf.StateRestoreListener):
    """Counts what was replayed from changelogs."""

    def __init__(self):
        self.records = 0

    def on_restore_end(self, partition, store, total):
        self.records += total
