"""The second of the three apps of the example fleet: what each country bought, minute by minute.

    enriched-orders ──group by country── repartition ──1 min windows── count and sum ──> country-activity

The result is keyed by the country alone, with the window in the value: a reader that takes it for a table (country_view.py) has
the latest window of every country.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

import streamfleet as sf
from examples.apps.orders import Revenue, add, enriched_serde, revenue_serde, text

WINDOW = timedelta(minutes=1)
GRACE = timedelta(seconds=10)


class Activity(msgspec.Struct, frozen=True):
    """What a country bought in the window that begins at `window_ms`."""

    window_ms: int
    orders: int
    cents: int


activity_serde = sf.serdes.json(Activity)


def by_country(country: sf.Windowed[str], revenue: Revenue) -> tuple[str, Activity]:
    return country.key, Activity(country.window.start, revenue.orders, revenue.cents)


def topology() -> sf.Topology:
    builder = sf.StreamsBuilder()
    (
        builder.stream("enriched-orders", key_serde=text, value_serde=enriched_serde)
        .group_by(lambda customer, order: order.country, name="by-country", key_serde=text, value_serde=enriched_serde)
        .windowed_by(sf.TimeWindows(size=WINDOW, grace=GRACE))
        .aggregate(
            Revenue, add, materialized=sf.Materialized("activity-by-minute", key_serde=text, value_serde=revenue_serde)
        )
        .to_stream(name="updates")
        .map(by_country, name="keyed-by-country")
        .to("country-activity", key_serde=text, value_serde=activity_serde)
    )
    return builder.build()
