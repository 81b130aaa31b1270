"""One contract, two engines; then what only a database on disk can do wrong."""

import os
import resource
from contextlib import contextmanager

import pytest

from streamfleet.errors import DiskFullError, StateStoreError, StoreDamagedError, StoreUnavailableError
from streamfleet.state import rocksdb_engine
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


def test_who_keeps_the_error_of_a_damaged_scan_does_not_keep_the_database_locked(tmp_path):
    path = tmp_path / "app" / "task"
    rows = [(b"%06d" % number, bytes(100)) for number in range(5000)]
    engine = RocksDBEngine(path)
    engine.write(rows, [], [])
    engine.close()
    engine = RocksDBEngine(path)
    for table in path.glob("*.sst"):
        table.write_bytes(bytes(table.stat().st_size))
    with pytest.raises(StoreDamagedError) as kept:
        list(engine.scan(b"", None))
    engine.close()
    for table in path.glob("*"):
        table.unlink()
    RocksDBEngine(path).close()
    assert kept.value.__traceback__ is not None


def test_a_damaged_database_is_refused_with_advice(tmp_path):
    RocksDBEngine(tmp_path / "db").close()
    (tmp_path / "db" / "CURRENT").write_text("nonsense\n")
    with pytest.raises(StateStoreError, match=r"damaged.*restored from the changelog"):
        RocksDBEngine(tmp_path / "db")


def test_a_path_that_cannot_be_a_database_is_refused(tmp_path):
    (tmp_path / "db").write_text("a file")
    with pytest.raises(StateStoreError, match="cannot open the database at"):
        RocksDBEngine(tmp_path / "db")


@contextmanager
def small_files(size_bytes):
    """No file can grow beyond that: what stands for a full disk where nobody may mount one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_database_on_a_full_disk_says_so_reads_on_and_is_whole_when_it_is_opened_again(tmp_path):
    path = tmp_path / "app" / "task"
    engine = RocksDBEngine(path, RocksDBOptions(memtable_bytes=2**18))
    written = [(b"%06d" % n, b"v" * 100) for n in range(100)]
    engine.write(written, [], [])
    engine.flush()
    with small_files(50_000):
        with pytest.raises(DiskFullError, match="app/task.*free some disk space") as caught:
            for n in range(10_000):
                engine.write([(b"%06d" % n, os.urandom(1000))], [], [])
        assert caught.value.directory == path and str(tmp_path) not in str(caught.value)
        assert engine.get(b"000000") is not None
        with pytest.raises(DiskFullError):
            engine.close()
    engine = RocksDBEngine(path)
    assert list(engine.scan(b"", None)) == written
    engine.close()


@pytest.mark.parametrize(
    ("words", "kind", "advice"),
    [
        ("IO error: While appending to file: {path}/000009.sst: No space left on device", DiskFullError, "inodes"),
        ("IO error: While mkdir if missing: {path}: Disk quota exceeded", DiskFullError, "free some disk space"),
        ("IO error: While open a file for appending: {path}/LOG: Read-only file system", StateStoreError, "writable"),
        ("IO error: While lock file: {path}/LOCK: Permission denied", StateStoreError, "writable"),
        ("Corruption: block checksum mismatch in {path}/000009.sst", StoreDamagedError, "damaged"),
    ],
)
def test_what_the_database_says_becomes_an_error_by_what_to_do_next(tmp_path, monkeypatch, words, kind, advice):
    """Read-only disks and those without inodes cannot be had without rights, so here only their words are."""
    path = tmp_path / "app" / "task"

    def refuse(name, options):
        raise RuntimeError(words.format(path=name))

    monkeypatch.setattr(rocksdb_engine.rocksdict, "Rdict", refuse)
    with pytest.raises(StateStoreError, match=r"^cannot open the database at app/task: ") as caught:
        RocksDBEngine(path)
    assert type(caught.value) is kind and advice in caught.value.hint
    assert str(tmp_path) not in str(caught.value)
