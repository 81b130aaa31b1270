"""Rows that a former database has and the present one has not, against sets."""

from hypothesis import given
from hypothesis import strategies as st

from streamfleet.state.lost_rows import count_lost_rows
from streamfleet.state.memory_engine import MemoryEngine

KEYS = st.frozensets(st.binary(max_size=3), max_size=20)


def engine_with(prefix, keys):
    engine = MemoryEngine()
    neighbours = [(bytes((prefix[0] + step,)) + b"x", b"") for step in (-1, 1)]
    engine.write([(prefix + key, b"v") for key in keys] + neighbours, [], [])
    return engine


@given(KEYS, KEYS)
def test_the_count_is_that_of_the_difference_whatever_the_prefixes_are(former, now):
    counted = count_lost_rows(engine_with(b"\x01", former), b"\x01", engine_with(b"\x07", now), b"\x07")
    assert counted == len(former - now)
