"""The third of the three apps of the example fleet: a table to ask, every country with its name and its latest minute.

countries ─────────┐
                   join ──> country-view   (also the store `country-view`: streamfleet query country-view country-view SE)
country-activity ──┘
"""

from __future__ import annotations

import msgspec

import streamfleet as sf
from examples.apps.country_activity import Activity, activity_serde
from examples.apps.orders import text


class Country(msgspec.Struct, frozen=True):
    """A country, and what it is expected to buy in a minute."""

    name: str
    target_cents: int


class CountryView(msgspec.Struct, frozen=True):
    """What the page of a shop shows of a country."""

    name: str
    window_ms: int
    orders: int
    cents: int
    share_of_target: float


country_serde = sf.serdes.json(Country)
view_serde = sf.serdes.json(CountryView)


def view(country: Country, activity: Activity) -> CountryView:
    share = round(activity.cents / country.target_cents, 3)
    return CountryView(country.name, activity.window_ms, activity.orders, activity.cents, share)


def topology() -> sf.Topology:
    builder = sf.StreamsBuilder()
    countries = builder.table("countries", key_serde=text, value_serde=country_serde, store="countries")
    activity = builder.table("country-activity", key_serde=text, value_serde=activity_serde, store="latest-activity")
    (
        countries.join(
            activity, view, materialized=sf.Materialized("country-view", key_serde=text, value_serde=view_serde)
        )
        .to_stream(name="views")
        .to("country-view", key_serde=text, value_serde=view_serde)
    )
    return builder.build()
