"""What the local engine aggregates at once, the engine computes record by record."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.audit_lab.bootstrap_specs import WHOLE, spec

from streamfleet_jobs.bootstrap.local_engine import LocalEngine
from streamfleet_jobs.bootstrap.recomputation import check_sample, choose_sample
from streamfleet_jobs.errors import RefusedError

FIELDS = {
    "count": {"function": "count"},
    "sum": {"function": "sum", "column": "cents"},
    "least": {"function": "min", "column": "cents"},
    "most": {"function": "max", "column": "cents"},
    "last": {"function": "last", "column": "name"},
}


def asked(tmp_path, times, **changes):
    """Three keys, in an order that is not that of the offsets; times as the table has them."""
    rows = 60
    table = pa.table(
        {
            "k": [f"k{n % 3}" for n in range(rows)],
            "p": [n % 2 for n in range(rows)],
            "o": [n // 2 for n in range(rows)],
            "t": times(rows),
            "cents": [n * 7 % 11 for n in range(rows)],
            "name": [f"name {n}" for n in range(rows)],
            "price": [0.1 * n for n in range(rows)],
        }
    )
    pq.write_table(table.take(pa.array(sorted(range(rows), key=lambda n: n * 37 % rows))), tmp_path / "table.parquet")
    store = WHOLE["store"] | {"value_serde": "json"}
    source = WHOLE["source"] | {"parquet": str(tmp_path / "table.parquet")}
    return spec(**{"store": store, "source": source, "value": {"fields": FIELDS}} | changes)


def millis(rows):
    return [1_700_000_000_001 + n * 13 % 29 for n in range(rows)]


def instants(rows):
    return pa.array([at * 1000 + 999 for at in millis(rows)], pa.timestamp("us"))


@pytest.mark.parametrize("times", [millis, instants])
@pytest.mark.parametrize("timestamp", ["max", "last"])
def test_all_functions_agree_with_the_engine(tmp_path, monkeypatch, times, timestamp):
    monkeypatch.setenv("TZ", "America/New_York")
    wanted = asked(tmp_path, times, value={"fields": FIELDS, "timestamp": timestamp})
    LocalEngine(wanted).compute(tmp_path / "computed")
    sample = choose_sample(wanted, tmp_path / "computed", {0: 3, 1: 3})
    assert len(sample) == 3
    assert check_sample(wanted, sample) == 60


def test_a_row_that_the_engine_would_not_have_is_refused(tmp_path):
    wanted = asked(tmp_path, millis)
    LocalEngine(wanted).compute(tmp_path / "computed")
    key, (value, at) = next(iter(choose_sample(wanted, tmp_path / "computed", {0: 3, 1: 3}).items()))
    with pytest.raises(RefusedError, match="do not publish"):
        check_sample(wanted, {key: (value, at + 1)})


def test_functions_whose_result_depends_on_the_order_of_the_work_are_refused(tmp_path):
    floats = {"of": {"function": "sum", "column": "price"}}
    wanted = asked(tmp_path, millis, value=floats, store=WHOLE["store"])
    with pytest.raises(RefusedError, match="sum of column price, which is double, depends on the order"):
        LocalEngine(wanted).compute(tmp_path / "computed")


def test_facts_of_the_table_are_counted(tmp_path):
    found = LocalEngine(asked(tmp_path, millis)).facts()
    assert {p: (f.rows, f.distinct_offsets, f.first, f.last) for p, f in found.partitions.items()} == {
        0: (30, 30, 0, 29),
        1: (30, 30, 0, 29),
    }
    assert found.partitions[0].stream_time == max(millis(60)[::2])
    assert not any(found.nulls.values())
