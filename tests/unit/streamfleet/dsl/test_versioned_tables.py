"""Tables with history: joins as of a record's time, and what may not be done with them."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import streamfleet as sf

slow = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
HISTORY = 10**6
updates = st.tuples(st.just("T"), st.sampled_from("ab"), st.sampled_from(["1", "2", None]), st.integers(0, 60))
records = st.tuples(st.just("S"), st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(0, 60))
scripts = st.lists(updates | records, max_size=30)


def versioned(history=HISTORY):
    return sf.Materialized(sf.Stores.versioned_key_value("v", history))


def joined(method, **options):
    def build(builder):
        table = builder.table("T", materialized=versioned())
        getattr(builder.stream("S"), method)(table, lambda value, row: f"{value}+{row}", **options).to("out")

    return build


class Table:
    def __init__(self):
        self.rows = {}

    def put(self, key, value, time):
        """A delete at the very time of the latest version leaves no trace if nothing was valid until then: decision 0014."""
        older = [t for k, t in self.rows if k == key and t < time]
        is_latest = all(t <= time for k, t in self.rows if k == key)
        if value is None and is_latest and self.rows.get((key, time)) and not self.as_of(key, max(older, default=-1)):
            del self.rows[key, time]
        else:
            self.rows[key, time] = value

    def as_of(self, key, time):
        known = [t for k, t in self.rows if k == key and t <= time]
        return self.rows[key, max(known)] if known else None


@slow
@given(scripts)
@pytest.mark.parametrize("method", ["join", "left_join"])
def test_a_record_is_joined_with_what_the_table_held_at_its_time(run, method, script):
    results, _, _ = run(joined(method), script)
    table, expected = Table(), []
    for topic, key, value, time in script:
        if topic == "T":
            table.put(key, value, time)
        else:
            row = table.as_of(key, time)
            if row is not None or method == "left_join":
                expected.append((key, f"{value}+{row}", time))
    assert [(r.key.decode(), r.value.decode(), r.timestamp) for r in results] == expected


@slow
@given(scripts, st.integers(0, 20))
def test_with_grace_a_record_waits_for_late_updates(run, script, grace):
    results, _, _ = run(joined("left_join", grace=grace), script)
    table, expected, held, now = Table(), [], [], -1

    def join(key, value, time):
        expected.append((key, f"{value}+{table.as_of(key, time)}", time))

    for order, (topic, key, value, time) in enumerate(script):
        if topic == "T":
            table.put(key, value, time)
        elif time < now - grace:
            join(key, value, time)
        else:
            now = max(now, time)
            held.append((time, key, order, value))
            for entry in sorted(entry for entry in held if entry[0] <= now - grace):
                held.remove(entry)
                join(entry[1], entry[3], entry[0])
    assert [(r.key.decode(), r.value.decode(), r.timestamp) for r in results] == expected


both_sides = st.lists(
    st.tuples(st.sampled_from("TR"), st.sampled_from("ab"), st.sampled_from(["1", "2", None]), st.integers(0, 60)),
    max_size=30,
    unique_by=lambda update: (
        update[0],
        update[1],
        update[3],
    ),  # what a delete at the time of its value leaves: decision 0014
)


@slow
@given(both_sides, st.booleans())
@pytest.mark.parametrize("method", ["join", "left_join", "outer_join"])
def test_tables_with_history_on_both_sides_are_joined_by_their_latest_rows(run, method, script, is_stored):
    def build(builder):
        left = builder.table("T", materialized=versioned())
        right = builder.table("R", materialized=sf.Materialized(sf.Stores.versioned_key_value("w", HISTORY)))
        store = {"store": "joined"} if is_stored else {}
        getattr(left, method)(right, lambda one, other: f"{one}+{other}", **store).to_stream().to("out")

    results, stores, dropped = run(build, script, statestore_cache_max_bytes=0)
    latest, expected, joined, is_late = {"T": {}, "R": {}}, [], {}, 0
    for side, key, value, time in script:
        mine, others = latest[side], latest["R" if side == "T" else "T"]
        before = mine.get(key)
        if before is not None and time < before[1]:
            is_late += 1  # an older version: the latest rows are what they were
            continue
        mine[key] = value, time
        other = others.get(key, (None, 0))
        if other[0] is None and ((side == "R" and method == "left_join") or method == "join"):
            continue
        if other[0] is None and value is None and (before is None or before[0] is None):
            continue
        left, right = (value, other[0]) if side == "T" else (other[0], value)
        is_there = {"join": left and right, "left_join": left, "outer_join": left or right}[method]
        result = f"{left}+{right}" if is_there else None
        joined[key] = result
        expected.append((key, result, time if other[0] is None else max(time, other[1])))
    assert [(r.key.decode(), r.value and r.value.decode(), r.timestamp) for r in results] == expected
    assert dropped == is_late
    if is_stored:
        assert stores["joined"] == {key: value for key, value in joined.items() if value is not None}


def test_a_record_without_key_does_not_wait(run):
    results, _, _ = run(joined("left_join", grace=10), [("S", None, "x", 5)])
    assert [(r.key, r.value) for r in results] == [(None, b"x+None")]


def test_out_of_order_updates_are_left_out_of_joins_and_counted(run):
    def build(builder):
        left = builder.table("T", materialized=versioned())
        right = builder.table("R", store="r")
        left.join(right, lambda one, other: f"{one}+{other}").to_stream().to("out")

    script = [("R", "a", "r", 0), ("T", "a", "2", 20), ("T", "a", "1", 10)]
    results, _, dropped = run(build, script)
    assert [r.value for r in results] == [b"2+r"]
    assert dropped == 1


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            lambda b: b.global_table("g", materialized=versioned()),
            "global table of g cannot be kept in versioned store v",
        ),
        (
            lambda b: b.table("t", materialized=versioned()).suppress(
                sf.Suppressed.until_time_limit(1, sf.BufferConfig.unbounded())
            ),
            "suppress was asked of a versioned table",
        ),
        (
            lambda b: b.stream("s").join(b.table("t", store="t"), lambda one, other: one, grace=5),
            "has a grace period, but its table has no history",
        ),
    ],
)
def test_what_a_versioned_table_is_not_for_is_refused(act, message):
    with pytest.raises(sf.TopologyError, match=message):
        act(sf.StreamsBuilder())


def test_suppressing_what_is_made_of_a_versioned_table_is_refused_when_the_topology_is_built():
    builder = sf.StreamsBuilder()
    table = builder.table("t", materialized=versioned()).map_values(lambda value: value)
    table.suppress(sf.Suppressed.until_time_limit(1, sf.BufferConfig.unbounded()))
    with pytest.raises(sf.TopologyError, match="suppresses a versioned table"):
        builder.build()


def test_a_history_shorter_than_the_grace_is_refused_when_the_topology_is_built():
    builder = sf.StreamsBuilder()
    table = builder.table("t", materialized=versioned(4))
    builder.stream("s").join(table, lambda one, other: one, grace=5)
    with pytest.raises(sf.OptionError, match="waits 5 ms, but versioned store v remembers only 4 ms"):
        builder.build()
