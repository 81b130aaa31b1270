"""Generated names and inherited serdes of tables that were given options but no store name."""

import pytest

import streamfleet as sf

LONG = sf.serdes.long()


class Length(sf.ValueTransformer):
    def transform(self, key, value):
        return value and len(value)


def described(build):
    builder = sf.StreamsBuilder()
    build(builder)
    return str(builder.build().describe())


@pytest.mark.parametrize(
    ("options", "number"),
    [(None, 3), (sf.Materialized(value_serde=LONG), 3)],
    ids=["without options", "with options"],
)
def test_transform_values_never_uses_up_the_number_of_a_store(options, number):
    def build(builder):
        builder.table("in").transform_values(Length, materialized=options)

    assert f"KTABLE-TRANSFORMVALUES-{number:010d}" in described(build)


@pytest.mark.parametrize(
    ("options", "number"),
    [(None, 3), (sf.Materialized(value_serde=LONG), 4)],
    ids=["without options", "with options"],
)
def test_options_without_a_store_name_use_up_a_number_in_map_values(options, number):
    def build(builder):
        builder.table("in").map_values(len, materialized=options)

    assert f"KTABLE-MAPVALUES-{number:010d}" in described(build)


@pytest.mark.parametrize(
    ("windows", "number"), [(sf.SlidingWindows(10, 0), 2), (sf.TimeWindows(10, 0), 3), (sf.SessionWindows(10, 0), 3)]
)
def test_a_count_with_options_uses_up_a_number_except_by_sliding_windows(windows, number):
    def build(builder):
        builder.stream("in").group_by_key().windowed_by(windows).count(materialized=sf.Materialized(value_serde=LONG))

    assert f"KSTREAM-AGGREGATE-{number:010d}" in described(build)


def test_serdes_of_options_hold_downstream_though_the_table_is_not_kept(run):
    def build(builder):
        table = builder.table("in").map_values(len, materialized=sf.Materialized(value_serde=LONG))
        table.to_stream().to("out")

    results, stores, _ = run(build, [("in", "a", "four", 1)])
    assert [(record.key, record.value) for record in results] == [(b"a", bytes(7) + b"\x04")]
    assert len(stores) == 0
