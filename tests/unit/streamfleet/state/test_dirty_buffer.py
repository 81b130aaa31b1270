import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfleet.state import dirty_buffer
from streamfleet.state.dirty_buffer import DirtyBuffer, successor, write_batches
from streamfleet.state.memory_engine import MemoryEngine
from streamfleet.state.rocksdb_engine import RocksDBEngine

PREFIX = b"\x00\x07"
KEYS = st.binary(max_size=3)
OPERATIONS = st.one_of(
    st.tuples(st.just("put"), KEYS, st.binary(max_size=2)),
    st.tuples(st.just("delete"), KEYS),
    st.tuples(st.just("delete_range"), KEYS, KEYS),
    st.tuples(st.just("apply")),
    st.tuples(st.just("scan"), KEYS, st.none() | KEYS, st.booleans()),
    st.tuples(st.just("get"), KEYS),
)


class Model:
    """What a buffer should hold, as a dict."""

    def __init__(self):
        self.rows = {}
        self.committed = {}

    def put(self, key, value):
        self.rows[key] = value

    def delete(self, key):
        self.rows.pop(key, None)

    def delete_range(self, start, end):
        self.rows = {key: value for key, value in self.rows.items() if not start <= key < end}

    def apply(self):
        self.committed = dict(self.rows)

    def scan(self, start, end, reverse):
        chosen = [row for row in self.rows.items() if row[0] >= start and (end is None or row[0] < end)]
        return sorted(chosen, reverse=reverse)

    def get(self, key):
        return self.rows.get(key)


def play(engine, operations):
    buffer, model = DirtyBuffer(engine, PREFIX), Model()
    for name, *arguments in operations:
        if name == "scan":
            start, end, reverse = arguments
            assert list(buffer.scan(start, end, reverse=reverse)) == model.scan(start, end, reverse)
        else:
            assert getattr(buffer, name)(*arguments) == getattr(model, name)(*arguments)
    assert list(buffer.scan(b"", None)) == model.scan(b"", None, reverse=False)
    buffer.discard()
    assert list(buffer.scan(b"", None)) == sorted(model.committed.items())
    assert buffer.size_bytes == 0


def neighbours(engine):
    """Rows of other stores, which must never show."""
    engine.write([(b"\x00\x06\xff", b"n"), (b"\x00\x08", b"n"), (b"\xff\xff", b"n")], [], [])
    return engine


@given(st.lists(OPERATIONS, max_size=40))
def test_buffer_over_memory_is_a_sorted_dict(operations):
    play(neighbours(MemoryEngine()), operations)


@settings(max_examples=40, deadline=None)
@given(st.lists(OPERATIONS, max_size=40))
def test_buffer_over_rocksdb_is_a_sorted_dict(operations):
    with tempfile.TemporaryDirectory() as directory:
        engine = RocksDBEngine(Path(directory) / "db")
        play(neighbours(engine), operations)
        engine.close()


def test_engine_does_not_see_changes_before_they_are_applied():
    engine = MemoryEngine()
    buffer = DirtyBuffer(engine, PREFIX)
    buffer.put(b"a", b"1")
    assert engine.get(PREFIX + b"a") is None
    buffer.apply()
    assert engine.get(PREFIX + b"a") == b"1"
    assert list(buffer.changes()) == []


def test_changes_come_in_the_order_of_the_last_change():
    buffer = DirtyBuffer(MemoryEngine(), PREFIX)
    for key in (b"c", b"a", b"b"):
        buffer.put(key, b"1")
    buffer.put(b"c", b"2")
    buffer.delete(b"a")
    assert list(buffer.changes()) == [(b"b", b"1"), (b"c", b"2"), (b"a", None)]


def test_writing_while_scanning_is_safe_and_not_seen():
    buffer = DirtyBuffer(MemoryEngine(), PREFIX)
    for n in range(10):
        buffer.put(b"%d" % n, b"")
    seen = []
    for key, _ in buffer.scan(b"", None):
        seen.append(key)
        buffer.delete(key)
        buffer.put(b"later" + key, b"")
    assert seen == [b"%d" % n for n in range(10)]


def test_size_counts_what_is_held():
    buffer = DirtyBuffer(MemoryEngine(), PREFIX)
    buffer.put(b"key", b"12345")
    first = buffer.size_bytes
    buffer.put(b"key", b"1")
    assert buffer.size_bytes == first - 4
    buffer.delete_range(b"a", b"z")
    assert buffer.size_bytes == 0


class RecordingEngine(MemoryEngine):
    def __init__(self):
        super().__init__()
        self.batches = []

    def write(self, puts, deletes, range_deletes):
        batch = (list(puts), list(deletes), list(range_deletes))
        self.batches.append(batch)
        super().write(*batch)


def test_one_commit_is_one_batch_of_all_buffers():
    engine = RecordingEngine()
    one, other = DirtyBuffer(engine, b"\x00\x01"), DirtyBuffer(engine, b"\x00\x02")
    one.put(b"a", b"1")
    other.delete(b"b")
    other.delete_range(b"x", b"y")
    write_batches(engine, [one, other], [(b"\xff\xffo", b"offset")])
    assert engine.batches == [
        (
            [(b"\x00\x01a", b"1"), (b"\xff\xffo", b"offset")],
            [b"\x00\x02b"],
            [(b"\x00\x02x", b"\x00\x02y")],
        )
    ]


def test_a_large_commit_is_cut_and_offsets_are_in_the_last_part(monkeypatch):
    monkeypatch.setattr(dirty_buffer, "MAX_BATCH_BYTES", 100)
    engine = RecordingEngine()
    buffer = DirtyBuffer(engine, PREFIX)
    buffer.delete_range(b"a", b"b")
    for n in range(20):
        buffer.put(b"%02d" % n, b"0123456789")
    write_batches(engine, [buffer], [(b"\xff\xffo", b"offset")])
    assert len(engine.batches) > 2
    assert all(sum(len(k) + len(v) for k, v in puts) <= 117 for puts, _, _ in engine.batches)
    assert [len(ranges) for _, _, ranges in engine.batches] == [1] + [0] * (len(engine.batches) - 1)
    assert [any(k == b"\xff\xffo" for k, _ in puts) for puts, _, _ in engine.batches].index(True) == len(
        engine.batches
    ) - 1
    assert len(list(engine.scan(PREFIX, successor(PREFIX)))) == 20


def test_nothing_changed_writes_nothing():
    engine = RecordingEngine()
    write_batches(engine, [DirtyBuffer(engine, PREFIX)])
    assert engine.batches == []


@pytest.mark.parametrize(
    ("prefix", "after"), [(b"a", b"b"), (b"a\xff", b"b"), (b"\x00\x07", b"\x00\x08"), (b"\xff\xff", None), (b"", None)]
)
def test_successor_is_the_first_key_behind_a_prefix(prefix, after):
    assert successor(prefix) == after
