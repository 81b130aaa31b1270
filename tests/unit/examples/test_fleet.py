"""The example fleet is what `make up` runs: valid, locked, and its three apps give what their pages say."""

from datetime import timedelta
from importlib import import_module
from pathlib import Path

import pytest

from examples.apps import country_activity, country_view, order_enrichment
from examples.apps.orders import Customer, EnrichedOrder, Order, customer_serde, enriched_serde, order_serde, text
from streamfleet import StreamsConfig
from streamfleet.testing import TopologyTestDriver
from streamfleet_platform.definitions.loader import load_fleet
from streamfleet_platform.definitions.tree import DirectoryTree
from streamfleet_platform.topologies.declarations import declaration_problems
from streamfleet_platform.topologies.lock import TopologyLock

FLEET = Path(__file__).resolve().parents[3] / "examples" / "fleet"
APPS = ("country-activity", "country-view", "order-enrichment")
NOON_MS = 1_767_268_800_000


@pytest.mark.parametrize("app", APPS)
def test_its_locks_are_up_to_date_and_it_declares_what_it_does(app):
    fleet = load_fleet(DirectoryTree(FLEET))
    module, function = fleet.apps[app].spec.code.entrypoint.split(":")
    lock = TopologyLock.from_file((FLEET / f"apps/{app}.lock.json").read_bytes())
    assert lock == TopologyLock.from_topology_json(getattr(import_module(module), function)().to_json())
    assert lock.generated_names() == []
    assert declaration_problems(fleet.apps[app], fleet.apps, lock) == []


def test_its_apps_feed_one_another():
    fleet = load_fleet(DirectoryTree(FLEET))
    assert tuple(sorted(fleet.apps)) == APPS
    assert fleet.lineage.downstream_of("order-enrichment") == {"country-activity", "country-view"}


def test_an_order_is_enriched_and_a_refund_is_not():
    with TopologyTestDriver(order_enrichment.topology(), StreamsConfig(application_id="a")) as driver:
        driver.input_topic("customers", text, customer_serde).pipe("c1", Customer("Ada", "SE"), NOON_MS)
        orders = driver.input_topic("orders", text, order_serde)
        orders.pipe("c1", Order("c1", "lamp", 4900), NOON_MS)
        orders.pipe("c1", Order("c1", "lamp", -4900), NOON_MS)
        orders.pipe("c9", Order("c9", "lamp", 4900), NOON_MS)
        results = driver.output_topic("enriched-orders", text, enriched_serde).read_all_records()
    assert [(r.key, r.value) for r in results] == [("c1", EnrichedOrder("Ada", "SE", "lamp", 4900))]


def test_a_country_shows_its_latest_minute():
    minute = round(country_activity.WINDOW / timedelta(milliseconds=1))
    with TopologyTestDriver(country_activity.topology(), StreamsConfig(application_id="a")) as driver:
        enriched = driver.input_topic("enriched-orders", text, enriched_serde)
        for at in (NOON_MS, NOON_MS + 1, NOON_MS + minute):
            enriched.pipe("c1", EnrichedOrder("Ada", "SE", "lamp", 100), at)
        table = driver.output_topic("country-activity", text, country_activity.activity_serde).read_table()
    assert table == {"SE": country_activity.Activity(NOON_MS + minute, 1, 100)}


def test_the_view_joins_a_country_with_its_activity():
    with TopologyTestDriver(country_view.topology(), StreamsConfig(application_id="a")) as driver:
        country = country_view.Country("Sweden", 1000)
        driver.input_topic("countries", text, country_view.country_serde).pipe("SE", country, NOON_MS)
        activity = driver.input_topic("country-activity", text, country_activity.activity_serde)
        activity.pipe("SE", country_activity.Activity(NOON_MS, 2, 250), NOON_MS)
        activity.pipe("FR", country_activity.Activity(NOON_MS, 9, 900), NOON_MS)
        table = driver.output_topic("country-view", text, country_view.view_serde).read_table()
    assert table == {"SE": country_view.CountryView("Sweden", NOON_MS, 2, 250, 0.25)}
