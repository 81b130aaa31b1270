"""The orders app on the development broker: topics, a worker process in the background, sample records, and what comes out.

Called by __main__.py. Everything may be repeated: topics that are there stay, a worker that runs is left alone, and the sample is
written only into an empty topic. While a worker lives it holds the lock on its state directory, which also names its pid.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from examples.apps import orders, orders_sample
from examples.demo.run_orders import PARTITIONS, Table, clock_time, money
from streamfleet import Windowed
from streamfleet_devbroker.ports import free_ports

APPLICATION_ID = "orders"
TOPICS = (*PARTITIONS, "enriched-orders", "revenue-per-country")
TOPIC_CONFIG = {"retention.ms": "-1"}
"""The sample's records are of a day long past: with the usual retention the broker would delete them within minutes."""
START_SECONDS = 60.0
RESULTS_SECONDS = 60.0
SECONDS_BETWEEN_ORDERS = 0.3
CONFIG = """\
# What the worker of `make up` was started with.
application.id: {application_id}
bootstrap.servers: {bootstrap_servers}
processing.guarantee: exactly_once_v2
# The one worker there is takes its own place again, however it ended; nobody waits for the session of its predecessor.
group.instance.id: {application_id}
"""


class NotReadyError(Exception):
    """What `up` waits for did not come in time."""


@dataclass(frozen=True)
class LiveOrders:
    """`directory` keeps the worker's settings, log and state."""

    bootstrap_servers: str
    directory: Path

    def start(self) -> str:
        """Topics, worker and sample; returns the address of the worker's HTTP door."""
        self._create_topics()
        if running_pid(self.directory) is None:
            self._start_worker()
        address = (self.directory / "http").read_text().strip()
        self._await_ready(address)
        self._write_sample()
        return address

    def results(self) -> tuple[Table, ...]:
        """What is in the output topics, as soon as all orders of the sample came out that have a customer and an amount."""
        known = [o for _, _, o in orders_sample.ORDERS if o.cents > 0 and o.customer in orders_sample.CUSTOMERS]
        enriched = self._read("enriched-orders", lambda count: count >= len(known))
        revenue = self._read("revenue-per-country", lambda count: count >= 1)
        return _enriched_table(enriched), _revenue_table(revenue)

    def _create_topics(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        missing = [topic for topic in TOPICS if topic not in admin.list_topics(timeout=30).topics]
        if missing:
            for future in admin.create_topics(
                [NewTopic(topic, 3, 1, config=TOPIC_CONFIG) for topic in missing]
            ).values():
                future.result(30)

    def _start_worker(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "orders.yaml"
        config.write_text(CONFIG.format(application_id=APPLICATION_ID, bootstrap_servers=self.bootstrap_servers))
        address = f"127.0.0.1:{free_ports(1)[0]}"
        (self.directory / "http").write_text(address)
        command = [str(Path(sys.executable).with_name("streamfleet")), "run", "examples.apps.orders:topology"]
        command += ["--config", str(config), "--state-dir", str(self.directory / "state"), "--http", address]
        with (self.directory / "worker.log").open("ab") as log:
            subprocess.Popen(  # noqa: S603 our own command
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            ).returncode = 0  # it is meant to outlive us: no exit code will be asked for

    def _await_ready(self, address: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not _is_ready(address):
            if time.monotonic() > deadline:
                raise NotReadyError(f"the worker did not get ready; its log is {self.directory / 'worker.log'}")
            time.sleep(0.1)

    def _write_sample(self) -> None:
        probe = Consumer({"bootstrap.servers": self.bootstrap_servers, "group.id": "orders-demo"})
        ends = [probe.get_watermark_offsets(TopicPartition("orders", p), 30)[1] for p in range(PARTITIONS["orders"])]
        probe.close()
        if any(ends):
            return
        producer = Producer({"bootstrap.servers": self.bootstrap_servers, "partitioner": "murmur2_random"})
        for customer_id, customer in orders_sample.CUSTOMERS.items():
            value = orders.customer_serde.serialize("customers", customer)
            producer.produce("customers", value, customer_id, timestamp=orders_sample.NOON_MS)
        producer.flush(30)
        for second, order_id, order in orders_sample.ORDERS:
            value = orders.order_serde.serialize("orders", order)
            producer.produce("orders", value, order_id, timestamp=orders_sample.NOON_MS + second * 1000)
            producer.flush(30)
            # One after the other, as orders come: all at once, a partition that is read first would make the others' records late.
            time.sleep(SECONDS_BETWEEN_ORDERS)

    def _read(self, topic: str, is_enough: Callable[[int], bool]) -> list[tuple[bytes, bytes, int]]:
        settings = {"bootstrap.servers": self.bootstrap_servers, "group.id": "orders-demo", "enable.auto.commit": False}
        consumer = Consumer(settings | {"auto.offset.reset": "earliest", "isolation.level": "read_committed"})
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
        records: list[tuple[bytes, bytes, int]] = []
        deadline = time.monotonic() + RESULTS_SECONDS
        try:
            while True:
                message = consumer.poll(0.5)
                if message is not None and message.error() is None:
                    records.append((message.key() or b"", message.value() or b"", message.timestamp()[1]))
                elif message is None and is_enough(len(records)):
                    return records
                elif time.monotonic() > deadline:
                    raise NotReadyError(f"{topic} has only {len(records)} records after {RESULTS_SECONDS:g} s")
        finally:
            consumer.close()


def running_pid(directory: Path) -> int | None:
    """The worker that holds the state directory, if one does."""
    lock = directory / "state" / APPLICATION_ID / ".lock"
    try:
        with lock.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(file.read() or 0) or None
    except FileNotFoundError:
        pass
    return None


def stop(directory: Path) -> bool:
    """End the worker as an operator would; whether there was one."""
    pid = running_pid(directory)
    if pid is None:
        return False
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + START_SECONDS
    while running_pid(directory) == pid and time.monotonic() < deadline:
        time.sleep(0.05)
    return True


def _is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _enriched_table(records: list[tuple[bytes, bytes, int]]) -> Table:
    rows = []
    for _, data, timestamp in sorted(records, key=lambda record: record[2]):
        order = orders.enriched_serde.deserialize("enriched-orders", data)
        if order is not None:
            rows.append((clock_time(timestamp), order.customer, order.country, order.product, money(order.cents)))
    return Table("enriched-orders", ("time", "customer", "country", "product", "amount"), tuple(rows))


def _revenue_table(records: list[tuple[bytes, bytes, int]]) -> Table:
    last: dict[Windowed[str], orders.Revenue] = {}
    for key_data, data, _ in records:
        key = orders.country_window_serde.deserialize("revenue-per-country", key_data)
        value = orders.revenue_serde.deserialize("revenue-per-country", data)
        if key is not None and value is not None:
            last[key] = value
    rows = [
        (clock_time(key.window.start), key.key, str(value.orders), money(value.cents))
        for key, value in sorted(last.items(), key=lambda item: (item[0].window.start, item[0].key))
    ]
    return Table("revenue-per-country, last values", ("window", "country", "orders", "revenue"), tuple(rows))
