"""Records for the example fleet: customers and countries once, orders at a steady rate until time is up or a signal comes.

`make up` runs it in the background; `make load RATE=5000 SECONDS=60` adds to that, for a fleet that has to scale. Orders are drawn
by a seeded generator, most of them from a few busy customers, as in life.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from examples.apps import country_view
from examples.apps.orders import Customer, Order, customer_serde, order_serde

PARTITIONS = 4
"""Joined topics have to have as many partitions as each other."""
TOPICS = {"orders": {}, "customers": {"cleanup.policy": "compact"}, "countries": {"cleanup.policy": "compact"}}
COUNTRIES = {
    "DE": "Germany",
    "DK": "Denmark",
    "EE": "Estonia",
    "FI": "Finland",
    "FR": "France",
    "NO": "Norway",
    "PL": "Poland",
    "SE": "Sweden",
}
TARGET_CENTS = 5_000_000
CUSTOMERS = 500
PRODUCTS = {"lamp": 4_900, "chair": 12_900, "desk": 39_900, "rug": 8_900}
REFUND_SHARE = 0.03
STEP_SECONDS = 0.05


def create_topics(bootstrap_servers: str) -> None:
    """The topics that come from outside the fleet; those that are there stay as they are."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    present = admin.list_topics(timeout=30).topics
    missing = [NewTopic(name, PARTITIONS, 1, config=config) for name, config in TOPICS.items() if name not in present]
    for future in admin.create_topics(missing).values() if missing else ():
        future.result(30)


def write_tables(producer: Producer) -> None:
    for code, name in COUNTRIES.items():
        country = country_view.Country(name, TARGET_CENTS)
        producer.produce("countries", country_view.country_serde.serialize("countries", country), code)
    codes = sorted(COUNTRIES)
    for number in range(CUSTOMERS):
        customer = Customer(f"Customer {number}", codes[number % len(codes)])
        producer.produce("customers", customer_serde.serialize("customers", customer), f"c{number}")
    producer.flush(30)


def write_orders(producer: Producer, rate: float, seconds: float, is_over: Callable[[], bool], seed: int = 1) -> int:
    """How many orders were written."""
    chance = random.Random(seed)  # noqa: S311 no secret
    began, written = time.monotonic(), 0
    while not is_over() and (elapsed := time.monotonic() - began) < seconds:
        due = int(elapsed * rate)
        while written < due:
            customer, value = _order(chance)
            try:
                producer.produce("orders", value, customer)
            except BufferError:  # the broker is slower than the rate asked for: wait for room
                producer.poll(0.1)
                continue
            written += 1
        producer.poll(0)
        time.sleep(STEP_SECONDS)
    producer.flush(30)
    return written


def _order(chance: random.Random) -> tuple[str, bytes]:
    customer = f"c{int(CUSTOMERS * chance.random() ** 2)}"
    product = chance.choice(sorted(PRODUCTS))
    cents = PRODUCTS[product] * (-1 if chance.random() < REFUND_SHARE else 1)
    return customer, order_serde.serialize("orders", Order(customer, product, cents)) or b""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.demo.load", description=__doc__)
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", help="the broker (default: the development broker's)")
    parser.add_argument("--rate", type=float, default=200.0, help="orders per second (default: 200)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default: 60)")
    given = parser.parse_args(arguments)
    over = False

    def stop(_signal: int, _frame: FrameType | None) -> None:
        nonlocal over
        over = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    settings = {"bootstrap.servers": given.bootstrap, "partitioner": "murmur2_random", "linger.ms": 20}
    try:
        create_topics(given.bootstrap)
        producer = Producer(settings)
        write_tables(producer)
        written = write_orders(producer, given.rate, given.seconds, lambda: over)
    except KafkaException as error:
        print(
            f"error: the broker at {given.bootstrap} does not answer: {error}; is it running? make up", file=sys.stderr
        )
        return 1
    print(f"{written} orders written in {given.seconds:g} s" if not over else f"{written} orders written, then stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
