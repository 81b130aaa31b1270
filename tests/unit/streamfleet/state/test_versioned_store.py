"""The versioned store against a list of everything that was put."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamfleet as sf
from streamfleet import Stores, serdes

HISTORY = 50
KEYS = ["a", "ab", "b"]
operations = st.lists(
    st.tuples(st.just("put"), st.sampled_from(KEYS), st.sampled_from(["x", "y", None]), st.integers(0, 200))
    | st.tuples(st.just("delete"), st.sampled_from(KEYS), st.none(), st.integers(0, 200))
    | st.tuples(st.sampled_from(["commit", "discard"])),
    max_size=40,
)


def versioned(**options):
    return Stores.versioned_key_value("s", HISTORY, key_serde=serdes.string(), value_serde=serdes.string(), **options)


class Listed:
    """All puts that were not too old, by key and time; a later put at the same time takes the earlier one's place."""

    def __init__(self):
        self.puts, self.now = {}, -1
        self.saved = ({}, -1)

    def commit(self):
        self.saved = (dict(self.puts), self.now)

    def discard(self):
        self.puts, self.now = dict(self.saved[0]), self.saved[1]

    def put(self, key, value, time):
        if time < self.now - HISTORY:
            return sf.VersionedKeyValueStore.NOT_PUT
        self.now = max(self.now, time)
        self.puts[key, time] = value
        later = [t for k, t in self.puts if k == key and t > time]
        return min(later) if later else sf.VersionedKeyValueStore.VALID_TO_UNDEFINED

    def delete(self, key, _value, time):
        there = None if time < self.now - HISTORY else self.get(key, time)
        self.put(key, None, time)
        return there

    def is_latest(self, key, time):
        return time == max((t for k, t in self.puts if k == key), default=None)

    def get(self, key, as_of):
        known = sorted(t for k, t in self.puts if k == key)
        if not known:
            return None
        at = known[-1] if as_of is None else max((t for t in known if t <= as_of), default=None)
        is_known = as_of is None or as_of >= self.now - HISTORY or at == known[-1]
        return None if at is None or self.puts[key, at] is None or not is_known else (self.puts[key, at], at)


def seen(record):
    return (record.value, record.timestamp) if isinstance(record, sf.VersionedRecord) else record


@settings(max_examples=60)
@given(script=operations, segment=st.sampled_from([None, 1, 7, 60]))
def test_every_version_within_the_history_is_found(new_task, script, segment):
    task, model = new_task(versioned(segment_interval=segment)), Listed()
    for name, *arguments in script:
        if name in ("put", "delete") and arguments[1] is None and model.is_latest(arguments[0], arguments[2]):
            continue  # the next test says what happens then
        if name == "commit":
            task.commit()
            model.commit()
        elif name == "discard":
            task.state.discard()
            model.discard()
        elif name == "put":
            assert task.store.put(*arguments) == model.put(*arguments)
        else:
            assert seen(task.store.delete(arguments[0], arguments[2])) == model.delete(*arguments)
        for key in KEYS:
            for time in (None, 0, 60, 100, 150, 199):
                assert seen(task.store.get(key, time)) == model.get(key, time), (key, time)
    task.close()


def test_a_delete_at_the_very_time_of_the_only_version_leaves_no_trace(new_task):
    """As in the original: what is put before that time later on is taken for the latest."""
    store = new_task(versioned()).store
    store.put("a", "x", 1)
    assert store.put("a", None, 1) == sf.VersionedKeyValueStore.VALID_TO_UNDEFINED
    assert store.put("a", "y", 0) == sf.VersionedKeyValueStore.VALID_TO_UNDEFINED
    assert store.get("a").value == "y"


@settings(max_examples=20)
@given(puts=st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(["x", None]), st.integers(0, 120)), max_size=20))
def test_a_restored_store_answers_as_the_one_it_came_from(new_task, restore_task, puts):
    task = new_task(versioned())
    for key, value, time in puts:
        task.store.put(key, value, time)
    task.commit()
    restored = restore_task(task)
    for key in KEYS:
        for time in (None, *range(0, 125, 5)):
            assert restored.store.get(key, time) == task.store.get(key, time)


def test_versions_come_in_the_order_of_time(new_task):
    store = new_task(versioned()).store
    for value, time in (("x", 10), ("z", 30), ("y", 20), (None, 25)):
        store.put("a", value, time)
    assert [(v.value, v.timestamp, v.valid_to) for v in store.versions("a")] == [
        ("x", 10, 20),
        ("y", 20, 25),
        ("z", 30, None),
    ]
    assert [v.value for v in store.versions("a", reverse=True)] == ["z", "y", "x"]


def test_what_is_too_old_is_counted_and_logged_but_not_kept(new_task):
    task = new_task(versioned())
    task.store.put("a", "x", 100)
    assert task.store.put("a", "y", 49) == sf.VersionedKeyValueStore.NOT_PUT
    assert task.context.dropped == [("s", "expired")]
    assert [(value, timestamp) for _, value, timestamp in task.logged()] == [(b"x", 100), (b"y", 49)]


def test_old_segments_are_forgotten(new_task):
    task = new_task(versioned(segment_interval=10))
    for time in range(0, 1000, 10):
        task.store.put("a", "x", time)
    task.commit()
    assert len(list(task.store.versions("a"))) <= HISTORY // 10 + 3


def test_every_version_is_in_the_changelog_also_where_others_are_deduplicated(new_task):
    task = new_task(versioned(), deduplicate_changelog=True)
    task.store.put("a", "x", 1)
    task.store.put("a", "y", 2)
    task.commit()
    assert len(task.logged()) == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Stores.versioned_key_value("s", -1), "history_retention of store s must not be negative"),
        (
            lambda: Stores.versioned_key_value("s", 10, segment_interval=0),
            "segment_interval of store s must be at least",
        ),
        (lambda: Stores.versioned_key_value("", 10), "a store's name cannot be empty"),
    ],
)
def test_a_versioned_store_that_cannot_be_is_refused(make, message):
    with pytest.raises(sf.OptionError, match=message):
        make()
