"""A store that was told how far operators look back answers as one that was not: whatever is put, undone, restored or let go."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfleet.records import SessionWindow, Windowed
from streamfleet.state.object_cache import ObjectMemory
from streamfleet.state.raw_keys import WINDOW_SUFFIX, pack_window
from streamfleet.state.recent_rows import RecentRows
from streamfleet.state.stores import Stores

LOOK_BACK = 10
KEYS = st.sampled_from(["a", "ab"])
DELTAS = st.integers(-8, 20)
"""From one step to the next: time goes on, with some disorder, further than rows are kept."""
COMMON = st.tuples(st.sampled_from(["commit", "abort", "reopen", "restore"]))
WINDOW_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, DELTAS, st.sampled_from(["x", "y" * 50, None])),
        st.tuples(st.just("fetch"), KEYS, DELTAS, st.integers(0, 100)),
        COMMON,
    ),
    min_size=12,
    max_size=60,
)
SESSION_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, DELTAS, st.integers(0, 30), st.sampled_from(["x", "y" * 50])),
        st.tuples(st.just("remove"), KEYS, DELTAS, st.integers(0, 30)),
        st.tuples(st.just("find"), KEYS, DELTAS, st.integers(0, 100)),
        COMMON,
    ),
    min_size=12,
    max_size=60,
)


class Twins:
    """The same store twice, one of them told how far operators look back."""

    def __init__(self, new_task, builder, object_max_bytes):
        self.tasks = [new_task(builder, object_max_bytes=object_max_bytes) for _ in range(2)]
        self.tell()

    def tell(self):
        self.tasks[0].store.expect_look_back(LOOK_BACK)

    def both(self, act):
        told, untold = (act(task) for task in self.tasks)
        assert told == untold
        return told

    def step(self, name):
        if name == "restore":
            self.both(lambda task: task.store.restore([r for r in task.context.logged if r.key is not None]))
            return
        if name == "abort":
            self.both(lambda task: task.state.discard())
            return
        self.both(lambda task: getattr(task, name)())
        if name == "reopen":
            self.tell()

    def end(self):
        self.both(lambda task: [(r.key, r.value) for r in task.context.logged])
        self.both(lambda task: task.context.dropped)
        for task in self.tasks:
            task.close()


@settings(max_examples=40)
@given(
    duplicates=st.booleans(),
    retention=st.sampled_from([300, 100_000]),
    object_bytes=st.sampled_from([0, 1_000, 100_000]),
    steps=WINDOW_STEPS,
)
def test_a_window_store_answers_the_same(new_task, duplicates, retention, object_bytes, steps):
    options = {"retain_duplicates": True} if duplicates else {}
    twins = Twins(new_task, Stores.window("s", retention, 10, caching=False, **options), object_bytes)
    now = 1000
    for name, *given_ in steps:
        if name == "put":
            key, delta, value = given_
            now = time = now + delta
            twins.both(lambda task, k=key, t=time, v=value: task.store.put(k, v, t))
        elif name == "fetch":
            key, delta, ahead = given_
            time = now + delta
            twins.both(lambda task, k=key, t=time, a=ahead: list(task.store.fetch_between(k, t - LOOK_BACK, t + a)))
            twins.both(
                lambda task, k=key, t=time, a=ahead: list(task.store.backward_fetch_between(k, t - LOOK_BACK, t + a))
            )
        else:
            twins.step(name)
    twins.both(lambda task: list(task.store.all()))
    twins.end()


@settings(max_examples=40)
@given(
    cached=st.booleans(),
    retention=st.sampled_from([300, 100_000]),
    object_bytes=st.sampled_from([0, 1_000, 100_000]),
    steps=SESSION_STEPS,
)
def test_a_session_store_answers_the_same(new_task, cached, retention, object_bytes, steps):
    twins = Twins(new_task, Stores.session("s", retention, caching=cached), object_bytes)
    now = 1000
    for name, *given_ in steps:
        if name == "put":
            key, delta, length, value = given_
            now = start = now + delta
            found = window(key, start, length)
            twins.both(lambda task, w=found, v=value: task.store.put(w, v))
        elif name == "remove":
            key, delta, length = given_
            found = window(key, now + delta, length)
            twins.both(lambda task, w=found: task.store.remove(w))
        elif name == "find":
            key, delta, ahead = given_
            time = now + delta
            twins.both(
                lambda task, k=key, t=time, a=ahead: list(task.store.find_sessions(k, t - LOOK_BACK, t + a)),
            )
        else:
            twins.step(name)
    twins.both(lambda task: list(task.store.fetch_range(None, None)))
    twins.end()


def window(key, start, length):
    return Windowed(key, SessionWindow(start, start + length))


def test_what_was_undone_is_not_found(new_task):
    task = new_task(Stores.window("s", 100_000, 10, caching=False))
    task.store.expect_look_back(LOOK_BACK)
    for time in (1000, 1020, 1040):
        task.store.put("a", "kept", time)
    task.commit()
    task.store.put("a", "undone", 1045)
    assert list(task.store.fetch_between("a", 1035, 1050)) == [(1040, "kept"), (1045, "undone")]
    task.state.discard()
    assert list(task.store.fetch_between("a", 1035, 1050)) == [(1040, "kept")]
    task.store.put("a", "again", 1050)
    assert list(task.store.fetch_between("a", 1035, 1050)) == [(1040, "kept"), (1050, "again")]


@pytest.fixture
def recent():
    rows = RecentRows(WINDOW_SUFFIX, ObjectMemory(1_000_000))
    rows.look_back(LOOK_BACK)
    return rows


def test_what_was_written_before_is_not_claimed_to_be_known(recent):
    assert recent.knows_nothing
    recent.begin(100)
    recent.put(b"k" + pack_window(101, 0), b"v", 101)
    assert list(recent.between(b"k", 101, 200, reverse=False)) == [(b"k" + pack_window(101, 0), b"v")]
    assert list(recent.between(b"other", 101, 200, reverse=False)) == []
    assert recent.between(b"k", 100, 200, reverse=False) is None


def test_rows_that_nobody_looks_back_to_are_let_go(recent):
    recent.begin(0)
    for time in range(1, 100_000, 100):
        recent.put(b"k%d" % time + pack_window(time, 0), b"v", time)
    assert len(recent._rows) < 60
    assert recent.between(b"k1", 1, 2, reverse=False) is None
    assert list(recent.between(b"k99901", 99_900, 99_950, reverse=False)) != []


def test_who_holds_too_much_of_the_memory_forgets_it():
    memory = ObjectMemory(10_000)
    rows = RecentRows(WINDOW_SUFFIX, memory)
    rows.look_back(1_000_000)
    rows.begin(0)
    for time in range(1, 200):
        if rows.knows_nothing:
            rows.begin(time)
        rows.put(b"k" + pack_window(time, 0), b"v" * 10, time)
        assert rows._size_bytes <= 10_000
