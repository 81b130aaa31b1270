"""What others see of a task's stores while it works: the last commit, whole, or what is there now, untouched by looking."""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfleet.errors import StoreUnavailableError
from streamfleet.ids import TopicPartition
from streamfleet.records import SessionWindow, ValueAndTimestamp, Windowed
from streamfleet.state.stores import Stores

KEYS = st.sampled_from(["a", "aa", "b", "c", ""])
KINDS = ("rocksdb", "in_memory")


def committed(task, name="s"):
    with task.state.committed.reading() as stores:
        return list(stores.store(name).all())


def current(store):
    return list(store.current_view().all())


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.sampled_from(["1", "2", "3"])),
        st.tuples(st.just("delete"), KEYS),
        st.tuples(st.sampled_from(["commit", "abort", "flush"])),
    ),
    max_size=30,
)


SHAPES: dict = {
    "plain": lambda kind: Stores.key_value("s", kind=kind),
    "cached": lambda kind: Stores.key_value("s", kind=kind, caching=True),
    "table": lambda kind: Stores.timestamped_key_value("s", kind=kind),  # its values are held as objects
    "lru": lambda kind: Stores.lru("s", 100),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_key_value_stores_are_two_dicts_one_of_them_as_of_the_last_commit(new_task, kind, shape):
    stored = (lambda value: ValueAndTimestamp(value, 7)) if shape == "table" else lambda value: value

    @settings(max_examples=30)
    @given(STEPS)
    def search(steps):
        task = new_task(SHAPES[shape](kind), deduplicate_changelog=True)
        now, last = {}, {}
        for what, *of in steps:
            if what == "put":
                task.store.put(of[0], stored(of[1]))
                now[of[0]] = stored(of[1])
            elif what == "delete":
                task.store.delete(*of)
                now.pop(of[0], None)
            elif what == "commit":
                task.commit()
                last = dict(now)
            elif what == "flush":
                task.flush()
            else:
                task.state.discard()
                now = dict(last)
            with task.state.committed.reading() as stores:
                view = stores.store("s")
                assert list(view.all()) == sorted(last.items())
                assert {key: view.get(key) for key in last} == last
                between = sorted(((k, v) for k, v in last.items() if "a" <= k <= "b"), reverse=True)
                assert list(view.reverse_range("a", "b")) == between
            assert {key: task.store.current_view().get(key) for key in ("a", "aa", "b", "c", "")} == {
                key: now.get(key) for key in ("a", "aa", "b", "c", "")
            }
            if what in ("commit", "abort"):  # not always: a scan settles what is held as objects
                assert current(task.store) == sorted(now.items())
        assert current(task.store) == sorted(now.items())
        task.close()

    search()


WINDOWED: dict = {
    "window": lambda kind, caching: Stores.window("s", 300_000, 60_000, kind=kind, caching=caching),
    "session": lambda kind, caching: Stores.session("s", 300_000, kind=kind, caching=caching),
}


def put(store, shape, key, value, at):
    if shape == "window":
        store.put(key, value, at)
    else:
        store.put(Windowed(key, SessionWindow(at, at + 10)), value)


def rows(store, shape):
    return list(store.all() if shape == "window" else store.fetch_range(None, None))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("caching", [False, True])
@pytest.mark.parametrize("shape", WINDOWED)
def test_windowed_stores_show_what_they_held_at_the_last_commit_expired_by_the_time_of_then(
    new_task, shape, kind, caching
):
    times = st.integers(0, 20).map(lambda minute: minute * 60_000)
    steps = st.lists(
        st.one_of(
            st.tuples(st.just("put"), KEYS, st.sampled_from(["1", "2"]), times),
            st.tuples(st.sampled_from(["commit", "abort"])),
        ),
        max_size=25,
    )

    @settings(max_examples=30)
    @given(steps)
    def search(steps):
        task = new_task(WINDOWED[shape](kind, caching))
        last = []
        for what, *of in steps:
            if what == "put":
                put(task.store, shape, *of)
            elif what == "commit":
                task.commit()
                last = rows(task.store, shape)
            else:
                task.state.discard()
            assert rows(task.store.current_view(), shape) == rows(task.store, shape)
            with task.state.committed.reading() as stores:
                view = stores.store("s")
                # A cache gives expired entries away, too; what was committed under them is gone.
                assert [row for row in rows(view, shape) if row not in last] == []
                if not caching:
                    assert rows(view, shape) == last
        task.close()

    search()


def test_looking_does_not_count_as_use(new_task):
    task = new_task(Stores.lru("s", 2))
    task.store.put("a", "1")
    task.store.put("b", "1")
    assert task.store.current_view().get("a") == "1"
    task.store.put("c", "1")
    assert task.store.get("a") is None, "a was used longest ago, by the task"


def test_looking_evicts_nothing_from_a_cache(new_task):
    task = new_task(Stores.key_value("s", caching=True), cache_max_bytes=200)
    for key in "abcdefgh":
        task.store.put(key, "v")
    task.commit()
    task.store.put("a", "w")
    task.context.logged.clear()
    for key in "bcdefgh":
        assert task.store.current_view().get(key) == "v"
    assert task.context.logged == [], "the update of a is still held back"


def test_timestamps_are_part_of_a_view(new_task):
    task = new_task(Stores.timestamped_key_value("s"))
    task.store.put("a", ValueAndTimestamp("1", 7))
    task.commit()
    assert committed(task) == [("a", ValueAndTimestamp("1", 7))]


def test_the_position_is_that_of_the_rows(new_task):
    task = new_task(Stores.key_value("s"))
    stores = task.state.committed
    assert stores.position is None
    task.store.put("a", "1")
    task.state.commit({"app-s-changelog": 0}, {TopicPartition("in", 0): 5})
    assert stores.position == {TopicPartition("in", 0): 5}


def test_a_commit_waits_for_who_reads_and_who_reads_for_a_commit(new_task):
    task = new_task(Stores.key_value("s"))
    stores = task.state.committed
    task.store.put("a", "1")
    done = threading.Event()
    commit = threading.Thread(target=lambda: (task.commit(), done.set()))
    with stores.reading() as view:
        commit.start()
        assert not done.wait(0.05)
        assert list(view.store("s").all()) == []
    commit.join(10)
    assert committed(task) == [("a", "1")]


def test_who_comes_after_closing_is_told_and_touches_nothing(new_task):
    task = new_task(Stores.key_value("s"))
    task.store.put("a", "1")
    task.commit()
    stores = task.state.committed
    with stores.reading() as view:
        view.store("s")
    task.state.close()
    task.context.close_engines()
    with pytest.raises(StoreUnavailableError, match="closed"), stores.reading():
        pass
    task.open()


def test_many_readers_survive_commits_and_the_end_of_the_task(new_task):
    task = new_task(Stores.key_value("s"), Stores.window("w", 300_000, 60_000))
    stores, failures, reads = task.state.committed, [], []
    stop = threading.Event()

    def hammer():
        while not stop.is_set():
            try:
                with stores.reading() as view:
                    kept = dict(view.store("s").all())
                    assert len(set(kept.values())) <= 1, kept
                    windows = {value for _, value in view.store("w").fetch_all(0, 10**12)}
                    assert len(windows) <= 1
                    reads.append(1)
            except StoreUnavailableError:
                return
            except Exception as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=hammer) for _ in range(3)]
    for thread in threads:
        thread.start()
    n = 0
    while len(reads) < 300 and not failures:
        n += 1
        for key in "abcdefgh":
            task.state.stores["s"].put(key, str(n))
            task.state.stores["w"].put(key, str(n), 60_000)
        task.commit()
    task.state.close()
    task.context.close_engines()
    for thread in threads:
        thread.join(10)
    stop.set()
    assert failures == []
    task.open()
