"""The example app does what its sample says: it is the first code a newcomer reads."""

from examples.demo.page import render
from examples.demo.run_orders import Table, demonstrate


def test_refunds_and_unknown_customers_are_left_out():
    enriched, _ = demonstrate().results
    assert len(enriched.rows) == 10
    assert all(not row[-1].startswith("-") for row in enriched.rows)
    assert {row[2] for row in enriched.rows} == {"SE", "FR", "FI"}


def test_revenue_counts_the_late_order_and_drops_the_one_that_came_too_late():
    _, revenue = demonstrate().results
    assert revenue.rows == (
        ("12:00:00", "FI", "1", "399.00"),
        ("12:00:00", "FR", "2", "138.00"),  # with the order that was a minute late
        ("12:00:00", "SE", "2", "178.00"),  # without the one that was ten minutes late
        ("12:05:00", "FR", "1", "129.00"),
        ("12:05:00", "SE", "1", "89.00"),
        ("12:10:00", "FI", "1", "129.00"),
        ("12:10:00", "SE", "1", "399.00"),
    )


def test_every_internal_topic_has_a_name_that_says_what_it_is_for():
    topics = {row[0] for row in demonstrate().internal_topics.rows}
    assert topics == {
        "orders-with-customer-repartition",
        "orders-by-country-repartition",
        "orders-revenue-changelog",
        "orders-customers-changelog",
    }


def test_the_page_is_whole_and_escapes_what_it_shows():
    live = Table("of the <running> app", ("column",), (("cell",),))
    text = render(demonstrate(), (live,), "<host>:9092", "127.0.0.1:1234")
    assert "&lt;host&gt;:9092" in text
    assert "of the &lt;running&gt; app" in text
    assert 'href="http://127.0.0.1:1234/status"' in text
    assert "<svg" in text
    assert "Chloé" in text
    assert "src=" not in text  # nothing is loaded from elsewhere
