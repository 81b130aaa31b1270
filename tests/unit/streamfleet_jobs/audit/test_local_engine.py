import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.audit_lab.logs import LOGS, PARTITIONS, WINDOWED_LOGS, brute_force, land, questions, rows_of

from streamfleet_jobs.audit.engine import Moment
from streamfleet_jobs.audit.local_engine import LocalEngine, in_ranges
from streamfleet_jobs.audit.spec import StoreSpec
from streamfleet_jobs.columns.row_digest import bucket_of, digest_of_rows, row_hash

ENGINE = LocalEngine(None, lambda _: None)
STORE = StoreSpec("s", "t", PARTITIONS)


def landed(tmp_path_factory, log):
    directory = tmp_path_factory.mktemp("log") / "landed"
    rows = rows_of(log)
    land(directory, rows)
    return directory, rows


def test_facts_are_what_counting_one_by_one_gives(tmp_path_factory):
    @settings(max_examples=60)
    @given(st.one_of(LOGS, WINDOWED_LOGS), st.sampled_from([0, 12]), st.sampled_from(["murmur2", "crc32", "fnv1a"]))
    def search(log, suffix, partitioner):
        directory, rows = landed(tmp_path_factory, log)
        asked = questions(rows, suffix, partitioner)
        for number, facts in ENGINE.facts(directory, asked).items():
            expected = brute_force(rows[number], asked[number], number)
            superseded, hot = expected.pop("superseded"), expected.pop("hot_keys")
            assert {name: getattr(facts, name) for name in expected} == expected
            assert [(key.key, key.records) for key in facts.hot_keys] == hot
            assert sum(facts.superseded_bins) == superseded
            assert sum(facts.live_bins) == facts.live_keys
            assert sum(facts.tombstone_bins) == facts.keys - facts.live_keys

    search()


def test_a_digest_as_of_an_offset_is_that_of_a_dict_replayed_to_it(tmp_path_factory):
    @settings(max_examples=50)
    @given(LOGS, st.integers(-1, 100))
    def search(log, until):
        directory, rows = landed(tmp_path_factory, log)
        moments = {number: Moment(until, None) for number in rows}
        for number, digest in ENGINE.digests(directory, STORE, moments).items():
            state = {}
            for _, offset, _, key, value in rows[number]:
                if offset <= until and key is not None:
                    state.pop(key, None) if value is None else state.__setitem__(key, value)
            assert digest == digest_of_rows(state.items())
            some = sorted(digest)[:2]
            named = ENGINE.rows(directory, STORE, number, some, moments[number])
            assert named == {key: row_hash(key, value) for key, value in state.items() if bucket_of(key) in some}

    search()


def test_windows_before_the_oldest_that_the_store_shows_are_left_out(tmp_path):
    window = lambda start: b"k" + start.to_bytes(8, "big") + bytes(4)
    land(tmp_path / "landed", {0: [(0, n, 0, window(start), b"v") for n, start in enumerate((10, 20, 30))]})
    windows = StoreSpec("s", "t", 1, key_format="window")
    rows = ENGINE.rows(tmp_path / "landed", windows, 0, range(256), Moment(9, 20))
    assert set(rows) == {window(20), window(30)}


@given(st.lists(st.integers(0, 30), max_size=20), st.sets(st.integers(0, 30), max_size=6))
def test_offsets_are_found_in_ranges(offsets, borders):
    ordered = sorted(borders)
    ranges = list(zip(ordered[::2], ordered[1::2], strict=False))
    inside = set(itertools.chain.from_iterable(range(a, b + 1) for a, b in ranges))
    assert in_ranges(np.array(offsets, np.int64), ranges).tolist() == [offset in inside for offset in offsets]


def test_tombstones_are_counted_in_ranges_and_gaps_are_found(tmp_path):
    rows = {0: [(0, offset, 0, b"k%d" % offset, None if offset % 2 else b"v") for offset in (0, 1, 2, 5, 7, 8)]}
    land(tmp_path / "landed", rows)
    assert ENGINE.tombstones_in(tmp_path / "landed", {0: [(1, 4), (7, 7)]}) == {0: 2}
    assert ENGINE.last_gaps(tmp_path / "landed") == {0: 7}
