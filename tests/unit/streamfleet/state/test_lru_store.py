from streamfleet.records import ValueAndTimestamp
from streamfleet.state.stores import Stores


def keys(store):
    return [key for key, _ in store.all()]


def test_the_entry_not_used_for_longest_goes(new_task):
    store = new_task(Stores.lru("s", 2)).store
    store.put("a", "1")
    store.put("b", "2")
    store.get("a")
    store.put("c", "3")
    assert keys(store) == ["a", "c"]
    assert store.get("b") is None
    assert store.approximate_num_entries() == 2


def test_an_update_is_a_use_and_a_scan_is_not(new_task):
    store = new_task(Stores.lru("s", 2)).store
    store.put("a", "1")
    store.put("b", "2")
    store.put("a", "3")
    list(store.range("b", "b"))
    store.put("c", "4")
    assert keys(store) == ["a", "c"]


def test_deleting_makes_room(new_task):
    store = new_task(Stores.lru("s", 2)).store
    store.put("a", "1")
    store.put("b", "2")
    store.delete("a")
    store.put("c", "3")
    assert keys(store) == ["b", "c"]


def test_an_eviction_is_logged_before_the_put_that_caused_it(new_task):
    task = new_task(Stores.lru("s", 1))
    task.context.at(5)
    task.store.put("a", "1")
    task.context.at(6)
    task.store.put("b", "2")
    assert task.logged() == [(b"a", b"1", 5), (b"a", None, 6), (b"b", b"2", 6)]


def test_a_timestamped_store_does_not_log_evictions(new_task):
    task = new_task(Stores.lru("s", 1).timestamped())
    task.store.put("a", ValueAndTimestamp("1", 5))
    task.store.put("b", ValueAndTimestamp("2", 6))
    assert task.logged() == [(b"a", b"1", 5), (b"b", b"2", 6)]


def test_a_store_without_room_forgets_at_once(new_task):
    store = new_task(Stores.lru("s", 0)).store
    store.put("a", "1")
    assert store.get("a") is None
    assert keys(store) == []


def test_an_abort_brings_evicted_entries_back(new_task):
    task = new_task(Stores.lru("s", 2))
    task.store.put("a", "1")
    task.store.put("b", "2")
    task.commit()
    task.store.put("c", "3")
    task.state.discard()
    assert keys(task.store) == ["a", "b"]
    task.store.put("d", "4")
    assert len(keys(task.store)) == 2


def test_a_restored_store_keeps_to_its_size(new_task, restore_task):
    task = new_task(Stores.lru("s", 2).timestamped())
    for n, key in enumerate("abcd"):
        task.store.put(key, ValueAndTimestamp("v", n))
    assert keys(restore_task(task).store) == ["c", "d"]
