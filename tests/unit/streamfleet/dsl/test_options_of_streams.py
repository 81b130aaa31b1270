"""Options of stream operators that other tests do not come by."""

import io

import pytest

import streamfleet as sf

TEXT = sf.serdes.string()


def test_print_writes_label_key_and_value(run):
    written = io.StringIO()
    run(
        lambda builder: builder.stream("in").print(label="seen", file=written),
        [("in", "k", "v", 0), ("in", None, None, 1)],
    )
    assert written.getvalue() == "[seen]: k, v\n[seen]: None, None\n"


def test_print_writes_what_its_mapper_makes_of_key_and_value(run):
    written = io.StringIO()

    def build(builder):
        builder.stream("in").print(label="seen", mapper=lambda key, value: f"{key} is {value}", file=written)

    run(build, [("in", "k", "v", 0)])
    assert written.getvalue() == "[seen]: k is v\n"


def test_a_mapper_of_print_that_does_not_fit_is_refused():
    with pytest.raises(sf.OptionError, match=r"print: the mapper is called with \(key, value\)"):
        sf.StreamsBuilder().stream("in").print(mapper=lambda value: value)


@pytest.mark.parametrize(
    ("method", "expected"),
    [("join", [b"k/p1/v/here"]), ("left_join", [b"k/p1/v/here", b"k/p2/w/None", b"None/None/-/None"])],
)
@pytest.mark.parametrize("execution", ["compiled", "interpreted"])
def test_a_joiner_with_a_global_table_may_take_both_keys(run, execution, method, expected):
    places = {"v": "p1", "w": "p2"}

    def build(builder):
        table = builder.global_table("places", store="places")

        def joined(key, table_key, value, row):
            return f"{key}/{table_key}/{value}/{row}"

        stream = builder.stream("in")
        selector = lambda key, value: places.get(value)
        getattr(stream, method)(table, joined, key_selector=selector, with_both_keys=True).to("out")

    records = [("places", "p1", "here", 0), ("in", "k", "v", 1), ("in", "k", "w", 2), ("in", None, "-", 3)]
    results, _, _ = run(build, records, topology_execution=execution)
    assert [r.value for r in results] == expected


def test_a_joiner_that_does_not_take_both_keys_is_refused():
    builder = sf.StreamsBuilder()
    with pytest.raises(sf.OptionError, match=r"join: the joiner is called with \(key, table_key, left, right\)"):
        builder.stream("in").join(
            builder.global_table("g"), lambda key, left, right: left, key_selector=lambda k, v: k, with_both_keys=True
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"partitioner": lambda key: [0]}, r"the partitioner is called with \(topic, key, value, num_partitions\)"),
        ({"partitioner": 0}, "as partitioner, but was given 0"),
        ({"partitions": "3"}, "partitions must be a whole number, got '3'"),
    ],
)
def test_options_of_repartition_that_do_not_fit_are_refused(options, message):
    with pytest.raises(sf.OptionError, match=f"repartition.*{message}"):
        sf.StreamsBuilder().stream("in").repartition(**options)
