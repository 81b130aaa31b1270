"""How fast a store of a million keys is restored from its changelog: `make bench`.

Writes the changelog of a counting app by hand, starts the app with an empty state directory on a broker of its own, and measures
until the task runs; then once more with the state on disk, where nothing is left to restore. Prints records per second, and CPU
microseconds per record of the whole process, which is the figure to compare between machines under load.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from pathlib import Path

import structlog
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import streamfleet as sf
from streamfleet_devbroker.pytest_plugin import temporary_cluster

APP = "restore-bench"
BATCH = 50_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000, help="rows of the store (default: %(default)s)")
    keys = parser.parse_args().keys
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with temporary_cluster(nodes=1) as cluster, tempfile.TemporaryDirectory(prefix="streamfleet-bench-") as directory:
        bootstrap = cluster.bootstrap_servers
        print(f"writing a changelog of {keys:,} keys", flush=True)
        prepare(bootstrap, keys)
        for title in ("empty state directory: everything is restored", "state on disk: nothing is left to restore"):
            wall, cpu = start_once(bootstrap, Path(directory))
            rate = (
                f"{keys / wall:>12,.0f} records/s  {cpu / keys * 1e6:5.2f} us CPU per record"
                if "empty" in title
                else ""
            )
            print(f"{title:<46} running after {wall:6.2f} s  {rate}", flush=True)


def prepare(bootstrap: str, keys: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    changelog = NewTopic(f"{APP}-counts-changelog", 1, 1, config={"cleanup.policy": "compact"})
    for future in admin.create_topics([NewTopic("in", 1, 1), changelog]).values():
        future.result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 2 * BATCH, "linger.ms": 20})
    for number in range(keys):
        producer.produce(changelog.topic, number.to_bytes(8, "big"), f"key-{number:016d}".encode(), 0)
        if number % BATCH == 0:
            producer.flush()
    producer.flush()


def start_once(bootstrap: str, directory: Path) -> tuple[float, float]:
    """Seconds and CPU seconds from start to running."""
    string = sf.serdes.string()
    config = sf.StreamsConfig(
        application_id=APP,
        bootstrap_servers=bootstrap,
        default_key_serde=string,
        default_value_serde=string,
        state_dir=directory,
    )
    builder = sf.StreamsBuilder()
    builder.stream("in").group_by_key().count(store="counts")
    wall, cpu = time.perf_counter(), time.process_time()
    with sf.KafkaStreams(builder.build(), config) as streams:
        streams.start()
        streams.wait_until_running(600)
        return time.perf_counter() - wall, time.process_time() - cpu


if __name__ == "__main__":
    main()
