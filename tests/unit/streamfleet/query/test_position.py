from hypothesis import given
from hypothesis import strategies as st

from streamfleet.query.position import Position

POSITIONS = st.dictionaries(
    st.sampled_from(["in", "other"]), st.dictionaries(st.integers(0, 2), st.integers(0, 5), max_size=3), max_size=2
).map(Position)


@given(POSITIONS, POSITIONS)
def test_both_are_covered_by_what_they_are_merged_to(one, other):
    merged = one.merged(other)
    for partition in range(3):
        assert merged.covers(one, partition)
        assert merged.covers(other, partition)
    assert merged == other.merged(one) or {t for t, p in merged.offsets.items() if not p}


@given(POSITIONS, POSITIONS, st.integers(0, 2))
def test_a_bound_is_covered_if_no_offset_of_the_partition_is_behind(position, bound, partition):
    behind = [
        topic
        for topic, wanted in bound.offsets.items()
        if partition in wanted and position.offsets.get(topic, {}).get(partition, -1) < wanted[partition]
    ]
    assert position.covers(bound, partition) is not bool(behind)


@given(POSITIONS)
def test_nothing_is_a_bound_that_everybody_meets(position):
    assert all(position.covers(Position(), partition) for partition in range(3))
