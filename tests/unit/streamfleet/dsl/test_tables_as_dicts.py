"""Table operators against dicts: after any sequence of updates, a table is what the same function of the input dict is."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

values = st.one_of(st.none(), st.text("xyz", min_size=1, max_size=3))
updates = st.lists(
    st.tuples(st.sampled_from(["left", "right"]), st.sampled_from("abcd"), values, st.integers(0, 50)),
    max_size=25,
)
cached = st.sampled_from([0, 10**6])
slow = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def tables_of(sequence):
    tables = {"left": {}, "right": {}}
    for topic, key, value, _ in sequence:
        tables[topic].pop(key, None)
        if value is not None:
            tables[topic][key] = value
    return tables["left"], tables["right"]


def last_values(results):
    newest = {record.key.decode(): record.value for record in results}
    return {key: value.decode() for key, value in newest.items() if value is not None}


@slow
@given(updates, cached)
def test_filter_and_map_values(run, sequence, cache):
    def build(builder):
        table = builder.table("left").filter(lambda k, v: "x" in v).map_values(str.upper, store="mapped")
        table.to_stream().to("out")
        builder.table("right")

    results, stores, _ = run(build, sequence, statestore_cache_max_bytes=cache)
    expected = {k: v.upper() for k, v in tables_of(sequence)[0].items() if "x" in v}
    assert stores["mapped"] == expected
    assert last_values(results) == expected


@slow
@given(updates, cached, st.sampled_from(["join", "left_join", "outer_join"]), st.booleans())
def test_joins(run, sequence, cache, how, stored):
    def build(builder):
        left, right = builder.table("left"), builder.table("right")
        options = {"store": "joined"} if stored else {}
        getattr(left, how)(right, lambda one, other: f"{one}+{other}", **options).to_stream().to("out")

    results, stores, _ = run(build, sequence, statestore_cache_max_bytes=cache)
    left, right = tables_of(sequence)
    keys = {"join": left.keys() & right.keys(), "left_join": left.keys(), "outer_join": left.keys() | right.keys()}[how]
    expected = {key: f"{left.get(key)}+{right.get(key)}" for key in keys}
    assert last_values(results) == expected
    if stored:
        assert stores["joined"] == expected


@slow
@given(updates, cached)
def test_group_by_counts_the_rows_of_each_group(run, sequence, cache):
    def build(builder):
        grouped = builder.table("left").group_by(lambda k, v: (v[0], k), name="by-first-letter")
        grouped.count(store="counts")
        grouped.aggregate(
            str,
            lambda group, key, members: "".join(sorted(members + key)),
            lambda group, key, members: members.replace(key, "", 1),
            store="members",
        )
        builder.table("right")

    _, stores, _ = run(build, sequence, statestore_cache_max_bytes=cache)
    groups = {}
    for key, value in tables_of(sequence)[0].items():
        groups.setdefault(value[0], []).append(key)
    assert {k: n for k, n in stores["counts"].items() if n} == {group: len(keys) for group, keys in groups.items()}
    assert {k: v for k, v in stores["members"].items() if v} == {g: "".join(sorted(keys)) for g, keys in groups.items()}


@slow
@given(updates)
def test_a_table_that_is_read_through_others_equals_its_stored_form(run, sequence):
    """A join reads an unstored table by computing it anew; the result must be the same as with a store."""

    def build(builder, options):
        derived = builder.table("left").map_values(str.upper, **options).filter(lambda k, v: len(v) > 1)
        joined = derived.left_join(builder.table("right"), lambda one, other: f"{one}/{other}")
        joined.outer_join(derived, lambda one, other: f"{one}|{other}", store="out").to_stream().to("out")

    computed = run(lambda builder: build(builder, {}), sequence)
    stored = run(lambda builder: build(builder, {"store": "upper"}), sequence)
    assert computed[1]["out"] == stored[1]["out"]
