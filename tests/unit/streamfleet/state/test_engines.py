"""One contract, two engines; then what only a database on disk can do wrong."""

import pytest

from streamfleet.errors import StateStoreError, StoreUnavailableError
from streamfleet.state.memory_engine import MemoryEngine
from streamfleet.state.rocksdb_engine import MAX_UNFLUSHED_RANGE_DELETES, RocksDBEngine, RocksDBMemory, RocksDBOptions


@pytest.fixture(params=["in_memory", "rocksdb"])
def engine(request, tmp_path):
    engine = MemoryEngine() if request.param == "in_memory" else RocksDBEngine(tmp_path / "db")
    yield engine
    engine.close()


def keys(rows):
    return [key for key, _ in rows]


def test_rows_are_found_until_they_are_deleted(engine):
    engine.write([(b"a", b"1"), (b"b", b"")], [], [])
    assert (engine.get(b"a"), engine.get(b"b"), engine.get(b"c")) == (b"1", b"", None)
    engine.write([], [b"a", b"never there"], [])
    assert engine.get(b"a") is None


def test_scan_includes_the_start_and_excludes_the_end(engine):
    engine.write([(b"%d" % n, b"v") for n in range(6)], [], [])
    assert keys(engine.scan(b"1", b"4")) == [b"1", b"2", b"3"]
    assert keys(engine.scan(b"1", b"4", reverse=True)) == [b"3", b"2", b"1"]
    assert keys(engine.scan(b"4", None)) == [b"4", b"5"]
    assert keys(engine.scan(b"4", None, reverse=True)) == [b"5", b"4"]
    assert keys(engine.scan(b"", b"\x00", reverse=True)) == []


def test_keys_order_as_unsigned_bytes(engine):
    engine.write([(b"\xff", b""), (b"\x00", b""), (b"\x7f", b""), (b"\x80", b""), (b"\x7f\x00", b"")], [], [])
    assert keys(engine.scan(b"", None)) == [b"\x00", b"\x7f", b"\x7f\x00", b"\x80", b"\xff"]


def test_a_batch_deletes_ranges_before_it_puts(engine):
    engine.write([(b"a", b"1"), (b"b", b"1"), (b"c", b"1")], [], [])
    engine.write([(b"b", b"2")], [], [(b"a", b"c")])
    assert list(engine.scan(b"", None)) == [(b"b", b"2"), (b"c", b"1")]


def test_a_scan_goes_on_while_rows_are_written(engine):
    engine.write([(b"%04d" % n, b"v") for n in range(1000)], [], [])
    seen = []
    for key, _ in engine.scan(b"", None):
        seen.append(key)
        engine.write([], [key], [])
    assert len(seen) == 1000
    assert list(engine.scan(b"", None)) == []


def test_long_scans_are_complete_in_both_directions(engine):
    rows = [(b"%04d" % n, b"v") for n in range(1000)]
    engine.write(rows, [], [])
    assert list(engine.scan(b"", None)) == rows
    assert list(engine.scan(b"", None, reverse=True)) == rows[::-1]


def test_rocksdb_rows_survive_closing(tmp_path):
    engine = RocksDBEngine(tmp_path / "db", RocksDBOptions(memory=RocksDBMemory(2**20, 2**20)))
    engine.write([(b"a", b"1"), (b"b", b"1")], [], [])
    engine.flush()
    engine.write([(b"c", b"1")], [], [(b"a", b"b")])
    engine.close()
    engine = RocksDBEngine(tmp_path / "db")
    assert keys(engine.scan(b"", None)) == [b"b", b"c"]
    engine.close()


def test_many_range_deletes_do_not_pile_up(tmp_path):
    engine = RocksDBEngine(tmp_path / "db")
    for n in range(MAX_UNFLUSHED_RANGE_DELETES + 2):
        engine.write([], [], [(b"%04d" % n, b"%04d" % (n + 1))])
    assert engine._unflushed_range_deletes <= 1
    engine.close()


def test_closing_ends_open_scans_and_frees_the_lock(tmp_path):
    engine = RocksDBEngine(tmp_path / "db")
    engine.write([(b"a", b"1"), (b"b", b"1")], [], [])
    scan = engine.scan(b"", None)
    next(scan)
    engine.close()
    RocksDBEngine(tmp_path / "db").close()
    assert list(scan) == []


def test_a_closed_database_says_so(tmp_path):
    engine = RocksDBEngine(tmp_path / "db")
    engine.close()
    for ask in (
        lambda: engine.get(b"a"),
        lambda: list(engine.scan(b"", None)),
        lambda: engine.write([(b"a", b"")], [], []),
        engine.flush,
    ):
        with pytest.raises(StoreUnavailableError, match="closed"):
            ask()


def test_a_database_in_use_is_refused_with_advice(tmp_path):
    engine = RocksDBEngine(tmp_path / "db")
    with pytest.raises(StateStoreError, match=r"in use by another process.*state\.dir"):
        RocksDBEngine(tmp_path / "db")
    engine.close()


def test_a_damaged_database_is_refused_with_advice(tmp_path):
    RocksDBEngine(tmp_path / "db").close()
    (tmp_path / "db" / "CURRENT").write_text("nonsense\n")
    with pytest.raises(StateStoreError, match=r"damaged.*restored from the changelog"):
        RocksDBEngine(tmp_path / "db")


def test_a_path_that_cannot_be_a_database_is_refused(tmp_path):
    (tmp_path / "db").write_text("a file")
    with pytest.raises(StateStoreError, match="cannot open the database at"):
        RocksDBEngine(tmp_path / "db")
