"""The example app does what its sample says: it is the first code a newcomer reads."""

from examples.apps import orders, orders_sample
from streamfleet import StreamsConfig
from streamfleet.testing import TopologyTestDriver

MINUTE_MS = 60_000


def played():
    """The values in enriched-orders, and the last ones in revenue-per-country by minute after noon and country."""
    with TopologyTestDriver(orders.topology(), StreamsConfig(application_id="orders")) as driver:
        customers = driver.input_topic("customers", orders.text, orders.customer_serde)
        for customer_id, customer in orders_sample.CUSTOMERS.items():
            customers.pipe(customer_id, customer, orders_sample.NOON_MS)
        placed = driver.input_topic("orders", orders.text, orders.order_serde)
        for second, order_id, order in orders_sample.ORDERS:
            placed.pipe(order_id, order, orders_sample.NOON_MS + second * 1000)
        enriched = driver.output_topic("enriched-orders", orders.text, orders.enriched_serde).read_all_records()
        revenue = driver.output_topic("revenue-per-country", orders.country_window_serde, orders.revenue_serde)
        table = {
            ((key.window.start - orders_sample.NOON_MS) // MINUTE_MS, key.key): (value.orders, value.cents)
            for key, value in revenue.read_table().items()
        }
    return [record.value for record in enriched], table


def test_refunds_and_unknown_customers_are_left_out():
    enriched, _ = played()
    assert len(enriched) == 10
    assert all(order.cents > 0 for order in enriched)
    assert {order.country for order in enriched} == {"SE", "FR", "FI"}


def test_revenue_counts_the_late_order_and_drops_the_one_that_came_too_late():
    _, revenue = played()
    assert revenue == {
        (0, "FI"): (1, 39_900),
        (0, "FR"): (2, 13_800),  # with the order that was a minute late
        (0, "SE"): (2, 17_800),  # without the one that was ten minutes late
        (5, "FR"): (1, 12_900),
        (5, "SE"): (1, 8_900),
        (10, "FI"): (1, 12_900),
        (10, "SE"): (1, 39_900),
    }


def test_every_internal_topic_has_a_name_that_says_what_it_is_for():
    plan = orders.topology().plan({"orders": 3, "customers": 3}, StreamsConfig(application_id="orders"))
    assert set(plan.internal_topics) == {
        "orders-with-customer-repartition",
        "orders-by-country-repartition",
        "orders-revenue-changelog",
        "orders-customers-changelog",
    }
