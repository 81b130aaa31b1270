import datetime as dt

import pyarrow as pa
import pytest

from streamfleet_jobs.columns.binary import binary_values
from streamfleet_jobs.columns.event_times import milliseconds
from streamfleet_jobs.columns.key_times import key_times

ZURICH = dt.timezone(dt.timedelta(hours=1))


def test_the_time_of_a_key_is_read_from_behind():
    window = b"anna" + (60_000).to_bytes(8, "big") + bytes(4)
    session = b"" + (7).to_bytes(8, "big") + (3).to_bytes(8, "big")
    assert key_times(binary_values(pa.array([window, b"short", b""], pa.binary())), 12).tolist() == [60_000, -1, -1]
    assert key_times(binary_values(pa.array([session], pa.binary())), 16).tolist() == [7]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_time_without_zone_is_utc_wherever_the_job_runs(unit, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    column = pa.array([0, 1, None], pa.timestamp(unit))
    step = {"s": 1000, "ms": 1, "us": 0, "ns": 0}[unit]
    assert milliseconds(column).to_pylist() == [0, step, None]


def test_a_time_with_a_zone_is_the_same_moment():
    column = pa.array([dt.datetime(1970, 1, 1, 1, tzinfo=ZURICH)], pa.timestamp("us", "Europe/Zurich"))
    assert milliseconds(column).to_pylist() == [0]


def test_every_millisecond_stays_what_it_is_and_finer_parts_go_to_the_past():
    exact = list(range(1_700_000_000_000, 1_700_000_002_000))
    assert milliseconds(pa.array([at * 1000 for at in exact], pa.timestamp("us"))).to_pylist() == exact
    assert milliseconds(pa.array([-1, 1999], pa.timestamp("us"))).to_pylist() == [-1, 1]


def test_integers_are_milliseconds():
    assert milliseconds(pa.array([5, 7], pa.int32())).to_pylist() == [5, 7]
