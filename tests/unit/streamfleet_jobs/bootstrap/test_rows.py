from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.audit_lab.bootstrap_specs import WHOLE, spec

from streamfleet.partitioner import partition_for
from streamfleet_jobs.bootstrap.rows import encoded, logged_value, store_value
from streamfleet_jobs.bootstrap.verification import (
    check_equal,
    check_placement,
    digest_of_records,
    from_detail,
    to_detail,
)
from streamfleet_jobs.errors import RefusedError

RECORDS = st.lists(st.tuples(st.binary(max_size=8), st.binary(max_size=8), st.integers(-(2**62), 2**62)), max_size=20)


def batch(keys, results, times):
    return pa.record_batch({"key": keys, "timestamp": pa.array(times, pa.int64()), "f0": results})


def test_rows_are_what_the_engines_serdes_write_in_the_partition_of_their_key():
    rows = encoded(batch(["anna", "bert"], pa.array([Decimal(3), Decimal(4)]), [10, 20]), spec()).to_pylist()
    assert rows == [
        {"partition": partition_for(key, 2), "key": key, "value": count.to_bytes(8, "big"), "timestamp": at}
        for key, count, at in ((b"anna", 3, 10), (b"bert", 4, 20))
    ]


def test_fields_become_an_object_in_their_order():
    fields = {"fields": {"z": {"function": "count"}, "a": {"function": "last", "column": "c"}}}
    wanted = spec(store=WHOLE["store"] | {"value_serde": "json"}, value=fields)
    both = pa.record_batch({"key": ["k"], "timestamp": [1], "f0": [2], "f1": ["x"]})
    assert encoded(both, wanted).column("value").to_pylist() == [b'{"z":2,"a":"x"}']


def test_a_sum_that_the_stores_serde_cannot_hold_is_refused():
    with pytest.raises(RefusedError, match=r"long\(\) cannot hold"):
        encoded(batch(["anna"], pa.array([Decimal(2**70)]), [1]), spec())


@given(st.binary(), st.integers(-(2**63), 2**63 - 1))
def test_a_row_of_the_store_is_its_timestamp_and_its_value(value, timestamp):
    assert logged_value(store_value(value, timestamp)) == (value, timestamp)


@given(RECORDS, st.randoms())
def test_a_digest_knows_no_order_and_survives_json(records, random):
    shuffled = random.sample(records, len(records))
    digest = digest_of_records(records)
    assert digest_of_records(shuffled) == digest == from_detail(to_detail(digest))


def test_what_differs_is_refused():
    one, other = (digest_of_records([(b"k", value, 1)]) for value in (b"v", b"w"))
    check_equal("table files", 0, one, one)
    with pytest.raises(RefusedError, match="table files of partition 3 differ from what was computed"):
        check_equal("table files", 3, one, other)


def test_a_key_in_the_wrong_partition_is_refused():
    home = partition_for(b"k", 2)
    assert list(check_placement(spec(), home, [(b"k", b"v", 1)])) == [(b"k", b"v", 1)]
    with pytest.raises(RefusedError, match=f"belongs into {home}"):
        list(check_placement(spec(), 1 - home, [(b"k", b"v", 1)]))
