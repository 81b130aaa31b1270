"""What queries cost a worker, and what they cost the records it processes meanwhile: `make bench` (Linux).

A counting app with its HTTP door runs in this process on a broker of its own; a client in another one asks for keys. CPU is told by
thread, since the Kafka clients' own threads use more than all queries together, and never the same. Where queries come at a rate, a
few connections share it: over one alone, an answer that has to wait for a step of the stream thread holds up those after it.

    per query     of the threads that serve connections, from the bytes of the request to those of the answer, system calls
                  included: at 500 per second while the app works off a backlog, which has the bar, and beside it one query
                  after the other, and 500 per second, while the app is idle
    per record    of the stream thread, with 500 queries per second and without, turn by turn. It is net of what is counted per
                  query, but not of what queries make the stream thread do: those of at least once are read by it, if it
                  comes to that before the connection's thread does

Both guarantees: at least once reads through the gate of the stream thread, exactly once what was committed. Prints MET or MISSED
beside each bar (200 us; 10 %; that as many were asked as is said), and how long answers took; ends with 1 if one was missed. On a
busy machine the figures are noise: look at the load first.

A query that comes every 2 ms finds its code gone from the caches of the CPU, and costs a multiple of one that follows another: the
same calls without any connection show the same. So what a busy app adds to a query is the difference between the two paced
figures.
"""

from __future__ import annotations

import argparse
import http.client
import json
import logging
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import streamfleet as sf
from streamfleet.clock import SystemClock
from streamfleet.worker.garbage import looked_for_seldom
from streamfleet.worker.http_door import HttpDoor
from streamfleet.worker.http_messages import Answer, Request
from streamfleet.worker.http_routes import Routes
from streamfleet.worker.http_server import Address
from streamfleet.worker.peers import Peers
from streamfleet.worker.query_pages import QueryPages
from streamfleet_devbroker.pytest_plugin import temporary_cluster

TOPIC = "in"
KEYS = 1000
RATE = 500
CONNECTIONS = 4
"""That share it."""
IDLE_SECONDS = 8.0
MAX_QUERY_US = 200.0
MAX_RISE = 0.10
MIN_RATE = 0.9
"""Of RATE: less is no measurement of what that many queries cost."""
MIN_SHARE = 0.5
"""Of a backlog: less of it is no measurement."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=600_000, help="backlog of each turn (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=5, help="with and without queries (default: %(default)s)")
    parser.add_argument("--client", nargs=2, metavar=("ADDRESS", "RATE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client is not None:
        print(json.dumps(ask_for_keys(*options.client)))
        return 0
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with temporary_cluster(nodes=1) as cluster:
        prepare(cluster.bootstrap_servers, options.records)
        verdicts = [
            verdict
            for guarantee in ("at_least_once", "exactly_once_v2")
            for verdict in measure(cluster.bootstrap_servers, guarantee, options.records, options.turns)
        ]
    return 0 if all(verdicts) else 1


def is_met(guarantee: str, what: str, *, met: bool) -> bool:
    print(f"{guarantee:<16} {what}: {'MET' if met else 'MISSED'}", flush=True)
    return met


def measure(bootstrap: str, guarantee: str, records: int, turns: int) -> list[bool]:
    """Whether each bar is met."""
    with running(bootstrap, guarantee) as app:
        app.wait_until_processed(records)
        with asking(app.address, rate=0) as client:
            time.sleep(IDLE_SECONDS)
            per_query = app.cpu_per_query()
    with running(bootstrap, guarantee) as app:
        app.wait_until_processed(records)
        with asking(app.address, RATE) as client:
            time.sleep(IDLE_SECONDS)
            paced = app.cpu_per_query()
    print(f"{guarantee:<16} {per_query * 1e6:6.1f} us CPU per query, one after the other, idle", flush=True)
    print(f"{'':<16} {paced * 1e6:6.1f} us at {RATE} per second, idle", flush=True)
    alone_us, asked_us, busy_us, rates = [], [], [], []
    for _ in range(turns):
        with running(bootstrap, guarantee, paused=True) as app:
            alone_us.append(app.cpu_per_record(records) * 1e6)
        with running(bootstrap, guarantee, paused=True) as app, asking(app.address, RATE) as client:
            asked_us.append(app.cpu_per_record(records) * 1e6)
            busy_us.append(app.cpu_per_query() * 1e6)
        seen = client.seen
        rates.append(seen["rate"])
        print(
            f"{'':<16} {alone_us[-1]:6.2f} us per record alone, {asked_us[-1]:6.2f} with {seen['rate']:.0f} queries/s of "
            f"{busy_us[-1]:.0f} us; answers p50 {seen['p50_ms']:.1f} ms, p99 {seen['p99_ms']:.1f} ms, "
            f"slowest {seen['slowest_ms']:.0f} ms, refused {seen['refused']:.0f}",
            flush=True,
        )
    query_us, rise = statistics.median(busy_us), statistics.median(asked_us) / statistics.median(alone_us) - 1
    return [
        is_met(
            guarantee,
            f"{query_us:6.1f} us CPU per query, app busy (bar {MAX_QUERY_US:.0f}; threads of connections)",
            met=query_us <= MAX_QUERY_US,
        ),
        is_met(
            guarantee,
            f"{rise * 100:+6.1f} % CPU per record (bar {MAX_RISE * 100:+.0f} %; stream thread)",
            met=rise < MAX_RISE,
        ),
        is_met(
            guarantee,
            f"{min(rates):6.0f} queries per second, at least, were answered meanwhile (wanted {RATE * MIN_RATE:.0f})",
            met=min(rates) >= RATE * MIN_RATE,
        ),
    ]


def cpu_seconds(thread_name: str) -> float:
    """Of all threads whose name begins so."""
    threads = [thread for thread in threading.enumerate() if thread.name.startswith(thread_name)]
    told = [Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text("ascii") for thread in threads]
    return sum(int(text.split()[0]) for text in told) / 1e9


class App:
    """What the bench sees of the app: its door, how much was asked there, and the CPU of its threads."""

    def __init__(self, streams: sf.KafkaStreams, pages: QueryPages, name: str) -> None:
        self.streams = streams
        self.address = Address("", 0)
        self.queries = 0
        self._before = (0, 0.0)
        """Queries, and CPU for them, that are not counted."""
        self._pages = pages
        self._name = name

    def answer(self, request: Request) -> Answer:
        self.queries += 1
        return self._pages.answer(request)

    def cpu_per_query(self) -> float:
        queries, spent = self._before
        return (cpu_seconds("http-connection") - spent) / max(1, self.queries - queries)

    def cpu_per_record(self, records: int) -> float:
        """Of those that are left, after a pause in which the client came up."""
        self._before = self.queries, cpu_seconds("http-connection")
        began, done = cpu_seconds(self._name), self.processed
        self.streams.resume()
        self.wait_until_processed(records)
        if records - done < records * MIN_SHARE:
            raise RuntimeError(f"{done} of {records} records were processed before the pause; raise --records")
        return (cpu_seconds(self._name) - began) / (records - done)

    @property
    def processed(self) -> int:
        return sum(part.position for t in self.streams.threads() for task in t.tasks for part in task.inputs)

    def wait_until_processed(self, records: int) -> None:
        deadline = time.monotonic() + 600
        while self.processed < records:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{records} records were not processed in 10 minutes")
            time.sleep(0.05)


@contextmanager
def running(bootstrap: str, guarantee: str, *, paused: bool = False) -> Iterator[App]:
    """The app with its door, from the beginning of its input; paused: it waits there until `cpu_per_record`."""
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
        app = App(streams, pages, f"{config.application_id}-0")
        routes.get("/query/", app.answer)
        door = HttpDoor(routes, Address("127.0.0.1", 0))
        app.address = door.open()
        try:
            with looked_for_seldom(config.gc_threshold), streams:  # as in a worker
                streams.start()
                streams.wait_until_running(60)
                if paused:
                    streams.pause()
                yield app
        finally:
            door.close()
            peers.close()


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


class Client:
    """`seen` is what it says when it has ended."""

    def __init__(self, address: Address, rate: int) -> None:
        command = [sys.executable, __file__, "--client", f"{address.host}:{address.port}", str(rate)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.seen: dict[str, float] = {}
        assert self._process.stdout is not None
        self._process.stdout.readline()  # it has had its first answer

    def finish(self) -> None:
        told, _ = self._process.communicate("")
        self.seen = json.loads(told)


@contextmanager
def asking(address: Address, rate: int) -> Iterator[Client]:
    client = Client(address, rate)
    try:
        yield client
    finally:
        client.finish()


def ask_for_keys(address: str, rate_text: str) -> dict[str, float]:
    """At a rate, or with 0 over one connection as fast as answers come, until standard input ends."""
    rate, ended = float(rate_text), threading.Event()
    host, _, port = address.rpartition(":")
    askers = [
        Asker(Address(host, int(port)), rate / CONNECTIONS, ended, number / rate if rate else 0.0)
        for number in range(CONNECTIONS if rate else 1)
    ]
    for asker in askers:
        asker.had_answer.wait(60)
    print("asking", flush=True)
    sys.stdin.read()
    ended.set()
    for asker in askers:
        asker.join()
    latencies = sorted(latency for asker in askers for latency in asker.latencies_ms) or [0.0]
    refused = sum(asker.refused for asker in askers)
    return {
        "refused": refused,
        "rate": sum((len(asker.latencies_ms) + asker.refused) / asker.seconds for asker in askers),
        "p50_ms": latencies[len(latencies) // 2],
        "p99_ms": latencies[int(len(latencies) * 0.99)],
        "slowest_ms": latencies[-1],
    }


class Asker(threading.Thread):
    """One connection. What has come late is made up for, as fast as answers come."""

    def __init__(self, address: Address, rate: float, ended: threading.Event, after_seconds: float) -> None:
        super().__init__(daemon=True)
        self._address = address
        self._rate = rate
        self._ended = ended
        self._after_seconds = after_seconds
        self.had_answer = threading.Event()
        self.latencies_ms: list[float] = []
        self.refused = 0
        self.seconds = 0.0
        self.start()

    def run(self) -> None:
        connection = http.client.HTTPConnection(self._address.host, self._address.port, timeout=30)
        began = time.monotonic() + self._after_seconds
        while not self._ended.is_set():
            if self._rate:
                due = began + (len(self.latencies_ms) + self.refused) / self._rate
                time.sleep(max(0.0, due - time.monotonic()))
            asked = time.monotonic()
            connection.request("GET", f"/query/counts/key/key-{random.randrange(KEYS)}")
            answer = connection.getresponse()
            answer.read()
            if answer.status in (200, 404):
                self.latencies_ms.append((time.monotonic() - asked) * 1000)
            else:
                self.refused += 1
            self.had_answer.set()
        self.seconds = time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main())
