"""What a second worker costs an app with a million keys: `make bench`.

One worker has all tasks and goes on processing. A second one starts with an empty state directory; its tasks are made ready there,
and move when they are. Measures, on a broker of its own, how long that takes, and how long each partition gives no results while it
moves: a record is written to every partition every 20 ms, and the longest gap between two results is what its keys were not
available for. For comparison: how long it would have taken if tasks moved only with the timer, which asks every ten minutes.

Exits with 1 if a task moved before its copy was within `acceptable.recovery.lag`, or if a partition, moved or not, was without
results for more than a second.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import structlog
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import streamfleet as sf
from streamfleet_devbroker.pytest_plugin import temporary_cluster

APP = "scale-out-bench"
PARTITIONS = 4
BATCH = 50_000
TICK_SECONDS = 0.02
TIMER_SECONDS = 600
ACCEPTABLE_LAG = 10_000
LONGEST_GAP_SECONDS = 1.0
"""For which the keys of a partition may give no results, whatever moves."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000, help="rows of the store (default: %(default)s)")
    parser.add_argument("--worker", nargs=2, metavar=("BROKERS", "DIRECTORY"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.worker[0], Path(arguments.worker[1]))
        return 0
    with temporary_cluster(nodes=1) as cluster, tempfile.TemporaryDirectory(prefix="streamfleet-bench-") as directory:
        print(f"writing a changelog of {arguments.keys:,} keys", flush=True)
        prepare(cluster.bootstrap_servers, arguments.keys)
        return measure(cluster.bootstrap_servers, Path(directory))


# the workers: processes of their own


def work(bootstrap: str, directory: Path) -> None:
    """Run the app until standard input ends; tell the state of its tasks whenever it changes."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    string = sf.serdes.string()
    config = sf.StreamsConfig(
        application_id=APP,
        bootstrap_servers=bootstrap,
        default_key_serde=string,
        default_value_serde=string,
        state_dir=directory,
        commit_interval_ms=1000,
        statestore_cache_max_bytes=0,
        acceptable_recovery_lag=ACCEPTABLE_LAG,
    )
    builder = sf.StreamsBuilder()
    builder.stream("in").group_by_key().count(store="counts").to_stream().to("out", value_serde=sf.serdes.long())
    ended = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    with sf.KafkaStreams(builder.build(), config) as streams:
        streams.start()
        told = None
        while not ended.wait(0.02):
            threads = streams.threads()
            running = sorted(task.id for thread in threads for task in thread.tasks if task.phase == "running")
            copies = {copy.id: copy.lag_records for thread in threads for copy in thread.standbys}
            if (running, copies) != told:
                told = (running, copies)
                print(json.dumps({"running": running, "copies": copies}), flush=True)


class WorkerProcess:
    def __init__(self, bootstrap: str, directory: Path) -> None:
        command = [sys.executable, __file__, "--worker", bootstrap, str(directory)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.status: dict[str, Any] = {"running": [], "copies": {}}
        self.lags: dict[str, int | None] = {}
        """Of each task that was a copy here: how far behind it was seen last."""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.status = status = json.loads(line)
            self.lags |= status["copies"]

    def until(self, holds: Callable[[dict[str, Any]], bool], timeout_seconds: float = 300) -> None:
        deadline = time.monotonic() + timeout_seconds
        while not holds(self.status):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the worker did not get there: {self.status}")
            time.sleep(0.01)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


# input and output


def prepare(bootstrap: str, keys: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    changelog = NewTopic(f"{APP}-counts-changelog", PARTITIONS, 1, config={"cleanup.policy": "compact"})
    topics = [NewTopic("in", PARTITIONS, 1), NewTopic("out", PARTITIONS, 1), changelog]
    for future in admin.create_topics(topics).values():
        future.result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 2 * BATCH, "linger.ms": 20})
    for number in range(keys):
        value = number.to_bytes(8, "big")
        producer.produce(changelog.topic, value, f"key-{number:016d}".encode(), number % PARTITIONS)
        if number % BATCH == 0:
            producer.flush()
    producer.flush()


class Ticks:
    """A record into every input partition now and then, and when its result came out."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False, "fetch.wait.max.ms": 10}
        )
        self._consumer.assign([TopicPartition("out", number, 0) for number in range(PARTITIONS)])
        self.results: dict[int, list[float]] = {number: [] for number in range(PARTITIONS)}
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._write), threading.Thread(target=self._read)]
        for thread in self._threads:
            thread.start()

    def _write(self) -> None:
        while not self._ended.wait(TICK_SECONDS):
            for number in range(PARTITIONS):
                self._producer.produce("in", b"x", f"tick-{number}".encode(), number)
            self._producer.poll(0)

    def _read(self) -> None:
        while not self._ended.is_set():
            message = self._consumer.poll(0.2)
            if message is not None and message.error() is None:
                # By key, which names the input partition: results are partitioned by the hash of their keys.
                key = message.key() or b""
                self.results[int(key.removeprefix(b"tick-"))].append(time.monotonic())

    def longest_gap(self, partition: int, start: float, end: float) -> tuple[float, float]:
        """How long, and when it began."""
        times = [start, *(at for at in self.results[partition] if start <= at <= end), end]
        return max((later - earlier, earlier) for earlier, later in pairwise(times))

    def close(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._consumer.close()


def measure(bootstrap: str, directory: Path) -> int:
    """0 if all was as it should be, else 1."""
    first = WorkerProcess(bootstrap, directory / "first")
    first.until(lambda status: len(status["running"]) == PARTITIONS)
    ticks = Ticks(bootstrap)
    try:
        time.sleep(5)
        began = time.monotonic()
        usual = {number: ticks.longest_gap(number, began - 4, began)[0] for number in range(PARTITIONS)}
        second = WorkerProcess(bootstrap, directory / "second")
        try:
            second.until(lambda status: bool(status["copies"]))
            warming = time.monotonic()
            second.until(lambda status: len(status["running"]) == PARTITIONS // 2)
            moved_at = time.monotonic()
            time.sleep(3)
            moved = {int(task.partition("_")[2]) for task in second.status["running"]}
            gaps = report(ticks, usual, moved, (began, warming, moved_at))
            return verdict({task: second.lags.get(task) for task in second.status["running"]}, gaps)
        finally:
            second.close()
    finally:
        ticks.close()
        first.close()


def report(
    ticks: Ticks, usual: dict[int, float], moved: set[int], times: tuple[float, float, float]
) -> dict[int, float]:
    """For how long each partition gave no results."""
    gaps: dict[int, float] = {}
    began, warming, moved_at = times
    end = moved_at + 3
    print(f"{'copies begun after':<44}{warming - began:8.2f} s")
    print(f"{'tasks moved after':<44}{moved_at - began:8.2f} s   (with the timer alone: {TIMER_SECONDS} s)")
    for number in sorted(usual):
        what = "moved" if number in moved else "stayed"
        gap, at = ticks.longest_gap(number, began, end)
        gaps[number] = gap
        title = f"partition {number} ({what}): no results for at most"
        print(f"{title:<44}{gap:8.2f} s   (from {at - began:.2f} s on; before: {usual[number]:.2f} s)")
    return gaps


def verdict(lags: Mapping[str, int | None], gaps: Mapping[int, float]) -> int:
    """By what was seen of a copy last, before it became the task (None: it was none), and by how long each partition was silent."""
    early = {task: lag for task, lag in lags.items() if lag is None or lag > ACCEPTABLE_LAG}
    for task, lag in sorted(lags.items()):
        print(f"{'task ' + task + ' moved, behind by':<44}{'all of it' if lag is None else f'{lag:8} records'}")
    print(f"no task moves with more than {ACCEPTABLE_LAG} records to restore: {'NOT MET' if early else 'met'}")
    silent = sorted(number for number, gap in gaps.items() if gap > LONGEST_GAP_SECONDS)
    told = f"NOT MET: partitions {', '.join(map(str, silent))}" if silent else "met"
    print(f"no key is without results for more than {LONGEST_GAP_SECONDS:g} s: {told}")
    return 1 if early or silent else 0


if __name__ == "__main__":
    sys.exit(main())
