from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import streamfleet as sf
from streamfleet import serdes
from streamfleet.errors import ConfigError, OptionError, ProcessingError, StoreUnavailableError, StreamsError
from streamfleet.processor.api import PunctuationType
from streamfleet.processor.timestamps import TimestampExtractor
from streamfleet.records import Record
from streamfleet.state.stores import Stores
from streamfleet.testing import ProducedRecord, TopologyTestDriver
from streamfleet.topology.topology import Topology


def forward(context, record):
    context.forward(record)


def test_piped_record_is_processed_before_pipe_returns(run, upper_case):
    driver = run(upper_case)
    driver.input_topic("in").pipe("k", "hello", 5)
    assert driver.output_topic("out").read_all() == [("k", "HELLO")]


def test_drain_returns_everything_in_the_order_sent_and_only_once(run, counting):
    driver = run(counting)
    driver.pipe_raw("in", b"a", b"x", 1)
    driver.pipe_raw("in", b"a", b"y", 2, (("h", b"1"),))
    assert driver.drain() == [
        ProducedRecord("app-counts-changelog", 0, b"a", bytes(7) + b"\x01", 1),
        ProducedRecord("out", 0, b"a", b"1", 1),
        ProducedRecord("app-counts-changelog", 0, b"a", bytes(7) + b"\x02", 2),
        ProducedRecord("out", 0, b"a", b"2", 2, (("h", b"1"),)),
    ]
    assert driver.drain() == []


def test_reading_an_output_topic_does_not_take_records_from_drain(run, upper_case):
    driver = run(upper_case)
    driver.pipe_raw("in", b"k", b"v", 1)
    assert driver.output_topic("out").read() == ("k", "V")
    assert len(driver.drain()) == 1


def test_record_sent_to_a_topic_that_is_read_comes_back_as_input(run, make_step):
    seen: list[Any] = []

    def look(context, record):
        metadata = context.record_metadata()
        seen.append((metadata.topic, metadata.offset, record.value, record.timestamp))

    topology = Topology()
    topology.add_source("src", "in").add_sink("to-middle", "middle", "src")
    topology.add_source("middle-src", "middle").add_processor("look", make_step(look), "middle-src")
    driver = run(topology)
    driver.pipe_raw("in", b"k", b"a", 7)
    driver.pipe_raw("in", b"k", b"b", 3)
    assert seen == [("middle", 0, "a", 7), ("middle", 1, "b", 3)]


def test_all_topics_of_a_pattern_are_read_as_one_input(run, make_step):
    seen: list[Any] = []
    topology = Topology()
    topology.add_source("src", re.compile("logs-.*"))
    topology.add_processor("look", make_step(lambda c, r: seen.append(c.record_metadata())), "src")
    driver = run(topology)
    driver.pipe_raw("logs-1", b"k", b"x", 1)
    driver.pipe_raw("logs-2", b"k", b"y", 2)
    assert [(m.topic, m.offset) for m in seen] == [("logs-1", 0), ("logs-2", 1)]


def test_unknown_input_topic_is_refused_with_those_there_are(run, counting):
    driver = run(counting)
    for attempt in (lambda: driver.input_topic("inn"), lambda: driver.pipe_raw("inn", None, None, 0)):
        with pytest.raises(ValueError, match="does not read topic 'inn'; it reads in"):
            attempt()


def test_negative_timestamp_is_refused(run, upper_case):
    with pytest.raises(ValueError, match="the timestamp is -1"):
        run(upper_case).pipe_raw("in", b"k", b"v", -1)


def test_negative_timestamps_of_extractors_drop_records_and_are_counted(run, make_step):
    class Never(TimestampExtractor):
        def extract(self, record, partition_time):
            return -1

    topology = Topology()
    topology.add_source("src", "in", timestamp_extractor=Never()).add_sink("snk", "out", "src")
    driver = run(topology)
    driver.pipe_raw("in", b"k", b"v", 1)
    assert driver.drain() == []
    assert driver.metrics().dropped_records_total == 1


def test_failed_step_raises_and_what_was_sent_before_can_be_drained(run, make_step):
    def forward_then_fail(context, record):
        context.forward(record)
        raise RuntimeError("boom")

    topology = Topology()
    topology.add_source("src", "in").add_processor("p", make_step(forward_then_fail), "src")
    topology.add_sink("snk", "out", "p")
    driver = run(topology)
    with pytest.raises(ProcessingError, match=r"operator raised RuntimeError: boom \(operator p; topic in"):
        driver.pipe_raw("in", b"k", b"v", 1)
    assert [record.topic for record in driver.drain()] == ["out"]


def test_dead_letters_are_topics_like_any_other(run, make_step):
    topology = Topology()
    topology.add_source("src", "in").add_processor("p", make_step(lambda c, r: 1 // 0), "src")
    driver = run(topology, processing_handler="continue", dead_letter_topic="dlq")
    driver.pipe_raw("in", b"k", b"v", 4)
    record = driver.output_topic("dlq").read_record()
    assert (record.key, record.value, record.timestamp) == ("k", "v", 4)
    assert ("__streams.errors.topic", b"in") in record.headers
    assert driver.metrics().dropped_records == {("p", "processing error"): 1}


def test_stream_time_punctuation_follows_the_record_that_made_it_due(run, make_step):
    def begin(context):
        emit = lambda now: context.forward(Record("tick", str(now), now))
        context.schedule(10, PunctuationType.STREAM_TIME, emit)

    topology = Topology()
    topology.add_source("src", "in").add_processor("p", make_step(forward, begin), "src").add_sink("snk", "out", "p")
    driver = run(topology)
    topic = driver.input_topic("in")
    for timestamp in (3, 8, 12, 45):
        topic.pipe("k", "v", timestamp)
    ticks = [record for record in driver.output_topic("out").read_all_records() if record.key == "tick"]
    assert [record.timestamp for record in ticks] == [3, 12, 45]


def test_wall_clock_moves_only_by_hand(run, make_step):
    fired: list[int] = []
    topology = Topology()
    topology.add_source("src", "in").add_processor(
        "p",
        make_step(forward, lambda c: c.schedule(timedelta(seconds=1), PunctuationType.WALL_CLOCK_TIME, fired.append)),
        "src",
    )
    driver = run(topology, now=5000)
    driver.advance_wall_clock(999)
    driver.advance_wall_clock(timedelta(milliseconds=1))
    assert fired == [6000]
    with pytest.raises(OptionError):
        driver.advance_wall_clock(-1)


def test_records_wait_for_an_empty_input_until_the_clock_says_so(run, upper_case, make_step):
    topology = Topology()
    topology.add_source("a", "a").add_source("b", "b").add_sink("snk", "out", "a", "b")
    driver = run(topology, max_task_idle_ms=100)
    driver.pipe_raw("a", b"k", b"1", 10)
    driver.pipe_raw("b", b"k", b"0", 5)
    out = driver.output_topic("out")
    assert out.read_all() == [("k", "0")]
    driver.advance_wall_clock(99)
    assert out.is_empty
    driver.advance_wall_clock(1)
    assert out.read_all() == [("k", "1")]


def test_global_store_is_filled_from_its_topic_and_seen_by_processors(run, make_step):
    def lookup(context, record):
        context.forward(record.with_value(str(context.get_state_store("rates").get(record.key))))

    topology = Topology()
    topology.add_global_store(
        Stores.key_value("rates", key_serde=serdes.string(), value_serde=serdes.string(), logging=False),
        "global-src",
        "rates-topic",
        "fill",
        make_step(lambda c, r: c.get_state_store("rates").put(r.key, r.value)),
    )
    topology.add_source("src", "in").add_processor("lookup", make_step(lookup), "src").add_sink("snk", "out", "lookup")
    driver = run(topology)
    driver.pipe_raw("in", b"eur", b"-", 1)
    driver.pipe_raw("rates-topic", b"eur", b"1.5", 2)
    driver.pipe_raw("in", b"eur", b"-", 3)
    assert [value for _, value in driver.output_topic("out").read_all()] == ["None", "1.5"]
    assert driver.store("rates").get("eur") == "1.5"


def test_result_sent_to_a_global_topic_reaches_the_global_store(run, make_step):
    topology = Topology()
    topology.add_global_store(
        Stores.key_value("rates", key_serde=serdes.string(), value_serde=serdes.string(), logging=False),
        "global-src",
        "rates-topic",
        "fill",
        make_step(lambda c, r: c.get_state_store("rates").put(r.key, r.value)),
    )
    topology.add_source("src", "in").add_sink("snk", "rates-topic", "src")
    driver = run(topology)
    driver.pipe_raw("in", b"eur", b"2", 1)
    assert driver.store("rates").get("eur") == "2"


def test_stores_can_be_looked_into_and_filled(run, counting):
    driver = run(counting)
    driver.store("counts").put("a", 41)
    driver.pipe_raw("in", b"a", b"x", 1)
    assert driver.output_topic("out").read() == ("a", "42")
    assert list(driver.stores()) == ["counts"]


def test_unknown_store_is_refused_with_those_there_are(run, counting):
    with pytest.raises(StoreUnavailableError, match="there is no store 'count'; the topology has: counts"):
        run(counting).store("count")


def test_state_is_on_disk_until_the_driver_is_closed(config, counting):
    with TopologyTestDriver(counting, config) as driver:
        driver.pipe_raw("in", b"a", b"x", 1)
        directory = Path(driver._directory.name)
        assert list((directory / "0_0").iterdir())
    assert not directory.exists()


def test_two_drivers_of_one_topology_share_nothing(run, counting):
    first, second = run(counting), run(counting)
    first.pipe_raw("in", b"a", b"x", 1)
    second.pipe_raw("in", b"a", b"x", 1)
    assert second.output_topic("out").read() == ("a", "1")


def test_closed_driver_keeps_its_results_but_takes_no_input(run, upper_case):
    driver = run(upper_case)
    driver.pipe_raw("in", b"k", b"v", 1)
    driver.close()
    driver.close()
    assert driver.output_topic("out").read() == ("k", "V")
    with pytest.raises(StreamsError):
        driver.pipe_raw("in", b"k", b"v", 2)


def test_processors_are_closed_with_the_driver(config, make_step):
    closed: list[str] = []

    class Closing(type(make_step(forward)())):  # type: ignore[misc]
        def close(self):
            closed.append("p")

    topology = Topology()
    topology.add_source("src", "in").add_processor("p", lambda: Closing(forward), "src")
    with TopologyTestDriver(topology, config):
        assert closed == []
    assert closed == ["p"]


def test_start_that_fails_leaves_nothing_behind(config, counting, make_step, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def fail(context):
        raise RuntimeError("no")

    counting.add_processor("broken", make_step(forward, fail), "src")
    with pytest.raises(StreamsError, match="operator broken failed to initialise: no"):
        TopologyTestDriver(counting, config)
    assert list(tmp_path.iterdir()) == []


def test_missing_serde_is_an_error_at_the_start(config, upper_case):
    with pytest.raises(ConfigError, match="source src has no key serde|sink snk has no key serde"):
        TopologyTestDriver(upper_case, config.with_(default_key_serde=None))


def test_throttled_results_come_at_once_unless_configured(run, make_step):
    intervals: list[Any] = []

    def begin(context):
        intervals.append(context.config.windowed_emit_interval_ms)

    topology = Topology()
    topology.add_source("src", "in").add_processor("p", make_step(forward, begin), "src")
    run(topology)
    run(topology, windowed_emit_interval_ms=500)
    assert intervals == [0, 500]


def test_what_a_global_table_cannot_read_is_left_out_without_a_dead_letter():
    config = sf.StreamsConfig(application_id="app", dead_letter_topic="dlq", deserialization_handler="fail")
    builder = sf.StreamsBuilder(config)
    builder.global_table("g", key_serde=serdes.string(), value_serde=serdes.long(), store="st")
    with TopologyTestDriver(builder.build()) as driver:
        driver.pipe_raw("g", b"a", b"short", 1)
        driver.pipe_raw("g", b"b", bytes(7) + b"\x05", 2)
        assert driver.store("st").get("b").value == 5
        assert driver.metrics().dropped_records_total == 1
        assert driver.drain() == []


@pytest.mark.parametrize("kind", ["rocksdb", "in_memory"])
def test_a_store_that_is_not_logged_may_have_any_name(kind):
    config = sf.StreamsConfig(application_id="app")
    builder = sf.StreamsBuilder(config)
    text = serdes.string()
    stream = builder.stream("in", key_serde=text, value_serde=text)
    store = Stores.key_value("a/b ../c", kind=kind, logging=False)
    stream.group_by_key().count(materialized=sf.Materialized(store))
    with TopologyTestDriver(builder.build()) as driver:
        driver.pipe_raw("in", b"a", b"x", 1)
        assert driver.store("a/b ../c").get("a").value == 1
