"""What stores write to their changelog topics, and that it is enough to restore them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfleet.records import RawRecord, SessionWindow, ValueAndTimestamp, Windowed
from streamfleet.state.stores import Stores


def test_each_write_is_logged_when_it_is_made_with_the_timestamp_of_the_record(new_task):
    task = new_task(Stores.key_value("s"))
    task.context.at(3, headers=(("h", b"1"),))
    task.store.put("a", "1")
    task.context.at(2)
    task.store.delete("a")
    task.store.put_if_absent("b", "1")
    task.store.put_if_absent("b", "2")
    assert [r.headers for r in task.context.logged] == [(), (), ()]
    assert task.logged() == [(b"a", b"1", 3), (b"a", None, 2), (b"b", b"1", 2)]


def test_timestamped_stores_log_bare_values_stamped_with_their_own_timestamp(new_task):
    task = new_task(Stores.timestamped_key_value("s"))
    task.context.at(9)
    task.store.put("a", ValueAndTimestamp("x", 5))
    task.store.put("a", None)
    assert task.logged() == [(b"a", b"x", 5), (b"a", None, 9)]


def test_outside_of_a_record_the_producer_gives_the_timestamp(new_task):
    task = new_task(Stores.key_value("s"))
    task.context.record_context = None
    task.store.put("a", "1")
    assert task.logged() == [(b"a", b"1", None)]


def test_deduplicated_changes_are_the_last_per_key_and_commit(new_task):
    task = new_task(Stores.key_value("s"), deduplicate_changelog=True)
    for timestamp, (key, value) in enumerate([("a", "1"), ("b", "1"), ("a", "2"), ("c", "1"), ("c", None)]):
        task.context.at(timestamp)
        task.store.put(key, value)
    assert task.logged() == []
    task.state.log_changes()
    assert task.logged() == [(b"b", b"1", 1), (b"a", b"2", 2), (b"c", None, 4)]
    task.state.log_changes()
    assert task.logged() == []


def test_an_abort_forgets_changes_that_were_held_back(new_task):
    task = new_task(Stores.key_value("s"), deduplicate_changelog=True)
    task.store.put("a", "1")
    task.state.discard()
    task.state.log_changes()
    assert task.logged() == []


def test_a_store_without_logging_logs_nothing(new_task):
    task = new_task(Stores.key_value("s", logging=False))
    task.store.put("a", "1")
    task.commit()
    assert task.logged() == []


def test_a_store_whose_source_topic_is_its_changelog_does_not_write_there(new_task, stored_entry):
    task = new_task(stored_entry(Stores.key_value("s"), "input", source_is_changelog=True))
    task.store.put("a", "1")
    task.state.commit({"input": 7})
    assert task.logged() == []
    assert task.state.changelog_offsets() == {"input": 7}


def test_window_and_session_keys_are_logged_in_kafka_streams_layout(new_task):
    task = new_task(Stores.window("w", 50, 10).with_time_first(), Stores.session("s", 50).with_time_first())
    task.state.stores["w"].put("a", "1", 10)
    task.state.stores["s"].put(Windowed("a", SessionWindow(1, 2)), "1")
    task.state.stores["s"].remove(Windowed("a", SessionWindow(1, 2)))
    ten, one, two = ((n).to_bytes(8, "big") for n in (10, 1, 2))
    assert task.logged() == [
        (b"a" + ten + bytes(4), b"1", 0),
        (b"a" + two + one, b"1", 0),
        (b"a" + two + one, None, 0),
    ]


def test_records_without_key_are_not_restored(new_task):
    task = new_task(Stores.key_value("s"))
    task.store.restore([RawRecord("t", 0, 0, 1, None, b"v"), RawRecord("t", 0, 1, 1, b"a", b"v")])
    assert list(task.store.all()) == [("a", "v")]


def test_restoring_logs_forwards_and_counts_nothing(new_task):
    task = new_task(Stores.window("s", 50, 10, kind="in_memory", caching=True))
    heard = []
    task.store.set_flush_listener(lambda *event: heard.append(event), send_old_values=True)
    records = [
        RawRecord("t", 0, offset, 0, b"a" + start.to_bytes(8, "big") + bytes(4), b"v")
        for offset, start in enumerate((10, 1000, 20))
    ]
    task.store.restore(records)
    task.commit()
    assert (task.logged(), heard, task.context.dropped) == ([], [], [])
    assert [key.window.start for key, _ in task.store.all()] == [1000]


KEYS = st.sampled_from(["a", "ab", "b"])
VALUES = st.none() | st.sampled_from(["x", "y", ""])
TIMES = st.integers(0, 400_000)


def key_value_writes(store, key, value, one, other):
    store.put(key, value)


def timestamped_writes(store, key, value, one, other):
    store.put(key, None if value is None else ValueAndTimestamp(value, one))


def window_writes(store, key, value, one, other):
    store.put(key, value, one)


def timestamped_window_writes(store, key, value, one, other):
    store.put(key, None if value is None else ValueAndTimestamp(value, other), one)


def session_writes(store, key, value, one, other):
    store.put(Windowed(key, SessionWindow(min(one, other), max(one, other))), value)


def variants():
    for kind in ("rocksdb", "in_memory"):
        for caching in (False, True):
            options = {"kind": kind, "caching": caching}
            yield Stores.key_value("s", **options), key_value_writes
            yield Stores.timestamped_key_value("s", **options), timestamped_writes
            for time_first in (False, True):
                window = Stores.window("s", 100_000, 10, **options).with_time_first(time_first)
                yield window, window_writes
                yield window.timestamped(), timestamped_window_writes
                yield Stores.session("s", 100_000, **options).with_time_first(time_first), session_writes
        yield Stores.window("s", 100_000, 10, kind=kind, retain_duplicates=True), window_writes
    yield Stores.lru("s", 2), key_value_writes


def contents(store):
    """Below the cache, which shows for longer what has expired."""
    bottom = store._bottom
    if hasattr(bottom, "scan"):
        return list(bottom.scan(b"", None, reverse=False))
    return list(
        bottom.all(reverse=False) if hasattr(bottom, "all") else bottom.find_range(None, None, 0, 2**62, reverse=False)
    )


@settings(max_examples=120, deadline=None)
@given(
    variant=st.sampled_from(list(variants())),
    deduplicate=st.booleans(),
    writes=st.lists(st.tuples(KEYS, VALUES, TIMES, TIMES, st.booleans()), max_size=30),
)
def test_restoring_a_changelog_gives_an_equal_store(new_task, restore_task, variant, deduplicate, writes):
    builder, write = variant
    task = new_task(builder, deduplicate_changelog=deduplicate)
    for timestamp, (key, value, one, other, commits) in enumerate(writes):
        task.context.at(timestamp)
        write(task.store, key, value, one, other)
        if commits:
            task.commit()
    task.commit()
    restored = restore_task(task)
    assert contents(restored.store) == contents(task.store)
    restored.commit()
    assert contents(restored.store) == contents(task.store)
    restored.close()
    task.close()


@pytest.mark.parametrize("deduplicate", [False, True])
def test_expired_puts_are_logged_all_the_same(new_task, deduplicate):
    task = new_task(Stores.window("s", 50, 10, kind="in_memory"), deduplicate_changelog=deduplicate)
    task.store.put("a", "now", 100)
    task.store.put("a", "late", 10)
    task.commit()
    assert [value for _, value, _ in task.logged()] == [b"now", b"late"]
    assert task.context.dropped == [("s", "expired")]
