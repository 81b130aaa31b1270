"""An app: orders, enriched with who placed them, counted and summed per country in windows of five minutes.

    orders ──filter──re-key by customer──┐
                                         join ──> enriched-orders
    customers (table) ───────────────────┘  └──group by country──5 min windows──> revenue-per-country

Its sample is in orders_sample.py; `streamfleet topology describe examples.apps.orders:topology`
shows what it is made of.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

import streamfleet as sf


class Order(msgspec.Struct, frozen=True):
    """What was bought."""

    customer: str
    product: str
    cents: int


class Customer(msgspec.Struct, frozen=True):
    """Who buys."""

    name: str
    country: str


class EnrichedOrder(msgspec.Struct, frozen=True):
    """An order with its customer's name and country."""

    customer: str
    country: str
    product: str
    cents: int


class Revenue(msgspec.Struct, frozen=True):
    """What a country bought in a window."""

    orders: int = 0
    cents: int = 0


WINDOW = timedelta(minutes=5)
GRACE = timedelta(minutes=1)

text = sf.serdes.string()
order_serde = sf.serdes.json(Order)
customer_serde = sf.serdes.json(Customer)
enriched_serde = sf.serdes.json(EnrichedOrder)
revenue_serde = sf.serdes.json(Revenue)
country_window_serde = sf.serdes.windowed(text, size=WINDOW)


def enrich(order: Order, customer: Customer) -> EnrichedOrder:
    return EnrichedOrder(customer.name, customer.country, order.product, order.cents)


def add(country: str, order: EnrichedOrder, revenue: Revenue) -> Revenue:
    return Revenue(revenue.orders + 1, revenue.cents + order.cents)


def topology() -> sf.Topology:
    """Every internal topic and store has a name of its own, so that a later version finds its state again."""
    builder = sf.StreamsBuilder()
    customers = builder.table("customers", key_serde=text, value_serde=customer_serde, store="customers")
    enriched = (
        builder.stream("orders", key_serde=text, value_serde=order_serde)
        .filter(lambda order_id, order: order.cents > 0, name="only-paid")
        .select_key(lambda order_id, order: order.customer, name="key-by-customer")
        .join(customers, enrich, name="with-customer", key_serde=text, value_serde=order_serde)
    )
    enriched.to("enriched-orders", key_serde=text, value_serde=enriched_serde)
    (
        enriched.group_by(
            lambda customer, order: order.country, name="by-country", key_serde=text, value_serde=enriched_serde
        )
        .windowed_by(sf.TimeWindows(size=WINDOW, grace=GRACE))
        .aggregate(Revenue, add, materialized=sf.Materialized("revenue", key_serde=text, value_serde=revenue_serde))
        .to_stream()
        .to("revenue-per-country", key_serde=country_window_serde, value_serde=revenue_serde)
    )
    return builder.build()
