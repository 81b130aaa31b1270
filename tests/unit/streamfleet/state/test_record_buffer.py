"""RecordBuffer against a list: what was put and is not yet due, through commits, aborts and restores."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfleet import serdes
from streamfleet.records import RecordContext
from streamfleet.state.memory_engine import MemoryEngine
from streamfleet.state.raw_keys import MAX_SEQUENCE
from streamfleet.state.record_buffer import RecordBufferBuilder

GRACE = 10
KEYS = ["a", "bb"]
puts = st.tuples(st.just("put"), st.sampled_from(KEYS), st.sampled_from([3, 4, 13, 14]))
turns = st.tuples(st.sampled_from(["commit", "move", "discard", "restore"]))
operations = st.lists(st.one_of(puts, puts, puts, turns), min_size=12, max_size=40)
at_start = st.sampled_from([0, MAX_SEQUENCE - 4, MAX_SEQUENCE // 2 - 4])


def held_back(grace=GRACE, **options):
    return RecordBufferBuilder(
        name="s", grace_ms=grace, key_serde=serdes.string(), value_serde=serdes.string(), **options
    )


def context(time, offset=0):
    return RecordContext("in", 2, offset, time, b"raw-key", b"raw-value", (("h", b"v"),))


def put(store, key, value, time):
    return store.put(key, value, context(time))


def taken(store):
    found = []
    store.take_due(lambda held: found.append((held.key, held.value, held.context.timestamp)))
    return found


def set_sequence(store, number):
    """As after that many records."""
    store._facts.sequence = number


def test_a_new_record_does_not_take_the_place_of_a_held_one_after_a_restore(new_task, restore_task):
    task = new_task(held_back())
    put(task.store, "k", "older", 3)
    put(task.store, "k", "first", 5)
    put(task.store, "x", "later", 14)
    assert taken(task.store) == [("k", "older", 3)]  # logged last, and it has the lowest number
    task.commit()
    store = restore_task(task).store
    put(store, "k", "second", 5)
    put(store, "x", "end", 100)
    assert [value for _, value, _ in taken(store)] == ["first", "second", "later"]


def test_numbers_that_begin_again_are_not_taken_for_lower_ones_in_a_restore(new_task, restore_task):
    task = new_task(held_back())
    set_sequence(task.store, MAX_SEQUENCE - 1)
    for value in ("last number", "zero", "one"):
        put(task.store, "k", value, 5)
    task.commit()
    store = restore_task(task).store
    put(store, "k", "two", 5)
    put(store, "x", "end", 100)
    # By key bytes and number, so what was put before the numbers began again comes last.
    assert sorted(value for _, value, _ in taken(store)) == ["last number", "one", "two", "zero"]


def test_the_record_context_comes_back_from_the_changelog(new_task, restore_task):
    task = new_task(held_back())
    task.store.put("k", "v", context(5, offset=77))
    task.commit()
    store = restore_task(task).store
    put(store, "x", "end", 100)
    found = []
    store.take_due(found.append)
    (held,) = found
    assert (held.key, held.value) == ("k", "v")
    assert (held.context.topic, held.context.partition, held.context.offset, held.context.timestamp) == ("in", 2, 77, 5)
    assert held.context.headers == (("h", b"v"),)


def test_a_record_that_is_too_late_is_not_held_back(new_task):
    store = new_task(held_back()).store
    assert put(store, "k", "v", 50)
    assert put(store, "k", "just in time", 40)
    assert not put(store, "k", "late", 39)
    assert taken(store) == [("k", "just in time", 40)]


def test_what_was_committed_is_there_after_a_restart_and_nothing_else(new_task):
    task = new_task(held_back())
    put(task.store, "k", "committed", 5)
    task.commit()
    put(task.store, "k", "lost", 5)
    task.reopen()
    put(task.store, "k", "again", 5)
    put(task.store, "x", "end", 100)
    assert taken(task.store) == [("k", "committed", 5), ("k", "again", 5)]


def test_nothing_is_logged_where_logging_is_off(new_task):
    task = new_task(held_back(logging=False))
    put(task.store, "k", "v", 5)
    task.commit()
    assert task.logged() == []
    assert not held_back(logging=False).logging_enabled


class Listed:
    """What is held, in the order it was put, and the highest time seen; as of the last commit as well."""

    def __init__(self):
        self.held, self.now = [], -1
        self.commit([])

    def put(self, key, value, time):
        if time < self.now - GRACE:
            return False
        self.now = max(self.now, time)
        self.held.append((key, value, time))
        return True

    def take(self):
        due = [entry for entry in self.held if entry[2] <= self.now - GRACE]
        self.held = [entry for entry in self.held if entry not in due]
        return due

    def commit(self, log):
        self.saved, self.log = (list(self.held), self.now), list(log)

    def discard(self):
        self.held, self.now = list(self.saved[0]), self.saved[1]


def in_memory():
    """The same code over an engine that costs nothing to make: a property makes thousands."""
    return {"engines": {"rocksdb": MemoryEngine()}}


@settings(max_examples=400, deadline=None)
@given(script=operations, start=at_start)
def test_every_record_is_handed_out_once_when_it_is_due(new_task, script, start):
    task, model = new_task(held_back(), **in_memory()), Listed()
    set_sequence(task.store, start)
    task.commit()
    for number, (name, *arguments) in enumerate(script):
        if name == "put":  # and hand out what is due then, as the join does
            key, time = arguments
            assert put(task.store, key, str(number), time) == model.put(key, str(number), time)
            same(taken(task.store), model.take())
        if name in ("commit", "move"):
            task.commit()
            model.commit(task.context.logged)
        if name in ("discard", "restore"):  # the transaction is lost, and with it what was logged in it
            model.discard()
            task.state.discard()
        if name in ("move", "restore"):
            task = new_task(held_back(), **in_memory())
            task.store.restore(model.log)
            task.commit()
        if name != "put":
            task.context.logged[:] = model.log
    put(task.store, "end", "end", 10**6)
    model.put("end", "end", 10**6)
    same(taken(task.store), model.take())


def same(found, expected):
    """By time and key; among equal ones the numbers decide, and those begin again some day."""
    assert [(time, key.encode()) for key, _, time in found] == sorted((time, key.encode()) for key, _, time in expected)
    assert sorted(found) == sorted(expected)


def test_a_changelog_record_without_key_is_passed_over(new_task, restore_task):
    task = new_task(held_back())
    put(task.store, "k", "v", 5)
    task.commit()
    task.context.logged.insert(0, msgspec.structs.replace(task.context.logged[0], key=None))
    store = restore_task(task).store
    put(store, "x", "end", 100)
    assert taken(store) == [("k", "v", 5)]
