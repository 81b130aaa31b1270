"""What docs/language.md shows works as it stands there."""

import json
import re
from pathlib import Path

import pytest

import streamfleet as sf
from streamfleet.testing import TopologyTestDriver

ROOT = Path(__file__).resolve().parents[3]
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
TEXT, LONG = sf.serdes.string(), sf.serdes.long()


@pytest.fixture(scope="module")
def page():
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", (ROOT / "docs/language.md").read_text("utf-8"), re.DOTALL):
        exec(code, names)
    return names


@pytest.fixture
def played(page):
    """played(example, records): pipe (topic, key, value, timestamp); gives (key, value, timestamp) and drop reasons."""

    def play(example, records, value_serde=TEXT):
        config = sf.StreamsConfig(application_id="test", default_key_serde=TEXT, default_value_serde=TEXT)
        builder = sf.StreamsBuilder(config)
        page[example](builder)
        with TopologyTestDriver(builder.build(), config) as driver:
            for topic, *record in records:
                driver.input_topic(topic, TEXT, TEXT).pipe(*record)
            results = [
                (r.key.decode(), value_serde.deserialize(r.topic, r.value), r.timestamp)
                for r in driver.drain()
                if not r.topic.startswith("test-")
            ]
            return results, {reason for _, reason in driver.metrics().dropped_records}

    return play


def test_the_app_of_the_page_passes_the_test_of_the_page(page):
    page["test_orders_get_names"]()


def test_the_processor_of_the_page_lets_every_key_through_once_an_hour(page):
    builder = sf.StreamsBuilder()
    builder.add_state_store(sf.Stores.key_value("seen", value_serde=LONG))
    builder.stream("in").process(page["Deduplicate"], stores=["seen"]).to("out")
    config = sf.StreamsConfig(application_id="test", default_key_serde=TEXT, default_value_serde=TEXT)
    with TopologyTestDriver(builder.build(), config) as driver:
        for key, timestamp in [("a", 5), ("a", 6), ("b", 7), ("a", 9_000_000), ("a", 9_060_001), ("a", 9_060_002)]:
            driver.input_topic("in", TEXT, TEXT).pipe(key, "x", timestamp)
        passed = [record.timestamp for record in driver.drain() if record.topic == "out"]
    assert passed == [5, 7, 9_060_001]


def test_cogrouped_streams_update_one_aggregate(played):
    records = [("added", "ann", "tea", 1), ("added", "ann", "milk", 2), ("removed", "ann", "tea", 3)]
    results, _ = played("basket_totals", records, LONG)
    assert results == [("ann", 1, 1), ("ann", 2, 2), ("ann", 1, 3)]


def test_orders_meet_payments_within_an_hour_and_those_without_appear_when_it_is_over(played):
    closed = HOUR + 5 * MINUTE
    results, dropped = played(
        "paid_orders",
        [
            ("placed", "o1", "tea", 0),
            ("placed", "o2", "milk", 1),
            ("payments", "o1", "cash", HOUR),
            ("payments", "x", "of time", closed + 1),
            ("payments", "x", "of time", closed + 2),
            ("placed", "o3", "late", 0),
            ("placed", "o4", None, closed),
        ],
    )
    assert results == [("o1", "tea: cash", HOUR), ("o2", "milk: not paid", 1), ("o3", "late: not paid", 0)]
    assert dropped == {"null join key or value"}


def test_a_sale_has_the_price_of_its_time_also_if_that_comes_late(played):
    results, dropped = played(
        "priced_sales",
        [
            ("prices", "tea", "3", 0),
            ("sales", "tea", "one", 10_000),
            ("prices", "tea", "5", 20_000),
            ("prices", "tea", "4", 5_000),
            ("sales", "tea", "two", 10_000 + MINUTE),
            ("sales", "tea", "too late", 1_000),
            ("prices", "tea", "6", 2 * DAY),
            ("prices", "tea", "2", 1),
        ],
    )
    assert results == [("tea", "one at 4", 10_000), ("tea", "too late at 3", 1_000)]
    assert dropped == {"expired"}


def test_a_track_follows_its_artist(played):
    results, dropped = played(
        "tracks_with_artists",
        [
            ("artists", "a1", "Nina", 1),
            ("tracks", "t1", "a1:Sinnerman", 2),
            ("tracks", "t2", "a2:Unknown", 3),
            ("artists", "a1", "Nina Simone", 4),
        ],
    )
    assert results == [("t1", "Sinnerman by Nina", 2), ("t1", "Sinnerman by Nina Simone", 4)]
    assert dropped == set()


def test_a_suppressed_minute_appears_once_when_it_is_over(played):
    visits = [("ann", 0), ("ann", 59_999), ("bob", 60_000), ("bob", 69_999), ("ann", 59_998), ("bob", 70_000)]
    results, _ = played("visits_per_minute", [("visits", user, "x", time) for user, time in visits], LONG)
    assert results == [("ann", 3, 59_999)]


def test_the_optimized_app_of_the_page_has_one_repartition_topic(page):
    plain = sf.StreamsBuilder()
    page["two_counts"](plain)

    def topics(topology):
        found = json.loads(topology.to_json())["internal_topics"]
        return [name for name, topic in found.items() if topic["kind"] == "repartition"]

    assert topics(plain.build()) == ["per-day-repartition", "per-word-repartition"]
    assert topics(page["optimized"]()) == ["per-word-repartition"]


@pytest.mark.parametrize(
    ("example", "names"),
    [
        ("paid_orders", ["paid-this-join-store", "paid-outer-other-join-store", "paid-left-shared-join-store"]),
        ("priced_sales", ["prices", "priced-Buffer"]),
        ("tracks_with_artists", ["by-artist-subscription-store", "by-artist-subscription-registration-topic"]),
        ("tracks_with_artists", ["by-artist-subscription-response-topic", "tracks-with-artists"]),
        ("visits_per_minute", ["visits-per-minute", "whole-minutes-store"]),
    ],
)
def test_names_of_stores_and_topics_are_those_of_the_page(page, example, names):
    builder = sf.StreamsBuilder()
    page[example](builder)
    content = json.loads(builder.build().to_json())
    assert set(names) <= content["stores"].keys() | content["internal_topics"].keys()
