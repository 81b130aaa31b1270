"""Windowed aggregations against the plainest model: for every window, look at every record.

Grace is larger than any disorder in the data, so that nothing is late and the model needs no notion of time.
"""

from collections import defaultdict

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import streamfleet as sf

FOREVER = 10**9
records = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 120)), min_size=1, max_size=25)
kinds = st.sampled_from(["rocksdb", "in_memory"])
slow = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def piped(pairs):
    return [("in", key, str(index), timestamp) for index, (key, timestamp) in enumerate(pairs)]


def count_by(windows, kind):
    def build(builder):
        grouped = builder.stream("in").group_by_key().windowed_by(windows)
        grouped.count(materialized=sf.Materialized("counts", kind=kind))

    return build


def as_bounds(rows):
    return {(key.key, key.window.start, key.window.end): count for key, count in rows.items()}


@slow
@given(records, st.integers(1, 40), st.data(), kinds)
def test_hopping_windows_hold_the_records_between_their_bounds(run, pairs, size, data, kind):
    advance = data.draw(st.integers(1, size))
    _, stores, dropped = run(count_by(sf.TimeWindows(size, FOREVER, advance), kind), piped(pairs))
    expected = defaultdict(int)
    for key, timestamp in pairs:
        for start in range(0, timestamp + 1, advance):
            if start <= timestamp < start + size:
                expected[key, start, start + size] += 1
    assert as_bounds(stores["counts"]) == expected
    assert dropped == 0


@slow
@given(records, st.integers(1, 40), kinds)
def test_sliding_windows_are_all_windows_that_begin_or_end_at_a_record(run, pairs, difference, kind):
    _, stores, _ = run(count_by(sf.SlidingWindows(difference, FOREVER), kind), piped(pairs))
    expected = {}
    for key, timestamp in pairs:
        times = [t for k, t in pairs if k == key]
        # Windows before 0 do not exist: early records share [0, difference].
        ending_here, after_here = max(0, timestamp - difference), timestamp + 1
        for start in (ending_here, after_here):
            inside = sum(start <= t <= start + difference for t in times)
            if inside:
                expected[key, start, start + difference] = inside
    assert as_bounds(stores["counts"]) == expected


@slow
@given(records, st.integers(0, 20), kinds)
def test_sessions_are_the_runs_of_records_within_the_gap(run, pairs, gap, kind):
    _, stores, _ = run(count_by(sf.SessionWindows(gap, FOREVER), kind), piped(pairs))
    expected = {}
    for key in {key for key, _ in pairs}:
        times = sorted(t for k, t in pairs if k == key)
        session = [times[0]]
        for time in [*times[1:], None]:
            if time is not None and time - session[-1] <= gap:
                session.append(time)
                continue
            expected[key, session[0], session[-1]] = len(session)
            session = [time]
    assert as_bounds(stores["counts"]) == expected


@slow
@given(records, st.integers(1, 30), st.integers(0, 30), kinds, st.sampled_from([0, 10**6]))
def test_emitting_on_close_gives_each_closed_window_once_with_its_final_count(run, pairs, size, grace, kind, cache):
    def build(builder):
        windowed = (
            builder.stream("in").group_by_key(key_serde=sf.serdes.string()).windowed_by(sf.TimeWindows(size, grace))
        )
        kept = sf.Materialized("c", kind=kind, retention=None if kind == "in_memory" else FOREVER)
        final = windowed.emit_strategy(sf.EmitStrategy.ON_WINDOW_CLOSE).count(materialized=kept)
        final.to_stream().to("out", value_serde=sf.serdes.long())

    results, _, _ = run(build, piped(pairs), statestore_cache_max_bytes=cache)
    serde = sf.serdes.windowed(sf.serdes.string(), size)
    emitted = [
        (key.key, key.window.start, int.from_bytes(record.value, "big"))
        for record in results
        for key in [serde.deserialize("out", record.key)]
    ]
    expected, stream_time = defaultdict(int), -1
    for key, timestamp in pairs:
        stream_time = max(stream_time, timestamp)
        start = timestamp // size * size
        if start + size > stream_time - grace:
            expected[key, start] += 1
    closed = {(key, start, n) for (key, start), n in expected.items() if start + size <= stream_time - grace}
    assert len(emitted) == len(set(emitted))
    assert set(emitted) == closed
