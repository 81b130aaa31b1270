"""Stores against changelogs: equal up to the store's own offset, and the newest store has everything."""

import pytest
from tests.ledger.app import LedgerStore
from tests.ledger.state_check import StoreDump, check_dump, check_newest, dump_worker, fold_changelog

from streamfleet.ids import TopicPartition
from streamfleet.records import RawRecord
from streamfleet.state.engine_rows import EngineRows
from streamfleet.state.rocksdb_engine import RocksDBEngine

LOG = TopicPartition("ledger-sum-changelog", 2)


def logged(offset, key, value, timestamp=1):
    return RawRecord(LOG.topic, LOG.partition, offset, timestamp, key, value, ())


def row(value, timestamp=1):
    return timestamp.to_bytes(8, "big") + value


CHANGELOG = [logged(0, b"a", b"1"), logged(1, b"b", b"2"), logged(3, b"a", b"3", 9), logged(4, b"b", None)]


def dump(offset, rows):
    return StoreDump("worker", LedgerStore("sum"), LOG, offset, rows)


@pytest.mark.parametrize(
    ("offset", "rows"),
    [
        (0, {b"a": row(b"1")}),
        (2, {b"a": row(b"1"), b"b": row(b"2")}),
        (4, {b"a": row(b"3", 9)}),
    ],
)
def test_a_store_equals_its_changelog_up_to_its_own_offset(offset, rows):
    assert fold_changelog(CHANGELOG, offset) == rows
    assert check_dump(dump(offset, rows), CHANGELOG) == []


@pytest.mark.parametrize(
    "rows", [{}, {b"a": row(b"3", 9), b"b": row(b"2")}, {b"a": row(b"4", 9)}, {b"a": row(b"3", 8)}]
)
def test_a_missing_a_surplus_and_another_row_are_found(rows):
    assert [anomaly.kind for anomaly in check_dump(dump(4, rows), CHANGELOG)] == ["store differs from changelog"]


def test_rows_without_timestamp_are_compared_without_it():
    plain = LedgerStore("sum", is_timestamped=False)
    assert check_dump(StoreDump("worker", plain, LOG, 1, {b"a": b"1", b"b": b"2"}), CHANGELOG) == []
    assert check_dump(StoreDump("worker", plain, LOG, 1, {b"a": row(b"1"), b"b": b"2"}), CHANGELOG) != []


def windowed(start):
    return b"k" + start.to_bytes(8, "big") + bytes(4)


@pytest.mark.parametrize(("starts", "is_right"), [((10, 95, 100), True), ((95, 100), True), ((10, 100), False)])
def test_rows_past_their_retention_may_be_there_or_not_others_must(starts, is_right):
    log = [logged(n, windowed(start), b"1") for n, start in enumerate((10, 95, 100))]
    store = LedgerStore("sum", "window", retention_ms=10)
    found = check_dump(StoreDump("worker", store, LOG, 2, {windowed(start): row(b"1") for start in starts}), log)
    assert (found == []) is is_right


def test_the_newest_store_must_have_the_last_record():
    assert check_newest([dump(1, {}), dump(4, {})], {LOG: CHANGELOG}) == []
    assert [a.kind for a in check_newest([dump(3, {})], {LOG: CHANGELOG})] == ["store lacks changelog records"]
    assert [a.kind for a in check_newest([], {LOG: CHANGELOG})] == ["store lacks changelog records"]


def test_rows_and_offset_are_read_from_a_workers_database(tmp_path):
    engine = RocksDBEngine(tmp_path / "ledger" / "abc_2")
    rows = EngineRows(engine, "ledger", "abc_2")
    rows.buffer("sum").put(b"a", row(b"3"))
    rows.commit({LOG.topic: 17})
    engine.close()
    [found] = dump_worker("worker-1", tmp_path, "ledger")
    assert (found.changelog, found.offset, found.rows) == (LOG, 17, {b"a": row(b"3")})
