import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfleet import Stores, serdes
from streamfleet.records import ValueAndTimestamp
from streamfleet.state.object_cache import ObjectCache, ObjectMemory

KEYS = [f"k{number}" for number in range(6)]


class Customer(msgspec.Struct, frozen=True):
    name: str


VALUES = {
    "long": (serdes.long(), st.integers(-5, 5)),
    "string": (serdes.string(), st.sampled_from(["", "a", "bb", "\u00e9", "x" * 300])),
    "bytes": (serdes.bytes(), st.binary(max_size=3)),
    "double": (serdes.double(), st.sampled_from([0.5, -1.0, 2.25])),
    "frozen": (serdes.json(Customer), st.sampled_from([Customer("a"), Customer("b")])),
    "list": (serdes.json(), st.lists(st.integers(0, 2), max_size=2)),
}


def table(kind="rocksdb", value="long", **options):
    return Stores.timestamped_key_value(
        "s", kind=kind, key_serde=serdes.string(), value_serde=VALUES[value][0], **options
    )


def stamped(value, timestamp=7):
    return None if value is None else ValueAndTimestamp(value, timestamp)


def operations(value):
    key = st.sampled_from(KEYS)
    new = VALUES[value][1] | st.none()
    return st.lists(
        st.tuples(st.sampled_from(["put", "put_if_absent"]), key, new)
        | st.tuples(st.sampled_from(["get", "delete"]), key)
        | st.tuples(st.sampled_from(["all", "count", "commit", "discard"])),
        max_size=60,
    )


class Model:
    """A dict, and what it was at the last commit."""

    def __init__(self):
        self.rows, self.committed = {}, {}

    def apply(self, name, key=None, value=None):
        if name in ("get", "delete", "put_if_absent"):
            found = self.rows.get(key)
            if name == "delete" or (name == "put_if_absent" and found is None):
                self.set(key, value)
            return found
        if name == "put":
            self.set(key, value)
        elif name == "all":
            return sorted(self.rows.items())
        elif name == "commit":
            self.committed = dict(self.rows)
        elif name == "discard":
            self.rows = dict(self.committed)
        return None

    def set(self, key, value):
        if value is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = stamped(value)


def apply(task, name, key=None, value=None):
    store = task.store
    if name == "commit":
        task.commit()
    elif name == "discard":
        task.state.discard()
    elif name == "all":
        with store.all() as rows:
            return list(rows)
    elif name == "count":
        store.approximate_num_entries()
    elif name in ("get", "delete"):
        return getattr(store, name)(key)
    else:
        return getattr(store, name)(key, stamped(value))
    return None


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("kind", ["rocksdb", "in_memory"])
@settings(max_examples=25)
@given(data=st.data(), memory=st.sampled_from([0, 1, 2000, 100_000]))
def test_a_store_that_holds_objects_answers_as_a_dict_does(new_task, kind, value, data, memory):
    task = new_task(table(kind, value), object_max_bytes=memory, deduplicate_changelog=True)
    model = Model()
    for operation in data.draw(operations(value)):
        assert apply(task, *operation) == model.apply(*operation), operation
    task.commit()
    assert apply(task, "all") == sorted(model.rows.items())
    task.close()


@pytest.mark.parametrize("cached", [False, True])
def test_a_value_that_nobody_can_change_is_decoded_once_and_others_for_every_reader(new_task, cached):
    for value, put, is_same in [("frozen", Customer("a"), True), ("list", [1], False)]:
        builder = table(value=value)
        task = new_task(builder.with_caching() if cached else builder, object_max_bytes=100_000)
        task.store.put("k", stamped(put))
        first, second = task.store.get("k"), task.store.get("k")
        assert first == second == stamped(put)
        assert (first.value is second.value) is is_same
        task.store.put("k", None)
        assert task.store.get("k") is None
        task.close()


@settings(max_examples=25)
@given(operations=operations("long"))
def test_holding_objects_changes_nothing_in_the_changelog(new_task, operations):
    logs = []
    for memory in (0, 100_000):
        task = new_task(table(), object_max_bytes=memory, deduplicate_changelog=True)
        for operation in operations:
            apply(task, *operation)
        task.commit()
        logs.append(folded(task.logged()))
        task.close()
    assert logs[0] == logs[1]


def folded(records):
    return {key: (value, timestamp) for key, value, timestamp in records}


def test_a_value_is_serialised_once_per_commit(new_task):
    task = new_task(table(), deduplicate_changelog=True)
    for number in range(100):
        task.store.put("k", stamped(number))
    assert task.state.uncommitted_bytes > 0
    task.commit()
    assert [(key, value) for key, value, _ in task.logged()] == [(b"k", (99).to_bytes(8, "big"))]


@pytest.mark.parametrize("wrong", [2**63, "text", object()])
def test_a_value_that_cannot_be_serialised_is_refused_when_it_is_put(new_task, wrong):
    task = new_task(table(), deduplicate_changelog=True)
    with pytest.raises(Exception, match="value of store s cannot be serialized"):
        task.store.put("k", stamped(wrong))
    task.commit()


def test_every_write_is_logged_where_changes_are_not_deduplicated(new_task):
    task = new_task(table(), deduplicate_changelog=False)
    task.store.put("k", stamped(1))
    task.store.put("k", stamped(2))
    assert len(task.logged()) == 2


def test_what_was_restored_takes_the_place_of_what_was_held(new_task, restore_task):
    task = new_task(table(), deduplicate_changelog=True)
    task.store.put("k", stamped(1))
    task.commit()
    records = list(task.context.logged)
    task.store.put("k", stamped(2))
    task.commit()
    task.store.restore(records)
    assert task.store.get("k") == stamped(1)


def test_objects_are_bounded_over_all_stores_of_a_thread():
    memory = ObjectMemory(100_000)
    caches = [ObjectCache(memory) for _ in range(3)]
    for number in range(10_000):
        caches[number % 3].keep(b"%d" % number, number, 8)
    held = sum(len(cache._young) + len(cache._old) for cache in caches)
    assert 100 < held < 100_000 // 200


def test_what_is_used_survives_what_is_not():
    memory = ObjectMemory(100_000)
    cache = ObjectCache(memory)
    cache.keep(b"hot", "hot", 8)
    for number in range(10_000):
        cache.keep(b"%d" % number, number, 8)
        assert cache.get(b"hot") == "hot"
    assert cache.get(b"0") is None
