"""What a developer gets wrong: each is a typed error that names the operator, the record where there is one, and what to do."""

import pytest

import streamfleet as sf
from streamfleet.testing import TopologyTestDriver

STRING = sf.serdes.string()
CONFIG = sf.StreamsConfig(application_id="app", default_key_serde=STRING, default_value_serde=STRING)


def source():
    builder = sf.StreamsBuilder()
    return builder, builder.stream("in")


def run(builder, key, value, config=CONFIG):
    with TopologyTestDriver(builder.build(), config) as driver:
        driver.pipe_raw("in", key, value, 5)
        return driver.drain()


# when the topology is written


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda s: s.filter(lambda v: True), r"filter: the predicate is called with \(key, value\).*2 argument"),
        (lambda s: s.map(lambda: None), r"map: the mapper is called with \(key, value\)"),
        (lambda s: s.map_values(lambda k, v: v), r"map_values: the mapper is called with \(value\)"),
        (lambda s: s.map_values(lambda v: v, with_key=True), r"map_values: the mapper is called with \(key, value\)"),
        (lambda s: s.select_key("id"), "select_key needs a function .* but was given 'id'"),
        (lambda s: s.foreach(None), "foreach needs a function"),
        (lambda s: s.group_by_key().reduce(lambda a: a), r"reduce: the reducer is called with \(aggregate, value\)"),
        (lambda s: s.group_by_key().aggregate(0, lambda k, v, a: a), "aggregate needs a function of .* initializer"),
        (lambda s: s.to(lambda k: "x"), "to: the topic function is called with"),
        (lambda s: s.split().branch(lambda: True), r"branch: the predicate is called with \(key, value\)"),
    ],
)
def test_a_function_that_does_not_fit_is_refused_when_the_operator_is_written(act, message):
    with pytest.raises(sf.OptionError, match=message):
        act(source()[1])


@pytest.mark.parametrize("windows", [sf.TimeWindows, sf.SlidingWindows, sf.SessionWindows])
def test_missing_grace_is_refused(windows):
    with pytest.raises(sf.OptionError, match=f"{windows.__name__} was given no grace; say how long .* grace=0"):
        windows(10)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sf.TimeWindows(0, 0), "the size must be larger than zero"),
        (lambda: sf.TimeWindows(10, 0, advance=11), "an advance of 11 ms does not fit windows of 10 ms"),
        (lambda: sf.TimeWindows(10, -1), "grace of TimeWindows must not be negative"),
        (lambda: sf.SessionWindows(-1, 0), "gap of SessionWindows must not be negative"),
        (lambda: sf.SlidingWindows("5s", 0), "difference of SlidingWindows must be a duration, got '5s'"),
        (lambda: sf.UnlimitedWindows(-1), "the start cannot be negative"),
    ],
)
def test_windows_that_cannot_be_are_refused(make, message):
    with pytest.raises(sf.OptionError, match=message):
        make()


def test_unlimited_windows_cannot_be_emitted_on_close():
    windowed = source()[1].group_by_key().windowed_by(sf.UnlimitedWindows())
    with pytest.raises(sf.OptionError, match="never close"):
        windowed.emit_strategy(sf.EmitStrategy.ON_WINDOW_CLOSE)


def test_too_short_retention_names_store_and_windows():
    windowed = source()[1].group_by_key().windowed_by(sf.TimeWindows(10, 5))
    with pytest.raises(
        sf.OptionError, match=r"window store w would keep its rows for 14 ms, but TimeWindows.* needs 15 ms"
    ):
        windowed.count(materialized=sf.Materialized("w", retention=14))


def test_a_store_of_the_wrong_kind_is_refused():
    builder, stream = source()
    stream.group_by_key().count(materialized=sf.Materialized(sf.Stores.session("s", 10)))
    with pytest.raises(
        sf.OptionError, match="store s .* keeps its result in a key-value store; make it with Stores.key_value"
    ):
        builder.build()


def test_store_and_materialized_together_are_refused():
    with pytest.raises(sf.OptionError, match="count was given both store and materialized"):
        source()[1].group_by_key().count(store="a", materialized=sf.Materialized("b"))


def test_an_unknown_keyword_is_refused():
    with pytest.raises(TypeError, match="named"):
        source()[1].filter(lambda k, v: True, named="x")
    builder, stream = source()
    with pytest.raises(TypeError, match="nmae"):
        stream.join(builder.table("t"), lambda left, right: left, nmae="x")


@pytest.mark.parametrize("name", ["a b", "", "..", "x" * 250, "ä"])
def test_an_illegal_name_is_refused_at_the_operator(name):
    with pytest.raises(sf.TopologyError, match="name"):
        source()[1].filter(lambda k, v: True, name=name)


def test_duplicate_names_are_refused():
    builder, stream = source()
    stream.filter(lambda k, v: True, name="x").map_values(lambda v: v, name="x")
    with pytest.raises(sf.TopologyError, match="processor x is already added"):
        builder.build()


def test_an_unknown_store_is_named():
    class Reads(sf.Processor):
        def process(self, record): ...

    builder, stream = source()
    stream.process(Reads, stores=["nope"])
    with pytest.raises(sf.TopologyError, match="state store nope is not added yet"):
        builder.build()


def test_stores_given_as_one_text_are_refused():
    with pytest.raises(sf.OptionError, match=r"pass a list: stores=\['nope'\]"):
        source()[1].process(_Silent, stores="nope")


class _Silent(sf.Processor):
    def process(self, record): ...


def test_a_supplier_that_returns_one_instance_twice_names_the_operator():
    shared = _Silent()
    with pytest.raises(
        sf.OptionError, match=r"operator process \(KSTREAM-PROCESSOR-0000000001\) returned one instance twice"
    ):
        source()[1].process(lambda: shared)


def test_joining_with_something_else_is_refused():
    with pytest.raises(
        sf.OptionError, match="join cannot join a KStream with 5; pass a KStream, a KTable or a GlobalKTable"
    ):
        source()[1].join(5, lambda left, right: left)


def test_a_global_join_without_key_selector_says_what_it_is_for():
    builder, stream = source()
    with pytest.raises(sf.OptionError, match="key_selector=lambda key, value"):
        stream.join(builder.global_table("g"), lambda left, right: left)


def test_overlapping_sources_are_refused():
    builder = sf.StreamsBuilder()
    builder.stream(["a", "b"]).to("x")
    builder.stream(["b", "c"]).to("y")
    with pytest.raises(
        sf.TopologyError, match="read overlapping but not equal sets of topics; read b in one stream only"
    ):
        builder.build()


def test_two_offset_resets_for_one_topic_are_refused():
    builder = sf.StreamsBuilder()
    builder.stream("a", offset_reset="earliest").to("x")
    builder.stream("a", offset_reset="latest").to("y")
    with pytest.raises(sf.TopologyError, match="different offset resets"):
        builder.build()


def test_generated_names_are_refused_when_names_are_demanded():
    builder, stream = source()
    stream.group_by(lambda k, v: v).count()
    config = CONFIG.with_(ensure_explicit_internal_resource_naming=True)
    with pytest.raises(sf.TopologyError) as caught:
        builder.build(config)
    for resource in ("state stores: KSTREAM-AGGREGATE", "changelog topics: ", "repartition topics: "):
        assert resource in str(caught.value)


# when records come


def test_an_operator_that_raises_is_named_with_the_record():
    builder, stream = source()
    stream.map_values(lambda v: v.upper() + 1, name="shout").to("out")
    with pytest.raises(sf.ProcessingError, match=r"TypeError.*\(operator shout; topic in, partition 0, offset 0\)"):
        run(builder, b"k", b"v")


def test_an_undecodable_value_is_named_with_the_record():
    builder, stream = source()
    stream.to("out")
    with pytest.raises(
        sf.DeserializationError, match=r"value.*topic in, partition 0, offset 0.*check value_serde"
    ) as caught:
        run(builder, b"k", b"\xff\xfe")
    assert isinstance(caught.value.__cause__, Exception)


def test_a_wrong_serde_at_a_sink_says_which_types_and_what_to_pass():
    builder, stream = source()
    stream.map_values(len, name="length").to("out", name="sink")
    with pytest.raises(sf.SerializationError, match=r"is of type int .*operator sink; topic in.*pass value_serde"):
        run(builder, b"k", b"v")


def test_a_wrong_serde_in_a_store_names_the_store():
    builder, stream = source()
    stream.group_by_key().aggregate(lambda: 0, lambda k, v, a: a + 1, store="counts").to_stream().to("out")
    with pytest.raises(sf.StreamsError, match="counts"):
        run(builder, b"k", b"v")


def test_a_negative_timestamp_is_refused_with_the_record():
    class Negative(sf.TimestampExtractor):
        def extract(self, record, partition_time):
            return sf.FailOnInvalidTimestamp().on_invalid_timestamp(record, -7, partition_time)

    builder = sf.StreamsBuilder()
    builder.stream("in", timestamp_extractor=Negative()).to("out")
    with pytest.raises(
        sf.TimestampError, match=r"timestamp -7 .*topic in, partition 0, offset 0.*set another timestamp"
    ):
        run(builder, b"k", b"v")


def test_no_serde_at_all_names_the_source_and_the_setting():
    builder, stream = source()
    stream.to("out")
    with pytest.raises(sf.StreamsError, match=r"KSTREAM-\w+-\d+ has no key serde; .*default.key.serde"):
        run(builder, b"k", b"v", sf.StreamsConfig(application_id="app"))


def test_a_store_that_is_not_connected_is_refused_by_name():
    class Reads(sf.Processor):
        def init(self, context):
            context.get_state_store("nope")

        def process(self, record): ...

    builder, stream = source()
    stream.process(Reads, name="reader")
    with pytest.raises(sf.StreamsError, match="operator reader has no store 'nope'.*connect the store"):
        run(builder, b"k", b"v")


class Shown(sf.ProcessingHandler):
    def __init__(self):
        self.errors = []

    def handle(self, context, record, error):
        self.errors.append((context.operator, repr(error)))
        return sf.HandlerResponse.CONTINUE


@pytest.mark.parametrize("execution", ["compiled", "interpreted"])
def test_a_handler_is_shown_what_the_functions_of_a_sink_raised(run, execution):
    def build(builder):
        stream = builder.stream("in").map_values(lambda value: value, name="same")
        stream.to(lambda key, value, context: {"x": "out"}[value])
        stream.to("other", partitioner=lambda topic, key, value, count: {"x": [0], "y": [0]}[value])

    handler = Shown()
    records = [("in", "a", "x", 1), ("in", "a", "z", 2), ("in", "a", "x", 3)]
    results, _, dropped = run(build, records, processing_handler=handler, topology_execution=execution)
    assert [(record.topic, record.timestamp) for record in results] == [
        ("out", 1),
        ("other", 1),
        ("out", 3),
        ("other", 3),
    ]
    assert (handler.errors, dropped) == ([("same", "KeyError('z')")], 1)


@pytest.mark.parametrize("record", [sf.Record("k", "v", 5), sf.FixedKeyRecord("k", "v", 5)])
def test_a_record_cannot_get_a_negative_timestamp(record):
    assert record.with_timestamp(0).timestamp == 0
    with pytest.raises(sf.StreamsError, match="cannot have the timestamp -1"):
        record.with_timestamp(-1)
