"""Records that are not what they should be: unreadable, too large, without key, from the wrong time, taken back."""

import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.integration.faults.conftest import (
    COLOURS,
    KEYS,
    failure_of,
    is_one_sentence,
    offsets_of,
    read_topic,
    set_topic,
    wait_for,
)
from tests.integration.faults.counting import LONG, STRING

import streamfleet as sf
from streamfleet.kafka_streams import ClientState
from streamfleet.testing import TopologyTestDriver

ALL = len(KEYS) * len(COLOURS)
POISON = b"\xff\xfe"


def produce(bench, topic, key, value, partition=0):
    bench.producer.produce(topic, value, key, partition=partition)
    assert bench.producer.flush(10) == 0


def dropped(streams):
    return {drop.reason: count for drop, count in streams.metrics().dropped_records.items()}


# --- F40 ---


def test_F40_an_unreadable_record_at_the_front_ends_the_app_with_its_place(app):
    produce(app.bench, app.source, "k0", POISON)
    app.write(ALL)
    with app.started() as streams:
        error = failure_of(streams)
    assert isinstance(error, sf.DeserializationError) and is_one_sentence(error)
    assert (error.topic, error.partition, error.offset) == (app.source, 0, 0)
    assert all(committed == 0 for _, committed in offsets_of(app.bench, [app.source]).values())


@pytest.mark.parametrize(("key", "value"), [(POISON, "red"), ("k0", POISON)], ids=["key", "value"])
def test_F40_an_unreadable_record_is_left_out_and_its_offset_committed(app, key, value):
    produce(app.bench, app.source, key, value)
    app.write(ALL)
    with app.running(deserialization_handler="continue") as streams:
        app.wait_until_counted()
        produce(app.bench, app.source, key, value)  # alone, and last
        wait_for(lambda: dropped(streams) == {"deserialization error": 2})
        app.wait_for_no_lag()
    with app.running():  # a handler that fails would fail now, had an offset not been committed
        app.write(ALL)
        app.wait_until_counted()


def test_F40_an_unreadable_record_goes_to_the_dead_letters_with_its_place(app):
    letters = app.bench.topic("letters", 1)
    produce(app.bench, app.source, "k0", POISON, partition=1)
    app.write(ALL)
    with app.running(deserialization_handler="continue", dead_letter_topic=letters):
        app.wait_until_counted()
        (letter,) = read_topic(app.bench, letters, 1)
        app.wait_for_no_lag()
    assert (letter.key(), letter.value()) == (b"k0", POISON)
    headers = dict(letter.headers())
    place = [headers[f"__streams.errors.{name}"] for name in ("topic", "partition", "offset")]
    assert place == [app.source.encode(), b"1", b"0"]
    assert b"string() reads UTF-8" in headers["__streams.errors.message"]


# --- F41 ---


def copying(bench, out):
    """Copies to a topic of its own what says how large it shall be, and counts all."""
    source, counts = bench.topic("sizes", 1), bench.topic("counts", 1)
    builder = sf.StreamsBuilder()
    stream = builder.stream(source)
    stream.map_values(lambda size: "x" * int(size), name="grow").to(out, name="to-out")
    stream.group_by_key().count(store="counts").to_stream().to(counts, value_serde=LONG)
    return builder.build(), source, counts


LIMIT = 4000
SIZES = [10, 20, 2 * LIMIT, 30, 40]


def sizes_of(messages):
    return [len(message.value()) for message in messages]


@pytest.fixture(params=["client", "broker"])
def limited(request, bench):
    """A topology with an output that takes small records only; with a limit that the client knows, or the broker alone."""
    out = bench.topic("out", 1)
    topology, source, counts = copying(bench, out)
    if request.param == "client":
        set_topic(bench, out, "max.message.bytes", LIMIT)

    def lower_limit():
        set_topic(bench, out, "max.message.bytes", LIMIT)

    return topology, source, out, counts, lower_limit


@pytest.fixture(params=["exactly_once_v2", "at_least_once"])
def guarantee(request):
    return request.param


def test_F41_a_record_that_is_too_large_ends_the_app_with_its_operator(bench, limited, guarantee):
    topology, source, out, _, lower_limit = limited
    with bench.running(topology, bench.config(processing_guarantee=guarantee)) as streams:
        lower_limit()
        bench.write(source, [("k", str(size)) for size in SIZES])
        error = failure_of(streams)
    assert isinstance(error, sf.ProductionError) and is_one_sentence(error)
    assert out in str(error) and "MSG_SIZE_TOO_LARGE" in str(error)
    assert all(committed == 0 for _, committed in offsets_of(bench, [source]).values())


def test_F41_a_record_that_is_too_large_is_left_out_and_the_rest_arrives(bench, limited, guarantee):
    topology, source, out, counts, lower_limit = limited
    config = bench.config(processing_guarantee=guarantee, production_handler="continue")
    with bench.running(topology, config) as streams:
        lower_limit()
        bench.write(source, [("k", str(size)) for size in SIZES])
        small = [size for size in SIZES if size < LIMIT]
        assert sorted(sizes_of(read_topic(bench, out, len(small)))) == small
        bench.read(counts, lambda got: got and int.from_bytes(got[-1][1], "big") == len(SIZES))
        bench.write(source, [("k", "50")])  # and the app goes on
        assert sorted(sizes_of(read_topic(bench, out, len(small) + 1))) == [*small, 50]
        assert dropped(streams) == {"production error": 1}
        assert streams.state is ClientState.RUNNING


# --- F42 ---


def test_F42_records_without_key_or_value_are_counted_and_left_out(app):
    app.write(ALL)
    produce(app.bench, app.source, None, "red")  # has no key of its own, but a colour
    app.bench.write(app.source, [("k0", None)])  # has no colour to be counted by; windows count keys alone
    app.colours["red"] += 1
    app.windows["k0"] += 1
    with app.running() as streams:
        app.wait_for_no_lag()
        app.wait_until_counted()
        assert dict(streams.metrics().dropped_records) == {
            ("KSTREAM-AGGREGATE-0000000001", "null key or value"): 2,
            ("KSTREAM-AGGREGATE-0000000004", "null key"): 1,
        }
        assert streams.state is ClientState.RUNNING


def test_F42_a_deleted_row_stays_deleted_after_a_restore(bench):
    table, source, out = bench.topic("table", 1), bench.topic("in", 1), bench.topic("out", 1)
    builder = sf.StreamsBuilder()
    rows = builder.table(table, store="rows")
    builder.stream(source).left_join(rows, lambda value, row: f"{value}:{row}").to(out)
    topology = builder.build()
    config = [bench.config(name, processing_guarantee="exactly_once_v2") for name in ("first", "second")]
    with bench.running(topology, config[0]):
        bench.write(table, [("a", "kept"), ("b", "deleted")])
        ask_until(bench, source, out, b"1:deleted", "1")
        bench.write(table, [("b", None)])
        ask_until(bench, source, out, b"2:None", "2")
    with bench.running(topology, config[1]) as streams:
        bench.write(source, [("a", "3"), ("b", "3")])
        bench.read(out, lambda got: {b"3:kept", b"3:None"} <= {value for _, value in got})
        assert sum(counts.restored_records for counts in streams.metrics().threads.values()) >= 3


def ask_until(bench, source, out, answer, question):
    """Ask for row b until the answer comes: table and stream are read independently."""

    def answered(got):
        if (b"b", answer) in got:
            return True
        bench.write(source, [("b", question)])
        return False

    bench.read(out, answered)


# --- F43 ---


FAR = 2**62
LATEST = 2**63 - 1


class TimeInValue(sf.TimestampExtractor):
    """Records say their time themselves."""

    def extract(self, record, partition_time):
        return int(record.value)


def timed(source, out):
    """Copies, and counts in windows of a second; both by the time that records say."""
    builder = sf.StreamsBuilder()
    stream = builder.stream(source, timestamp_extractor=TimeInValue())
    stream.to(out)
    windows = sf.TimeWindows(size=timedelta(seconds=1), grace=timedelta(0))
    stream.group_by_key().windowed_by(windows).count(store="windows")
    return builder.build()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([-5, -1, 0, 1, 999, 1000, FAR - 1, FAR, FAR + 1000]) | st.integers(-10, FAR), max_size=12)
)
def test_F43_stream_time_never_goes_back_and_every_record_is_copied_or_counted_as_dropped(times):
    with tempfile.TemporaryDirectory() as directory:
        config = sf.StreamsConfig(
            application_id="app", default_key_serde=STRING, default_value_serde=STRING, state_dir=Path(directory)
        )
        with TopologyTestDriver(timed("in", "out"), config) as driver:
            source = driver.input_topic("in")
            out = driver.output_topic("out")
            for time in times:
                source.pipe("k", str(time))
            copied = [(record.value, record.timestamp) for record in out.read_all_records()]
            valid = [time for time in times if time >= 0]
            assert copied == [(str(time), time) for time in valid]
            late = sum(time // 1000 * 1000 + 1000 <= max(valid[: n + 1]) for n, time in enumerate(valid))
            counts = {drop.reason: count for drop, count in driver.metrics().dropped_records.items()}
            assert counts.get("negative timestamp", 0) == len(times) - len(valid)
            assert sum(counts.values()) == len(times) - len(valid) + late


def test_F43_times_arrive_as_they_are_but_for_zero_which_becomes_one(bench, logged):
    source, out = bench.topic("in", 1), bench.topic("out", 1)
    set_topic(bench, out, "message.timestamp.after.max.ms", LATEST)
    set_topic(bench, out, "retention.ms", -1)
    config = bench.config(
        processing_guarantee="exactly_once_v2", topic_overrides={"message.timestamp.after.max.ms": str(LATEST)}
    )
    bench.write(source, [("k", str(time)) for time in (-1, 0, 1, FAR)])
    with bench.running(timed(source, out), config) as streams:
        messages = read_topic(bench, out, 3)
        assert dropped(streams)["negative timestamp"] == 1
        assert streams.state is ClientState.RUNNING
    assert [(message.value(), message.timestamp()[1]) for message in messages] == [
        (b"0", 1),
        (b"1", 1),
        (str(FAR).encode(), FAR),
    ]
    said = [line["topic"] for line in logged if line["event"] == "record of time 0 written with time 1"]
    assert out in said


def test_F43_a_time_that_the_broker_refuses_ends_the_app_instead_of_a_loop_of_aborts(bench):
    source, out = bench.topic("in", 1), bench.topic("out", 1)
    bench.write(source, [("k", "1"), ("k", str(FAR))])
    with bench.running(timed(source, out), bench.config(processing_guarantee="exactly_once_v2")) as streams:
        error = failure_of(streams, timeout_seconds=40)
    assert isinstance(error, sf.ProductionError) and is_one_sentence(error)
    assert "INVALID_TIMESTAMP" in str(error)


# --- F47 ---


def test_F47_aborted_input_is_never_processed_and_no_lag_remains(app):
    writer = Producer(
        {
            "bootstrap.servers": app.bench.bootstrap,
            "transactional.id": f"{app.bench.app}-writer",
            "partitioner": "murmur2_random",
        }
    )
    writer.init_transactions(10)
    records = [(KEYS[n % len(KEYS)], COLOURS[n % len(COLOURS)]) for n in range(ALL)]

    def write(*, commit):
        writer.begin_transaction()
        for key, colour in records:
            writer.produce(app.source, colour, key)
        if commit:
            writer.commit_transaction(10)
            app.expect(records)
        else:
            writer.flush(10)
            writer.abort_transaction(10)

    for commit in (False, True, False, False, True):
        write(commit=commit)
    with app.running() as streams:
        app.wait_until_counted()
        app.wait_for_no_lag()
        for commit in (True, False):  # what comes last is taken back
            write(commit=commit)
        app.wait_until_counted()
        app.wait_for_no_lag()
        assert streams.metrics().dropped_records_total == 0
    before = offsets_of(app.bench, app.inputs)
    with app.running():
        app.wait_until_counted()
    assert offsets_of(app.bench, app.inputs) == before
