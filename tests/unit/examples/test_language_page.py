"""What docs/language.md shows works as it stands there."""

import re
from pathlib import Path

import pytest

import streamfleet as sf
from streamfleet.testing import TopologyTestDriver

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def page():
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", (ROOT / "docs/language.md").read_text("utf-8"), re.DOTALL):
        exec(code, names)
    return names


def test_the_app_of_the_page_passes_the_test_of_the_page(page):
    page["test_orders_get_names"]()


def test_the_processor_of_the_page_lets_every_key_through_once_an_hour(page):
    string = sf.serdes.string()
    builder = sf.StreamsBuilder()
    builder.add_state_store(sf.Stores.key_value("seen", value_serde=sf.serdes.long()))
    builder.stream("in").process(page["Deduplicate"], stores=["seen"]).to("out")
    config = sf.StreamsConfig(application_id="test", default_key_serde=string, default_value_serde=string)
    with TopologyTestDriver(builder.build(), config) as driver:
        for key, timestamp in [("a", 5), ("a", 6), ("b", 7), ("a", 9_000_000), ("a", 9_060_001), ("a", 9_060_002)]:
            driver.input_topic("in", string, string).pipe(key, "x", timestamp)
        passed = [record.timestamp for record in driver.drain() if record.topic == "out"]
    assert passed == [5, 7, 9_060_001]
