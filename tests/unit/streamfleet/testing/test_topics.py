from __future__ import annotations

from datetime import timedelta

import pytest

from streamfleet import serdes
from streamfleet.errors import ConfigError
from streamfleet.records import Record
from streamfleet.topology.topology import Topology


@pytest.fixture
def driver(run, upper_case):
    return run(upper_case, now=1000)


@pytest.fixture
def out(driver):
    return driver.output_topic("out")


def timestamps(out):
    return [record.timestamp for record in out.read_all_records()]


def test_record_without_timestamp_gets_the_time_of_the_topic(driver, out):
    topic = driver.input_topic("in")
    topic.pipe("k", "a")
    topic.pipe("k", "b", 7)
    topic.pipe("k", "c")
    assert timestamps(out) == [1000, 7, 1000]


def test_time_of_the_topic_advances_by_itself_when_told_to(driver, out):
    topic = driver.input_topic("in", start=50, auto_advance=timedelta(milliseconds=10))
    topic.pipe_list([("k", "a"), ("k", "b"), Record("k", "c", 5, ()), ("k", "d")])
    topic.advance_time(1)
    topic.pipe("k", "e")
    assert timestamps(out) == [50, 60, 5, 70, 81]


def test_headers_and_nulls_pass_through(run, config):
    driver = run(Topology().add_source("src", "in").add_sink("snk", "out", "src"))
    driver.input_topic("in").pipe(None, None, 3, [["h", b"1"]])
    assert driver.output_topic("out").read_record() == Record(None, None, 3, (("h", b"1"),))


def test_output_is_read_in_order_once(driver, out):
    driver.input_topic("in").pipe_list([("a", "1"), ("b", "2"), ("a", "3")])
    assert len(out) == 3
    assert out.read() == ("a", "1")
    assert out.read_all() == [("b", "2"), ("a", "3")]
    assert out.is_empty


def test_table_view_keeps_the_last_value_per_key(driver, out):
    driver.input_topic("in").pipe_list([("a", "1"), ("b", "2"), ("a", "3")])
    assert out.read_table() == {"a": "3", "b": "2"}


def test_reading_too_much_says_where_records_are(driver):
    driver.input_topic("in").pipe("k", "v")
    with pytest.raises(LookupError, match="nothing to read from topic elsewhere; topics with unread records: out"):
        driver.output_topic("elsewhere").read()


def test_topic_serdes_default_to_the_configured_ones(run, upper_case):
    driver = run(upper_case)
    driver.input_topic("in", value_serde=serdes.bytes()).pipe("k", b"raw")
    assert driver.output_topic("out", serdes.bytes()).read() == (b"k", "RAW")


def test_topic_without_serde_says_what_to_pass(run, counting):
    text = serdes.string()
    topology = Topology().add_source("src", "in", key_serde=text, value_serde=text)
    driver = run(topology, default_value_serde=None)
    with pytest.raises(ConfigError, match="test topic in has no value serde; pass value_serde"):
        driver.input_topic("in")
