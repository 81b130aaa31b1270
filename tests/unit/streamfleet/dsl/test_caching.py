"""Caching decides how often results are forwarded, never what they end as: on and off give the same tables.

Nothing expires here: what is still readable of a window past its retention does depend on the cache, as in the original.
"""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import streamfleet as sf

inputs = st.lists(
    st.tuples(
        st.just("in"), st.sampled_from(["a", "b", "c", None]), st.sampled_from(["x", "yy", None]), st.integers(0, 90)
    ),
    max_size=30,
)
slow = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
CACHES = (0, 1, 60, 10**7)  # none, too small for one entry, for a few, for all


def newest(results):
    """What results end as. A delete of something that was never forwarded may or may not be forwarded: it changes nothing."""
    table = {(record.topic, record.key): record.value for record in results}
    return {place: value for place, value in table.items() if value is not None}


def app(kind):
    def build(builder):
        stream = builder.stream("in", key_serde=sf.serdes.string(), value_serde=sf.serdes.string())
        counts = stream.group_by_key().count(materialized=sf.Materialized("counts", kind=kind))
        counts.to_stream().to("counts")
        stream.group_by(lambda k, v: v, name="by-value").reduce(lambda a, b: a + b, store="joined-values")
        windowed = stream.group_by_key().windowed_by(sf.TimeWindows(20, 1000, advance=5))
        windowed.count(materialized=sf.Materialized("windowed", kind=kind)).to_stream().to("windowed")
        sessions = stream.group_by_key().windowed_by(sf.SessionWindows(7, 100))
        sessions.reduce(lambda a, b: f"{a}{b}", materialized=sf.Materialized("sessions", kind=kind)).to_stream().to(
            "sessions"
        )
        counts.group_by(lambda k, n: (str(n % 2), n), value_serde=sf.serdes.long()).reduce(
            lambda a, b: a + b, lambda a, b: a - b, store="sums"
        )

    return build


@slow
@given(inputs, st.sampled_from(["rocksdb", "in_memory"]))
def test_every_cache_size_gives_the_same_final_results_and_stores(run, records, kind):
    runs = [run(app(kind), records, statestore_cache_max_bytes=size) for size in CACHES]
    for results, stores, dropped in runs[1:]:
        assert newest(results) == newest(runs[0][0])
        assert stores == runs[0][1]
        assert dropped == runs[0][2]


@slow
@given(inputs)
def test_how_the_changelog_is_written_changes_no_result(run, records):
    each, last = (run(app("rocksdb"), records, changelog_deduplicate=choice) for choice in (False, True))
    assert each == last
