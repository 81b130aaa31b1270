"""What queries cost a worker, and what they cost the records it processes meanwhile: `make bench`.

A counting app with its HTTP door runs in this process on a broker of its own; a client in another one asks for keys.

    per query     CPU of the process per query over a kept connection, while there is nothing else to do
    per record    CPU of the process per record of a backlog, with 500 queries per second and without, turn by turn; what the
                  queries themselves cost is taken off

Both guarantees: at least once reads through the gate of the stream thread, exactly once what was committed. Prints the two
figures with their bars (200 us; 10 %), and how long answers took.
"""

from __future__ import annotations

import argparse
import http.client
import json
import logging
import random
import select
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import structlog
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import streamfleet as sf
from streamfleet.clock import SystemClock
from streamfleet.worker.http_door import HttpDoor
from streamfleet.worker.http_routes import Routes
from streamfleet.worker.http_server import Address
from streamfleet.worker.peers import Peers
from streamfleet.worker.query_pages import QueryPages
from streamfleet_devbroker.pytest_plugin import temporary_cluster

TOPIC = "in"
KEYS = 1000
RATE = 500
MAX_QUERY_US = 200.0
MAX_RISE = 0.10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=300_000, help="backlog of each turn (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=3, help="with and without queries (default: %(default)s)")
    parser.add_argument("--client", nargs=3, metavar=("ADDRESS", "RATE", "SECONDS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client is not None:
        print(json.dumps(ask_for_keys(*options.client)))
        return
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with temporary_cluster(nodes=1) as cluster:
        prepare(cluster.bootstrap_servers, options.records)
        for guarantee in ("at_least_once", "exactly_once_v2"):
            measure(cluster.bootstrap_servers, guarantee, options.records, options.turns)


def measure(bootstrap: str, guarantee: str, records: int, turns: int) -> None:
    with running(bootstrap, guarantee, records) as (streams, address):
        wait_until_processed(streams, records)
        per_query = cost_of_a_query(address)
    print(f"{guarantee:<16} {per_query * 1e6:6.1f} us CPU per query    (bar {MAX_QUERY_US:.0f})", flush=True)
    rises, p99s = [], []
    for _ in range(turns):
        alone, _ = cost_of_a_record(bootstrap, guarantee, records, None)
        asked, client = cost_of_a_record(bootstrap, guarantee, records, RATE)
        net = (
            asked - client["queries"] * per_query / records
        )  # what the records cost, if queries cost what they do alone
        rises.append(net / alone - 1)
        p99s.append(client["p99_ms"])
        print(
            f"{'':<16} {alone * 1e6:6.2f} us per record alone, {asked * 1e6:6.2f} with {client['rate']:.0f} queries/s, "
            f"{net * 1e6:6.2f} with their cost taken off; "
            f"answers p50 {client['p50_ms']:.1f} ms, p99 {client['p99_ms']:.1f} ms, refused {client['refused']}",
            flush=True,
        )
    rise = statistics.median(rises)
    print(f"{guarantee:<16} {rise * 100:+6.1f} % CPU per record   (bar {MAX_RISE * 100:+.0f} %)", flush=True)


def cost_of_a_query(address: Address, seconds: float = 8.0) -> float:
    """CPU seconds. What the process does by itself, which is much in a process of Kafka clients, is taken off."""
    began, wall = time.process_time(), time.monotonic()
    time.sleep(seconds)
    idle = (time.process_time() - began) / (time.monotonic() - wall)
    began, wall = time.process_time(), time.monotonic()
    asked = finish(start_client(address, rate=0, seconds=seconds))
    return (time.process_time() - began - idle * (time.monotonic() - wall)) / asked["queries"]


def cost_of_a_record(bootstrap: str, guarantee: str, records: int, rate: int | None) -> tuple[float, dict[str, float]]:
    """CPU seconds per record of a backlog, and what the client says."""
    with running(bootstrap, guarantee, records) as (streams, address):
        client = None if rate is None else start_client(address, rate, seconds=3600)
        began = time.process_time()
        wait_until_processed(streams, records)
        spent = (time.process_time() - began) / records
        return spent, {} if client is None else finish(client)


@contextmanager
def running(bootstrap: str, guarantee: str, records: int) -> Iterator[tuple[sf.KafkaStreams, Address]]:
    """The app with its door, from the beginning of its input."""
    string = sf.serdes.string()
    with tempfile.TemporaryDirectory(prefix="streamfleet-bench-") as directory:
        config = sf.StreamsConfig(
            application_id=f"query-bench-{uuid.uuid4().hex[:8]}",
            bootstrap_servers=bootstrap,
            default_key_serde=string,
            default_value_serde=string,
            state_dir=Path(directory),
            processing_guarantee=guarantee,
            commit_interval_ms=500,
        )
        builder = sf.StreamsBuilder()
        builder.stream(TOPIC).group_by_key().count(store="counts")
        streams = sf.KafkaStreams(builder.build(), config)
        routes, peers = Routes(), Peers(config.application_id)
        pages = QueryPages(config.application_id, lambda: streams.queries, peers, SystemClock())
        routes.get("/query/", pages.answer)
        door = HttpDoor(routes, Address("127.0.0.1", 0))
        address = door.open()
        try:
            with streams:
                streams.start()
                streams.wait_until_running(60)
                yield streams, address
        finally:
            door.close()
            peers.close()


def wait_until_processed(streams: sf.KafkaStreams, records: int) -> None:
    deadline = time.monotonic() + 600
    while sum(part.position for thread in streams.threads() for task in thread.tasks for part in task.inputs) < records:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{records} records were not processed in 10 minutes")
        time.sleep(0.05)


def prepare(bootstrap: str, records: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(TOPIC, 1, 1)]).values():
        future.result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 200_000})
    for number in range(records):
        producer.produce(TOPIC, b"x" * 100, f"key-{number % KEYS}".encode())
        if number % 50_000 == 0:
            producer.flush()
    producer.flush()


# the client: a process of its own


def start_client(address: Address, rate: int, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--client", f"{address.host}:{address.port}", str(rate), str(seconds)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def finish(client: subprocess.Popen[str]) -> dict[str, float]:
    """Tell it to stop, if it has not by itself, and hear what it saw."""
    told, _ = client.communicate("")
    heard: dict[str, float] = json.loads(told)
    return heard


def ask_for_keys(address: str, rate_text: str, seconds_text: str) -> dict[str, float]:
    """At a rate, or with 0 as fast as answers come, until the time is over or standard input ends."""
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    rate, deadline = float(rate_text), time.monotonic() + float(seconds_text)
    latencies: list[float] = []
    began, refused = time.monotonic(), 0
    while time.monotonic() < deadline and not (rate and has_ended(sys.stdin)):
        if rate:
            time.sleep(max(0.0, began + (len(latencies) + refused) / rate - time.monotonic()))
        asked = time.monotonic()
        connection.request("GET", f"/query/counts/key/key-{random.randrange(KEYS)}")
        answer = connection.getresponse()
        answer.read()
        if answer.status in (200, 404):
            latencies.append((time.monotonic() - asked) * 1000)
        else:
            refused += 1
    latencies.sort()
    return {
        "queries": len(latencies) + refused,
        "refused": refused,
        "rate": (len(latencies) + refused) / (time.monotonic() - began),
        "p50_ms": latencies[len(latencies) // 2],
        "p99_ms": latencies[int(len(latencies) * 0.99)],
    }


def has_ended(stream: TextIO) -> bool:
    return bool(select.select([stream], [], [], 0)[0])


if __name__ == "__main__":
    main()
