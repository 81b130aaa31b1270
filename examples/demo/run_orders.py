"""Runs the orders app on its sample records through the TopologyTestDriver; no broker takes part.

Called by __main__.py; page.py shows the results.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from examples.apps import orders, orders_sample
from streamfleet import StreamsConfig, Windowed
from streamfleet.testing import TopologyTestDriver

PARTITIONS = {"orders": 3, "customers": 3}
"""What the plan assumes of the input topics; joined topics have to have as many partitions as each other."""


@dataclass(frozen=True)
class Table:
    """Results as text, for the terminal and for the page."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Demonstration:
    """Everything `make up` has to show of an app."""

    description: str
    picture: str
    internal_topics: Table
    results: tuple[Table, ...]


def demonstrate() -> Demonstration:
    """Build the topology, pipe the sample through it, and collect what came out."""
    topology = orders.topology()
    config = StreamsConfig(application_id="orders")
    plan = topology.plan(PARTITIONS, config)
    topics = tuple((name, str(topic.partitions)) for name, topic in sorted(plan.internal_topics.items()))
    with TopologyTestDriver(topology, config, now=orders_sample.NOON_MS) as driver:
        _pipe_sample(driver)
        results = (_enriched(driver), _revenue(driver))
    return Demonstration(
        description=str(topology.describe()),
        picture=topology.to_svg(title="orders"),
        internal_topics=Table("Internal topics on a cluster", ("topic", "partitions"), topics),
        results=results,
    )


def _pipe_sample(driver: TopologyTestDriver) -> None:
    customers = driver.input_topic("customers", orders.text, orders.customer_serde)
    for customer_id, customer in orders_sample.CUSTOMERS.items():
        customers.pipe(customer_id, customer, orders_sample.NOON_MS)
    placed = driver.input_topic("orders", orders.text, orders.order_serde)
    for second, order_id, order in orders_sample.ORDERS:
        placed.pipe(order_id, order, orders_sample.NOON_MS + second * 1000)


def _enriched(driver: TopologyTestDriver) -> Table:
    records = driver.output_topic("enriched-orders", orders.text, orders.enriched_serde).read_all_records()
    rows = [
        (clock_time(record.timestamp), value.customer, value.country, value.product, money(value.cents))
        for record in records
        if (value := record.value) is not None
    ]
    return Table("enriched-orders", ("time", "customer", "country", "product", "amount"), tuple(rows))


def _revenue(driver: TopologyTestDriver) -> Table:
    topic = driver.output_topic("revenue-per-country", orders.country_window_serde, orders.revenue_serde)
    last: dict[Windowed[str], orders.Revenue] = {
        key: value for key, value in topic.read_table().items() if key and value
    }
    rows = [
        (clock_time(key.window.start), key.key, str(value.orders), money(value.cents))
        for key, value in sorted(last.items(), key=lambda item: (item[0].window.start, item[0].key))
    ]
    return Table("revenue-per-country, last values", ("window", "country", "orders", "revenue"), tuple(rows))


def clock_time(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).strftime("%H:%M:%S")


def money(cents: int) -> str:
    return f"{cents / 100:.2f}"
