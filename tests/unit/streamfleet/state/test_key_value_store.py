"""One contract for every key-value store: kind x timestamped x caching x stage of what was written."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfleet import serdes
from streamfleet.records import ValueAndTimestamp
from streamfleet.state.stores import Stores

KINDS = ["rocksdb", "in_memory"]


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["uncached", "cached"])
def task(request, new_task, kind):
    return new_task(Stores.key_value("s", kind=kind, caching=request.param))


@pytest.fixture
def filled(task, settled):
    for key in ("b", "a", "ab", "é", "B", "gone"):
        task.store.put(key, f"value of {key}")
    task.store.delete("gone")
    return settled(task)


def keys(rows):
    return [key for key, _ in rows]


def test_get_finds_what_was_put(filled):
    assert filled.get("a") == "value of a"
    assert filled.get("gone") is None
    assert filled.get("never") is None


def test_keys_order_as_their_serialized_bytes(filled):
    assert list(filled.all()) == [(key, f"value of {key}") for key in ("B", "a", "ab", "b", "é")]
    assert keys(filled.reverse_all()) == ["é", "b", "ab", "a", "B"]


def test_range_bounds_are_inclusive_at_both_ends_and_none_is_open(filled):
    assert keys(filled.range("a", "b")) == ["a", "ab", "b"]
    assert keys(filled.range("aa", "az")) == ["ab"]
    assert keys(filled.range(None, "a")) == ["B", "a"]
    assert keys(filled.range("b", None)) == ["b", "é"]
    assert keys(filled.reverse_range("a", "b")) == ["b", "ab", "a"]
    assert keys(filled.range("b", "a")) == []


def test_prefix_scan_compares_serialized_bytes(filled):
    assert keys(filled.prefix_scan("a", serdes.string())) == ["a", "ab"]
    assert keys(filled.prefix_scan(b"\xc3", serdes.bytes())) == ["é"]
    with pytest.raises(TypeError, match="prefix"):
        filled.prefix_scan(None, serdes.string())


def test_put_if_absent_returns_what_is_there(filled):
    assert filled.put_if_absent("a", "other") == "value of a"
    assert filled.get("a") == "value of a"
    assert filled.put_if_absent("new", "first") is None
    assert filled.get("new") == "first"


def test_delete_returns_what_was_there(filled):
    assert filled.delete("a") == "value of a"
    assert filled.delete("a") is None
    assert filled.get("a") is None


def test_put_of_none_deletes(filled):
    filled.put_all([("a", None), ("b", "new")])
    assert filled.get("a") is None
    assert filled.get("b") == "new"
    assert keys(filled.range("a", "b")) == ["ab", "b"]


def test_entries_can_be_deleted_while_they_are_scanned(filled):
    with filled.all() as rows:
        for key, _ in rows:
            filled.delete(key)
    assert list(filled.all()) == []


def test_a_closed_iterator_is_at_its_end(filled):
    rows = filled.all()
    next(rows)
    rows.close()
    assert list(rows) == []


@pytest.mark.parametrize("ask", [lambda s: s.get(None), lambda s: s.put(None, "v"), lambda s: s.delete(None)])
def test_none_is_not_a_key(task, ask):
    with pytest.raises(TypeError, match="store s was given None as a key"):
        ask(task.store)


def test_timestamped_values_keep_their_timestamp(new_task, kind, settled):
    task = new_task(Stores.timestamped_key_value("s", kind=kind))
    task.store.put("a", ValueAndTimestamp("x", 7))
    task.store.put("b", ValueAndTimestamp("", -1))
    task.store.put("c", ValueAndTimestamp(None, 5))
    store = settled(task)
    assert list(store.all()) == [("a", ValueAndTimestamp("x", 7)), ("b", ValueAndTimestamp("", -1))]


def test_a_timestamped_store_refuses_bare_values(new_task):
    task = new_task(Stores.timestamped_key_value("s"))
    with pytest.raises(TypeError, match="takes ValueAndTimestamp, got 'x'"):
        task.store.put("a", "x")


def test_plain_supplier_becomes_timestamped(new_task):
    task = new_task(Stores.key_value("s", kind="in_memory").timestamped())
    task.store.put("a", ValueAndTimestamp("x", 1))
    assert task.store.get("a") == ValueAndTimestamp("x", 1)


def test_empty_values_are_values(task, settled):
    task.store.put("a", "")
    assert settled(task).get("a") == ""


def test_an_in_memory_store_counts_exactly(new_task):
    store = new_task(Stores.key_value("s", kind="in_memory")).store
    for key in ("a", "b", "a"):
        store.put(key, "v")
    store.delete("never there")
    assert store.approximate_num_entries() == 2


def test_a_rocksdb_store_estimates_by_puts_less_deletes(new_task):
    task = new_task(Stores.key_value("s"))
    for key in ("a", "b", "a"):
        task.store.put(key, "v")
    task.store.delete("never there")
    assert task.store.approximate_num_entries() == 2
    task.store.delete("b")
    task.store.delete("b")
    task.store.delete("b")
    assert task.store.approximate_num_entries() == 0


def test_a_rocksdb_store_counts_after_many_updates(new_task):
    task = new_task(Stores.key_value("s"))
    for n in range(10_002):
        task.store.put(str(n % 7), "v")
    assert task.store.approximate_num_entries() == 7
    task.commit()
    task.reopen()
    assert task.store.approximate_num_entries() == 7


OPERATIONS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("abcd"), st.none() | st.sampled_from("xyz")),
    st.tuples(st.just("put_if_absent"), st.sampled_from("abcd"), st.none() | st.sampled_from("xyz")),
    st.tuples(st.just("delete"), st.sampled_from("abcd")),
    st.tuples(st.just("get"), st.sampled_from("abcd")),
    st.tuples(st.just("range"), st.none() | st.sampled_from("abcd"), st.none() | st.sampled_from("abcd")),
    st.tuples(st.just("reverse_range"), st.none() | st.sampled_from("abcd"), st.none() | st.sampled_from("abcd")),
    st.tuples(st.sampled_from(["flush", "commit", "discard"])),
)


class Model:
    def __init__(self):
        self.rows = {}
        self.committed = {}

    def play(self, name, *arguments):
        return getattr(self, name)(*arguments)

    def put(self, key, value):
        self.rows[key] = value
        if value is None:
            del self.rows[key]

    def put_if_absent(self, key, value):
        there = self.rows.get(key)
        if there is None:
            self.put(key, value)
        return there

    def delete(self, key):
        return self.rows.pop(key, None)

    def get(self, key):
        return self.rows.get(key)

    def range(self, low, high):
        return sorted(r for r in self.rows.items() if (low is None or r[0] >= low) and (high is None or r[0] <= high))

    def reverse_range(self, low, high):
        return self.range(low, high)[::-1]

    def flush(self):
        pass

    def commit(self):
        self.committed = dict(self.rows)

    def discard(self):
        self.rows = dict(self.committed)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    cache_bytes=st.sampled_from([None, 1, 150, 10_000]),
    operations=st.lists(OPERATIONS, max_size=50),
)
def test_a_store_is_a_dict_whatever_holds_it(new_task, kind, cache_bytes, operations):
    task = new_task(Stores.key_value("s", kind=kind, caching=cache_bytes is not None), cache_max_bytes=cache_bytes or 0)
    model = Model()
    for name, *arguments in operations:
        if name in ("flush", "commit"):
            got = getattr(task, name)()
        elif name == "discard":
            got = task.state.discard()
        else:
            got = getattr(task.store, name)(*arguments)
        expected = model.play(name, *arguments)
        assert (list(got) if "range" in name else got) == expected
    assert list(task.store.all()) == model.range(None, None)
    task.close()
