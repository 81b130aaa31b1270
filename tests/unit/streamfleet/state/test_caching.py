"""What a flush listener hears, and when."""

import pytest

from streamfleet.errors import StateStoreError
from streamfleet.records import SessionWindow, TimeWindow, ValueAndTimestamp, Windowed
from streamfleet.state.stores import Stores


class Listener:
    """Hears a store's flushes; notes the record context that is in force."""

    def __init__(self, task, *, send_old_values=True):
        self.task = task
        self.heard = []
        self.contexts = []
        assert task.store.set_flush_listener(self, send_old_values=send_old_values)

    def __call__(self, key, new, old, timestamp):
        self.heard.append((key, new, old, timestamp))
        self.contexts.append(self.task.context.record_context)

    def take(self):
        heard, self.heard = self.heard, []
        return heard


@pytest.fixture(params=["rocksdb", "in_memory"])
def task(request, new_task):
    return new_task(Stores.key_value("s", kind=request.param, caching=True))


def test_only_the_last_value_per_key_is_forwarded_in_the_order_of_the_last_update(task):
    listener = Listener(task)
    for timestamp, (key, value) in enumerate([("a", "1"), ("b", "1"), ("a", "2")]):
        task.context.at(timestamp)
        task.store.put(key, value)
    assert listener.take() == []
    task.flush()
    assert listener.take() == [("b", "1", None, 1), ("a", "2", None, 2)]
    task.flush()
    assert listener.take() == []


def test_old_values_are_those_of_the_last_flush(task):
    listener = Listener(task)
    task.store.put("a", "1")
    task.commit()
    task.store.put("a", "2")
    task.store.put("a", "3")
    task.flush()
    task.store.delete("a")
    task.flush()
    assert listener.take() == [("a", "1", None, 0), ("a", "3", "1", 0), ("a", None, "3", 0)]


def test_old_values_are_left_out_where_nobody_wants_them(task):
    listener = Listener(task, send_old_values=False)
    task.store.put("a", "1")
    task.flush()
    task.store.put("a", None)
    task.flush()
    assert listener.take() == [("a", "1", None, 0), ("a", None, None, 0)]


def test_put_and_delete_between_two_flushes_is_neither_forwarded_nor_logged(task):
    listener = Listener(task)
    task.store.put("a", "1")
    task.store.delete("a")
    task.flush()
    assert listener.take() == []
    assert task.logged() == []


def test_without_listener_a_delete_of_nothing_is_logged(task):
    task.context.at(4)
    task.store.delete("a")
    task.flush()
    assert task.logged() == [(b"a", None, 4)]


def test_the_record_context_of_the_update_is_in_force_while_it_is_flushed(task):
    listener = Listener(task)
    task.context.at(1, topic="early", headers=(("h", b"1"),), raw=b"input")
    task.store.put("a", "1")
    task.context.at(9, topic="late")
    now = task.context.record_context
    task.flush()
    (during,) = listener.contexts
    assert (during.timestamp, during.topic, during.headers) == (1, "early", (("h", b"1"),))
    assert during.key == b"input"
    assert task.context.record_context is now
    assert task.logged() == [(b"a", b"1", 1)]


def test_the_record_context_is_put_back_when_a_listener_fails(task):
    def fail(*_):
        raise RuntimeError("downstream")

    task.store.set_flush_listener(fail, send_old_values=False)
    task.store.put("a", "1")
    task.context.at(9)
    now = task.context.record_context
    with pytest.raises(StateStoreError, match="cache of store s could not be flushed: downstream") as failed:
        task.flush()
    assert isinstance(failed.value.__cause__, RuntimeError)
    assert task.context.record_context is now
    assert task.store.get("a") == "1"


def test_a_cache_of_no_size_is_no_cache(new_task):
    task = new_task(Stores.key_value("s", caching=True), cache_max_bytes=0)
    assert not task.store.set_flush_listener(lambda *_: None, send_old_values=True)
    task.context.at(3)
    task.store.delete("never there")
    assert task.logged() == [(b"never there", None, 3)]


def test_a_cache_too_small_for_anything_forwards_every_put(new_task):
    task = new_task(Stores.key_value("s", caching=True), cache_max_bytes=1)
    listener = Listener(task)
    task.store.put("a", "1")
    task.store.put("a", "2")
    assert listener.take() == [("a", "1", None, 0), ("a", "2", "1", 0)]
    assert task.store.get("a") == "2"


def test_a_full_cache_forwards_all_that_is_dirty_the_evicted_first(new_task):
    task = new_task(Stores.key_value("s", caching=True), cache_max_bytes=150)
    listener = Listener(task)
    for key in "abc":
        task.store.put(key, "v")
    assert listener.take() == []
    task.store.put("a", "w")
    task.store.put("d", "v")
    assert [key for key, *_ in listener.take()] == ["b", "c", "a", "d"]


def test_a_listener_may_write_to_its_own_store(task):
    heard = []

    def listener(key, new, old, timestamp):
        heard.append((key, new))
        if key == "a":
            task.store.put("b", f"{new}!")

    task.store.set_flush_listener(listener, send_old_values=False)
    task.store.put("a", "1")
    task.flush()
    assert heard == [("a", "1")]
    assert task.store.get("b") == "1!"
    task.flush()
    assert heard == [("a", "1"), ("b", "1!")]


def test_what_one_store_forwards_reaches_the_next_in_the_same_flush(new_task):
    task = new_task(Stores.key_value("one", caching=True), Stores.key_value("two", caching=True))
    one, two = task.state.stores.values()
    heard = []
    one.set_flush_listener(lambda key, new, old, timestamp: two.put(key, new), send_old_values=False)
    two.set_flush_listener(lambda key, new, old, timestamp: heard.append((key, new)), send_old_values=False)
    one.put("a", "1")
    task.flush()
    assert heard == [("a", "1")]


def test_timestamped_stores_hand_over_values_with_timestamps(new_task):
    task = new_task(Stores.timestamped_key_value("s", caching=True))
    listener = Listener(task)
    task.context.at(9)
    task.store.put("a", ValueAndTimestamp("x", 5))
    task.flush()
    task.store.put("a", None)
    task.flush()
    assert listener.take() == [
        ("a", ValueAndTimestamp("x", 5), None, 9),
        ("a", None, ValueAndTimestamp("x", 5), 9),
    ]


@pytest.mark.parametrize("kind", ["rocksdb", "in_memory"])
@pytest.mark.parametrize("time_first", [False, True])
def test_window_stores_hand_over_windowed_keys(new_task, kind, time_first):
    builder = Stores.window("s", 50, 10, kind=kind, caching=True).with_time_first(time_first)
    task = new_task(builder)
    listener = Listener(task)
    task.store.put("a", "1", 20)
    task.store.put("a", "2", 20)
    task.store.put("b", "1", 0)
    task.flush()
    assert listener.take() == [
        (Windowed("a", TimeWindow(20, 30)), "2", None, 0),
        (Windowed("b", TimeWindow(0, 10)), "1", None, 0),
    ]


@pytest.mark.parametrize("kind", ["rocksdb", "in_memory"])
def test_session_stores_hand_over_windowed_keys(new_task, kind):
    task = new_task(Stores.session("s", 50, kind=kind, caching=True))
    listener = Listener(task)
    merged = Windowed("a", SessionWindow(0, 5))
    task.store.put(Windowed("a", SessionWindow(0, 0)), "1")
    task.flush()
    task.store.remove(Windowed("a", SessionWindow(0, 0)))
    task.store.put(merged, "2")
    task.flush()
    assert listener.take() == [
        (Windowed("a", SessionWindow(0, 0)), "1", None, 0),
        (Windowed("a", SessionWindow(0, 0)), None, "1", 0),
        (merged, "2", None, 0),
    ]


def test_an_uncached_store_says_that_it_holds_nothing_back(new_task):
    task = new_task(Stores.key_value("s"))
    assert not task.store.set_flush_listener(lambda *_: None, send_old_values=True)
    task.state.flush_caches()


def test_an_abort_forgets_what_the_cache_holds(task):
    listener = Listener(task)
    task.store.put("a", "1")
    task.commit()
    listener.take()
    task.store.put("a", "2")
    task.state.discard()
    assert task.store.get("a") == "1"
    task.flush()
    assert listener.take() == []
