"""Somebody at a terminal with a fleet of one app that counts words, and a table of the words that were landed."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

STREAMFLEET = Path(sys.executable).with_name("streamfleet")
PARTITIONS = 2

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
metadata: {{name: words, owner: team-words}}
spec:
  code: {{entrypoint: "words:topology"}}
  cluster: dev
  applicationId: words-app
  inputs: {{words: {{topic: words-in}}}}
  outputs: {{counts: {{topic: words-out, partitions: 2}}}}
  topology: {{lock: words.lock.json}}
  scale: {{max: 2}}
  state:
    stores: {{counts: {{bootstrap: lake}}}}
    bootstraps:
      lake:
        source: {{parquet: {table}, key: word, partition: p, offset: o, timestamp: ts}}
        value: {{of: {{function: count}}}}
"""


class FleetUser:
    """`counts` is what the app must say in the end."""

    def __init__(self, home, bootstrap):
        self.source, self.data, self.table = home / "source", home / "data", home / "source" / "lake"
        self.counts, self._ends = Counter(), [0] * PARTITIONS
        self._bootstrap = bootstrap
        self._environment = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")}
        (self.source / "apps").mkdir(parents=True)
        self.table.mkdir()
        (self.source / "words.py").write_text(APP)
        (self.source / "fleet.yaml").write_text(FLEET.format(bootstrap=bootstrap))
        (self.source / "apps" / "words.yaml").write_text(DEFINITION.format(table="lake"))
        admin = AdminClient({"bootstrap.servers": bootstrap})
        # what is written has times of 1970, and brokers look for what is past its retention half a minute after their start
        topic = NewTopic("words-in", PARTITIONS, 1, config={"retention.ms": "-1"})
        admin.create_topics([topic])["words-in"].result(30)

    def write(self, words, *, land):
        """Words without keys, in turn to each partition; as rows of the table, if they are landed."""
        producer, rows = Producer({"bootstrap.servers": self._bootstrap}), []
        for n, word in enumerate(words):
            partition = n % PARTITIONS
            producer.produce("words-in", word.encode(), partition=partition, timestamp=1_000_000 + n)
            rows.append((word, partition, self._ends[partition], 1_000_000 + n))
            self._ends[partition] += 1
            self.counts[word] += 1
            producer.poll(0)
        assert producer.flush(30) == 0
        if land:
            columns = map(list, zip(*rows, strict=True))
            pq.write_table(
                pa.table(dict(zip(["word", "p", "o", "ts"], columns, strict=True))), self.table / "0.parquet"
            )

    def run(self, *arguments, expected=0, seconds=240):
        """The command's standard output and standard error."""
        done = subprocess.run(
            [str(STREAMFLEET), *map(str, arguments)],
            cwd=self.source,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
        assert done.returncode == expected, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout, done.stderr

    def json(self, *arguments, expected=0):
        return json.loads(self.run(*arguments, "--json", expected=expected)[0])

    def query(self, word):
        """The count, or what the command says instead."""
        done = subprocess.run(
            [str(STREAMFLEET), "query", "words", "counts", word, "--json"],
            cwd=self.source,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return json.loads(done.stdout)["value"] if done.returncode == 0 else done.stderr

    def until_counted(self, *words, seconds=90):
        deadline = time.monotonic() + seconds
        for word in words:
            while (found := self.query(word)) != self.counts[word]:
                if time.monotonic() > deadline:
                    logs = self.run("logs", "words")[0]
                    raise AssertionError(f"{word}: {found}, not {self.counts[word]}\n{logs[-4000:]}")
                time.sleep(0.5)
