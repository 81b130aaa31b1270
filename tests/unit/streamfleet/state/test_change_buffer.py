"""ChangeBuffer against a dict: one update per key, ordered by the time of the first, through commits, aborts and restores."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfleet import serdes
from streamfleet.durations import LONG_MAX
from streamfleet.errors import StateStoreError
from streamfleet.records import Change, RecordContext
from streamfleet.state.change_buffer import ChangeBufferBuilder

KEYS = ["a", "ab", "b"]
VALUES = ["", "x", "yy", None]
puts = st.tuples(
    st.just("put"), st.sampled_from(KEYS), st.sampled_from(VALUES), st.sampled_from(VALUES), st.integers(0, 20)
)
evictions = st.tuples(st.just("evict"), st.integers(0, 25))
turns = st.tuples(st.sampled_from(["flush", "commit", "move", "discard", "restore"]))
operations = st.lists(st.one_of(puts, puts, evictions, turns), min_size=8, max_size=40)


def held_back(**options):
    return ChangeBufferBuilder(name="s", key_serde=serdes.string(), value_serde=serdes.string(), **options)


def context(time, offset=0):
    return RecordContext("in", 2, offset, time, headers=(("h", b"v"), ("null", None)))


def put(store, key, old, new, time):
    store.put(time, key, Change(new, old), context(time))


def evicted(store, until):
    found = []
    store.evict_while(lambda: store.min_time <= until, found.append)
    return [(e.key, e.change.old, e.change.new, e.context.timestamp) for e in found]


class Listed:
    """key -> (time of the first update, prior, old, new, timestamp of the last); and as of the last commit."""

    def __init__(self):
        self.held = {}
        self.commit([])

    def put(self, key, old, new, time):
        first, prior = self.held[key][:2] if key in self.held else (time, old)
        self.held[key] = (first, prior, old, new, time)

    def evict(self, until):
        due = sorted((row[0], key.encode(), key) for key, row in self.held.items() if row[0] <= until)
        return [(key, *self.held.pop(key)[2:]) for _, _, key in due]

    def commit(self, log):
        self.saved, self.log = dict(self.held), list(log)

    def discard(self):
        self.held = dict(self.saved)


def agree(store, model):
    assert store.num_records == len(model.held)
    assert store.min_time == min((row[0] for row in model.held.values()), default=LONG_MAX)
    for key in KEYS:
        is_held, prior = store.prior(key)
        assert is_held == (key in model.held)
        assert (prior and prior.value) == (model.held[key][1] if is_held else None)


@settings(max_examples=300, deadline=None)
@given(script=operations)
def test_one_update_per_key_waits_and_leaves_in_the_order_of_time(new_task, script):
    task, model = new_task(held_back()), Listed()
    for name, *arguments in script:
        if name == "put":
            put(task.store, *arguments)
            model.put(*arguments)
        elif name == "evict":
            assert evicted(task.store, *arguments) == model.evict(*arguments)
        elif name == "flush":
            task.flush()
        if name in ("commit", "move"):
            task.commit()
            model.commit(task.context.logged)
        if name in ("discard", "restore"):  # the transaction is lost, and with it what was logged in it
            model.discard()
            task.state.discard()
        if name in ("move", "restore"):
            size = task.store.size_bytes
            task = new_task(held_back())
            task.store.restore(model.log)
            task.commit()
            assert task.store.size_bytes == size
        if name in ("commit", "move", "discard", "restore"):
            task.context.logged[:] = model.log
        agree(task.store, model)
    assert evicted(task.store, LONG_MAX - 1) == model.evict(LONG_MAX - 1)
    assert (task.store.num_records, task.store.size_bytes, task.store.min_time) == (0, 0, LONG_MAX)


def test_the_size_follows_what_is_held(new_task):
    store = new_task(held_back()).store
    put(store, "k", None, "1234", 5)
    small = store.size_bytes
    put(store, "k", "1234", "12345678", 6)
    assert (store.num_records, store.size_bytes) == (1, small + 4 + 4)  # a longer new value, and an old one
    put(store, "k", None, "1234", 7)
    assert store.size_bytes == small


def test_one_record_per_key_is_logged_at_a_commit_and_a_tombstone_for_what_has_left(new_task):
    task = new_task(held_back())
    put(task.store, "a", None, "1", 5)
    put(task.store, "a", "1", "2", 6)
    put(task.store, "b", None, "1", 7)
    assert evicted(task.store, 5) == [("a", "1", "2", 6)]
    assert task.logged() == []
    task.commit()
    assert [(key, value is None, time) for key, value, time in task.logged()] == [
        (b"a", True, None),
        (b"b", False, None),
    ]
    task.commit()
    assert task.logged() == []


def test_an_abort_brings_back_what_has_left_and_logs_nothing_of_it(new_task):
    task = new_task(held_back())
    put(task.store, "a", None, "1", 5)
    task.commit()
    task.logged()
    assert evicted(task.store, 5) != []
    put(task.store, "b", None, "1", 7)
    task.state.discard()
    assert (task.store.num_records, task.store.min_time) == (1, 5)
    task.commit()
    assert task.logged() == []
    assert evicted(task.store, 5) == [("a", None, "1", 5)]


@pytest.mark.parametrize("headers", [(), (("v", b"\x02"),), (("v", None),)])
def test_a_changelog_in_an_older_layout_is_refused_with_its_place(new_task, headers):
    task = new_task(held_back())
    put(task.store, "a", None, "1", 5)
    task.commit()
    (record,) = task.context.logged
    with pytest.raises(StateStoreError, match=r"app-s-changelog-0@0 of suppressed updates .*before 2.6"):
        new_task(held_back()).store.restore([msgspec.structs.replace(record, headers=headers)])


def test_a_changelog_record_without_key_is_passed_over(new_task):
    task = new_task(held_back())
    put(task.store, "a", None, "1", 5)
    task.commit()
    (record,) = task.context.logged
    other = new_task(held_back())
    other.store.restore([msgspec.structs.replace(record, key=None), record])
    assert evicted(other.store, 5) == [("a", None, "1", 5)]
