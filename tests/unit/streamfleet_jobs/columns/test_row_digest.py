from hashlib import blake2b

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamfleet_jobs.columns.row_digest import (
    NO_TIMESTAMP,
    bucket_of,
    content_checksum,
    differing_buckets,
    digest_of,
    digest_of_rows,
    row_hash,
    row_hashes,
)

ROWS = st.dictionaries(st.binary(max_size=12), st.binary(max_size=12), max_size=40)


def test_the_hash_is_the_documented_one():
    text = (3).to_bytes(4, "big") + (7).to_bytes(8, "big", signed=True) + b"key" + b"value"
    assert row_hash(b"key", b"value", 7).to_bytes(8, "big", signed=True) == blake2b(text, digest_size=8).digest()
    assert row_hash(b"key", b"value") == row_hash(b"key", b"value", NO_TIMESTAMP)


def test_where_the_key_ends_counts():
    assert row_hash(b"ab", b"c") != row_hash(b"a", b"bc")


def test_tombstones_and_records_without_key_have_no_hash():
    assert row_hashes([b"a", None, b"b"], [None, b"v", b"v"], None) == [None, None, row_hash(b"b", b"v")]


@given(ROWS, st.randoms())
def test_a_digest_does_not_depend_on_order_or_on_how_it_is_computed(rows, random):
    shuffled = list(rows.items())
    random.shuffle(shuffled)
    columns = digest_of(
        np.array([bucket_of(key) for key, _ in shuffled], np.int64),
        np.array([row_hash(key, value) for key, value in shuffled], np.int64),
    )
    assert columns == digest_of_rows(rows.items())
    assert content_checksum(columns) == content_checksum(digest_of_rows(rows.items()))


@given(ROWS, st.data())
def test_one_changed_lost_or_added_row_shows_in_its_bucket_alone(rows, data):
    key = data.draw(st.sampled_from(sorted(rows)) if rows else st.just(b"k"))
    changed = dict(rows)
    if key in rows and data.draw(st.booleans()):
        del changed[key]
    else:
        changed[key] = changed.get(key, b"") + b"!"
    before, after = digest_of_rows(rows.items()), digest_of_rows(changed.items())
    assert differing_buckets(before, after) == [bucket_of(key)]
    assert content_checksum(before) != content_checksum(after)
