"""What goes wrong in joins, cogroups, suppression and versioned stores: each error has a type, names operator and record, and tells
what to do, in generated code and in the interpreter alike.
"""

import pytest

import streamfleet as sf
from streamfleet.testing import TopologyTestDriver

TEXT = sf.serdes.string()
WINDOW = sf.JoinWindows(5, 5, 0)
REGISTRATION = "app-fk-subscription-registration-topic"
RESPONSE = "app-fk-subscription-response-topic"
HASH = b"h" * 16

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(params=["compiled", "interpreted"])
def config(request):
    return sf.StreamsConfig(
        application_id="app",
        default_key_serde=TEXT,
        default_value_serde=TEXT,
        topology_execution=request.param,
        outer_join_emit_interval_ms=0,
        statestore_cache_max_bytes=0,
    )


def run(build, records, config):
    builder = sf.StreamsBuilder(config)
    build(builder)
    with TopologyTestDriver(builder.build(), config) as driver:
        for topic, key, value, timestamp in records:
            driver.pipe_raw(topic, key, value, timestamp)
        return driver.drain()


def boom(*_):
    raise ValueError("boom")


def first(*arguments):
    return arguments[0]


def history():
    return sf.Materialized(sf.Stores.versioned_key_value("rows", 1000))


def streams(method, joiner=first, left=None, right=None):
    def build(builder):
        this, other = builder.stream("L"), builder.stream("R")
        this = this if left is None else this.map_values(left, name="made")
        other = other if right is None else other.map_values(right, name="made")
        getattr(this, method)(other, lambda *both: joiner(*both), window=WINDOW, name="pair", store_name="kept").to("o")

    return build


def with_itself(joiner=first, mapper=None):
    def build(builder):
        stream = builder.stream("L")
        stream = stream if mapper is None else stream.map_values(mapper, name="made")
        stream.join(stream, lambda *both: joiner(*both), window=WINDOW, name="pair", store_name="kept").to("o")

    return build


def foreign(joiner=first, extractor=lambda value: value, mapper=None, foreign_mapper=None):
    def build(builder):
        left, right = builder.table("L"), builder.table("R")
        left = left if mapper is None else left.map_values(mapper, name="made")
        right = right if foreign_mapper is None else right.map_values(foreign_mapper, name="made")
        left.join(right, lambda *both: joiner(*both), foreign_key=extractor, name="fk").to_stream().to("o")

    return build


def waiting(joiner=first, mapper=None):
    def build(builder):
        stream = builder.stream("L")
        stream = stream if mapper is None else stream.map_values(mapper, name="made")
        table = builder.table("R", materialized=history())
        stream.join(table, lambda *both: joiner(*both), grace=5, name="held").to("o")

    return build


def as_of(joiner):
    def build(builder):
        table = builder.table("R", materialized=history())
        builder.stream("L").join(table, lambda *both: joiner(*both), name="as-of").to("o")

    return build


def versioned_tables(joiner):
    def build(builder):
        left, right = builder.table("L", materialized=history()), builder.table("R", store="plain")
        left.join(right, lambda *both: joiner(*both), name="both").to_stream().to("o")

    return build


def cogrouped(aggregator=lambda key, value, aggregate: aggregate, initializer=str, windows=None, merger=None):
    def build(builder):
        left, right = builder.stream("L").group_by_key(), builder.stream("R").group_by_key()
        groups = left.cogroup(lambda key, value, aggregate: aggregate).cogroup(
            right, lambda *all_of: aggregator(*all_of)
        )
        groups = groups if windows is None else groups.windowed_by(windows)
        others = [] if merger is None else [merger]
        groups.aggregate(lambda: initializer(), *others, name="co", store="s").to_stream(lambda k, _: str(k)).to("o")

    return build


def suppressed(mapper=None, after=None):
    def build(builder):
        table = builder.table("L")
        table = table if mapper is None else table.map_values(mapper, name="made")
        held = table.suppress(sf.Suppressed.until_time_limit(5, sf.BufferConfig.unbounded(), name="held"))
        (held if after is None else held.map_values(after, name="after")).to_stream().to("o")

    return build


def to_versioned(builder):
    builder.stream("L").map_values(len, name="made").to_table(name="kept", materialized=history()).to_stream().to("o")


def of(topic, *times):
    return [(topic, b"k", b"k", time) for time in times]


@pytest.mark.parametrize(
    ("build", "records", "operator", "record"),
    [
        (streams("join", boom), [*of("L", 0), *of("R", 0)], "pair-other-join", "topic R, partition 0, offset 0"),
        (streams("left_join", boom), [*of("R", 0), *of("L", 0)], "pair-this-join", "topic L, partition 0, offset 0"),
        (streams("outer_join", boom), [*of("L", 0), *of("R", 0)], "pair-outer-other-join", "topic R, .* offset 0"),
        (streams("left_join", boom), of("L", 0, 100), "pair-this-join", "topic L, partition 0, offset 1"),
        (streams("outer_join", boom), of("R", 0, 100), "pair-outer-other-join", "topic R, partition 0, offset 1"),
        (with_itself(boom), of("L", 0), "pair-other-join", "topic L, partition 0, offset 0"),
        (foreign(extractor=boom), of("L", 0), "fk-subscription-registration-processor", "topic L, .* offset 0"),
        (
            foreign(boom),
            [*of("R", 0), *of("L", 0)],
            "fk-subscription-response-resolver",
            f"topic {RESPONSE}, .* offset 0",
        ),
        (
            foreign(boom),
            [*of("L", 0), *of("R", 0)],
            "fk-subscription-response-resolver",
            f"topic {RESPONSE}, .* offset 0",
        ),
        (waiting(boom), [*of("R", 0), *of("L", 0, 9)], "held", "topic L, partition 0, offset 0"),
        (waiting(boom), [*of("R", 0), *of("L", 9, 0)], "held", "topic L, partition 0, offset 1"),
        (as_of(boom), [*of("R", 0), *of("L", 0)], "as-of", "topic L, partition 0, offset 0"),
        (versioned_tables(boom), [*of("R", 0), *of("L", 0)], "both-join-this", "topic L, partition 0, offset 0"),
        (versioned_tables(boom), [*of("L", 0), *of("R", 0)], "both-join-other", "topic R, partition 0, offset 0"),
        (cogrouped(boom), of("R", 0), "co-cogroup-agg-1", "topic R, partition 0, offset 0"),
        (cogrouped(initializer=boom), of("L", 0), "co-cogroup-agg-0", "topic L, partition 0, offset 0"),
        (cogrouped(boom, windows=sf.TimeWindows(5, 0)), of("R", 0), "co-cogroup-agg-1", "topic R, .* offset 0"),
        (cogrouped(boom, windows=sf.SlidingWindows(5, 0)), of("R", 0), "co-cogroup-agg-1", "topic R, .* offset 0"),
        (
            cogrouped(windows=sf.SessionWindows(5, 0), merger=lambda key, one, other: boom()),
            of("R", 0, 1),
            "co-cogroup-agg-1",
            "topic R, partition 0, offset 1",
        ),
        (suppressed(after=boom), [*of("L", 0), ("L", b"x", b"x", 9)], "after", "topic L, partition 0, offset 0"),
    ],
)
def test_a_function_that_raises_is_named_by_its_operator_and_the_record(config, build, records, operator, record):
    with pytest.raises(
        sf.ProcessingError, match=rf"ValueError: boom \(operator {operator}; {record}\); fix the operator"
    ) as caught:
        run(build, records, config)
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize(
    ("build", "records", "store", "operator", "record"),
    [
        (streams("join", left=len), of("L", 0), "kept-this-join-store", "pair-this-windowed", "topic L, .* offset 0"),
        (
            streams("join", right=len),
            of("R", 0),
            "kept-other-join-store",
            "pair-other-windowed",
            "topic R, .* offset 0",
        ),
        (streams("left_join", left=len), of("L", 0), "kept-left-shared-join-store", "pair-this-join", "topic L"),
        (
            streams("outer_join", right=len),
            of("R", 0),
            "kept-outer-shared-join-store",
            "pair-outer-other-join",
            "topic R",
        ),
        (with_itself(mapper=len), of("L", 0), "kept-this-join-store", "pair-this-windowed", "topic L, .* offset 0"),
        (waiting(mapper=len), of("L", 0), "held-Buffer", "held", "topic L, partition 0, offset 0"),
        (suppressed(mapper=len), of("L", 0), "held-store", "held", "topic L, partition 0, offset 0"),
        (to_versioned, of("L", 0), "rows", "kept", "topic L, partition 0, offset 0"),
        (cogrouped(lambda key, value, aggregate: 5), of("R", 0), "s", "co-cogroup-agg-1", "topic R, .* offset 0"),
    ],
)
def test_a_value_that_does_not_fit_a_store_is_named_by_store_operator_and_record(
    config, build, records, store, operator, record
):
    with pytest.raises(
        sf.SerializationError,
        match=rf"value of store {store} cannot be serialized.*got [15] \(int\).*"
        rf"\(operator {operator}; {record}.*\); give the store a value_serde",
    ):
        run(build, records, config)


@pytest.mark.parametrize(
    ("build", "records", "error", "message"),
    [
        (
            foreign(mapper=len, extractor=lambda value: "k"),
            of("L", 0),
            sf.ProcessingError,
            r"got 1 \(int\).*operator fk-subscription-registration-processor; topic L, partition 0, offset 0",
        ),
        (
            foreign(extractor=lambda value: 5),
            of("L", 0),
            sf.SerializationError,
            rf"topic {REGISTRATION} is of type int .*operator fk-subscription-registration-sink; topic L, .* offset 0",
        ),
        (
            foreign(foreign_mapper=len),
            [*of("R", 0), *of("L", 0)],
            sf.SerializationError,
            rf"topic {RESPONSE} .*got 1 \(int\).*operator fk-subscription-response-sink; topic {REGISTRATION}, .* offset 0",
        ),
    ],
)
def test_a_value_that_does_not_fit_what_a_foreign_key_join_sends_is_named(config, build, records, error, message):
    with pytest.raises(error, match=message):
        run(build, records, config)


@pytest.mark.parametrize(
    ("topic", "data", "message"),
    [
        (REGISTRATION, b"", "b'' is no subscription of a foreign-key join; nobody but the app itself"),
        (REGISTRATION, b"\x01", "is no subscription"),
        (REGISTRATION, b"\x81\x01\x00\x00", "is no subscription"),
        (REGISTRATION, b"\x01\x03" + HASH, "is no subscription"),
        (REGISTRATION, b"\x01\x09" + HASH + b"k\0\0\0\0", "is no subscription"),
        (REGISTRATION, b"\x01\x03" + HASH + b"\xff\0\0\0\0", "reads UTF-8"),
        (REGISTRATION, b"\x05\x03" + HASH + b"k\0\0\0\0", "has version 5, and this is version 1; finish the upgrade"),
        (RESPONSE, b"", "b'' is no response of a foreign-key join; nobody but the app itself"),
        (RESPONSE, b"\x00", "is no response"),
        (RESPONSE, b"\x00" + HASH[1:], "is no response"),
        (RESPONSE, b"\x00" + HASH + b"\xff\xfe", "reads UTF-8"),
        (RESPONSE, b"\x07" + HASH, "has version 7, and this is version 0; finish the upgrade"),
    ],
)
def test_bytes_that_no_foreign_key_join_wrote_are_named_with_their_record(config, topic, data, message):
    with pytest.raises(sf.DeserializationError, match=rf"{message}.*topic {topic}, partition 0, offset 0\)"):
        run(foreign(), [(topic, b"k", data, 0)], config)
    left_out = config.with_(deserialization_handler=sf.LogAndContinueDeserialization())
    assert run(foreign(), [(topic, b"k", data, 0)], left_out) == []


@pytest.mark.parametrize(
    ("topic", "operator"),
    [(REGISTRATION, "fk-subscription-receive"), (RESPONSE, "fk-subscription-response-resolver")],
)
def test_a_record_without_value_in_a_topic_of_a_foreign_key_join_is_named(config, topic, operator):
    with pytest.raises(
        sf.ProcessingError, match=rf"a record without value is nothing that .*\(operator {operator}; topic {topic},"
    ):
        run(foreign(), [(topic, b"k", None, 0)], config)


class Noting(sf.ProcessingHandler):
    def __init__(self):
        self.noted = []

    def handle(self, context, record, error):
        self.noted.append((context.operator, context.topic, context.offset, str(error)))
        return sf.HandlerResponse.CONTINUE


def test_a_held_record_that_cannot_be_joined_is_left_out_once_and_those_after_it_go_on(config):
    def picky(value, row):
        return boom() if value == "bad" else value + row

    handler = Noting()
    records = [("R", b"k", b"!", 0), ("L", b"k", b"bad", 0), ("L", b"k", b"good", 0), ("L", b"k", b"end", 9)]
    records += [("L", b"k", b"more", 9), ("L", b"k", b"last", 99)]
    results = run(waiting(picky), records, config.with_(processing_handler=handler))
    assert handler.noted == [("held", "L", 0, "boom")]
    assert [r.value for r in results if r.topic == "o"] == [b"good!", b"end!", b"more!"]


def test_the_dead_letter_of_an_update_that_was_held_back_has_the_bytes_of_its_own_record(config):
    config = config.with_(processing_handler="continue", dead_letter_topic="dead")
    records = [("L", b"k", b"1", 0), ("L", b"k", b"2", 1), ("L", b"x", b"3", 9), ("L", b"y", b"4", 99)]
    results = run(suppressed(after=boom), records, config)
    dead = [(r.key, r.value, r.timestamp, dict(r.headers)) for r in results if r.topic == "dead"]
    found = [(*place, headers["__streams.errors.offset"]) for *place, headers in dead]
    assert found == [(b"k", b"2", 1, b"1"), (b"x", b"3", 9, b"2")]


# when the topology is written, built or planned


@pytest.mark.parametrize(
    "build",
    [streams("join"), streams("left_join"), streams("outer_join"), cogrouped(), waiting(), as_of(first)],
)
def test_inputs_with_other_partition_counts_are_refused_when_they_are_planned(build):
    config = sf.StreamsConfig(application_id="app", default_key_serde=TEXT, default_value_serde=TEXT)
    builder = sf.StreamsBuilder(config)
    build(builder)
    topology = builder.build()
    with pytest.raises(sf.TopologyError, match="L has 2, R has 3; .* and a cogroup in all its inputs.*repartition"):
        topology.plan({"L": 2, "R": 3}, config)
    assert topology.plan({"L": 3, "R": 3}, config).sub_topologies[0].tasks == 3


def twice(operator):
    def build(builder):
        left, right = builder.stream("L"), builder.stream("R")
        tables = builder.table("l", store="l"), builder.table("r", store="r")
        for number in "12":
            operator(left, right, *tables, number)

    return build


@pytest.mark.parametrize(
    ("operator", "clash"),
    [
        (lambda s, o, t, u, n: s.join(o, first, window=WINDOW, name="x", with_key=False), "x-this-windowed"),
        (lambda s, o, t, u, n: s.join(t, lambda a, b: a, name="x"), "processor x"),
        (lambda s, o, t, u, n: t.join(u, lambda a, b: a, name="x"), "x-join-this"),
        (lambda s, o, t, u, n: t.join(u, lambda a, b: a, foreign_key=str, name="x"), "x-subscription-registration"),
        (
            lambda s, o, t, u, n: s.group_by_key().cogroup(lambda k, v, a: a).aggregate(str, name="x", store=n),
            "x-cogroup-agg-0",
        ),
        (
            lambda s, o, t, u, n: t.suppress(sf.Suppressed.until_time_limit(1, sf.BufferConfig.unbounded(), name="x")),
            "processor x",
        ),
        (lambda s, o, t, u, n: s.outer_join(o, lambda a, b: a, window=WINDOW, store_name="x"), "name x-.*-join-store"),
    ],
)
def test_one_name_for_two_operators_is_refused_when_the_topology_is_built(operator, clash):
    builder = sf.StreamsBuilder()
    twice(operator)(builder)
    with pytest.raises(sf.TopologyError, match=rf"{clash}.*; give .* name"):
        builder.build()


@pytest.mark.parametrize("method", ["join", "left_join", "outer_join"])
@pytest.mark.parametrize(
    ("joiner", "options", "message"),
    [
        (lambda value: value, {}, r"joiner is called with \(left, right\).*function of 2 argument"),
        (lambda one, other: one, {"with_key": True}, r"joiner is called with \(key, left, right\).*function of 3"),
        (None, {}, "needs a function of .* as joiner, but was given None"),
    ],
)
def test_a_joiner_of_two_streams_that_does_not_fit_is_refused(method, joiner, options, message):
    builder = sf.StreamsBuilder()
    with pytest.raises(sf.OptionError, match=f"{method}.*{message}"):
        getattr(builder.stream("L"), method)(builder.stream("R"), joiner, window=WINDOW, **options)


@pytest.mark.parametrize("method", ["join", "left_join"])
@pytest.mark.parametrize(
    ("other", "options", "message"),
    [
        (lambda b: b.table("T", materialized=history()), {"grace": -1}, "grace of join .* must not be negative"),
        (lambda b: b.table("T", materialized=history()), {"grace": "5s"}, "grace of join .* must be a duration"),
        (
            lambda b: b.global_table("T"),
            {"grace": 5, "key_selector": first},
            "GlobalKTable.* cannot have grace; grace is for a join with a KTable in a versioned store",
        ),
        (lambda b: b.stream("T"), {"grace": 5, "window": WINDOW}, "KStream.* cannot have grace; .* in its JoinWindows"),
        (
            lambda b: b.table("T"),
            {"window": WINDOW},
            "KTable.* cannot have window; window is for a join with a KStream",
        ),
        (lambda b: b.table("T"), {"key_selector": first}, "cannot have key_selector; .* with a GlobalKTable"),
        (lambda b: b.stream("T"), {"window": WINDOW, "with_both_keys": True}, "cannot have with_both_keys"),
    ],
)
def test_an_option_of_another_join_is_refused_with_what_it_is_for(method, other, options, message):
    builder = sf.StreamsBuilder()
    with pytest.raises(sf.OptionError, match=message):
        getattr(builder.stream("L"), method)(other(builder), lambda one, other: one, **options)


@pytest.mark.parametrize("other", [5, None, "R"])
def test_an_outer_join_with_something_else_is_refused(other):
    with pytest.raises(
        sf.OptionError, match=f"outer_join of a KStream needs another KStream, but was given {other!r};"
    ):
        sf.StreamsBuilder().stream("L").outer_join(other, lambda one, two: one, window=WINDOW)
    builder = sf.StreamsBuilder()
    with pytest.raises(sf.OptionError, match=r"was given KTable.*use left_join"):
        builder.stream("L").outer_join(builder.table("T"), lambda one, two: one, window=WINDOW)


# wrappers


class Silent(sf.Processor):
    def process(self, record): ...


class SilentValues(sf.FixedKeyProcessor):
    def process(self, record): ...


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (5, "wrapped by Wrapper, was given 5, which is not a supplier"),
        (None, "was given None, which is not a supplier"),
        (lambda: None, "returned None, which is not a {kind}; a wrapper returns a supplier of the kind"),
        (dict, "returned {{}}, which is not a {kind}"),
        (lambda one: one, "cannot be called without arguments"),
    ],
)
@pytest.mark.parametrize(("own", "kind"), [(Silent, "Processor"), (SilentValues, "FixedKeyProcessor")])
def test_a_wrapper_that_returns_no_supplier_of_processors_is_refused_by_operator(made, message, own, kind):
    with pytest.raises(sf.OptionError, match=f"operator keep.*{message.format(kind=kind)}"):
        wrapped_into(made, own)


@pytest.mark.parametrize(("own", "made"), [(Silent, SilentValues), (SilentValues, Silent)])
def test_a_wrapper_that_returns_the_other_kind_of_processor_is_refused_by_operator(own, made):
    kind = "FixedKeyProcessor" if own is SilentValues else "Processor"
    with pytest.raises(
        sf.OptionError, match=rf"operator keep, wrapped by Wrapper, returned .*, which is not a {kind};"
    ):
        wrapped_into(made, own)


def wrapped_into(made, own):
    class Wrapper(sf.ProcessorWrapper):
        def wrap(self, name, supplier):
            return made

    Wrapper.__qualname__ = "Wrapper"
    builder = sf.StreamsBuilder()
    stream = builder.stream("L")
    (stream.process_values if own is SilentValues else stream.process)(own, name="keep")
    builder.build(sf.StreamsConfig(application_id="app", processor_wrapper=Wrapper()))
