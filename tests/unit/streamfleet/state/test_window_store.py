"""One contract for every window store, and where the kinds differ: order of scans, and when a row is too old."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfleet.records import TimeWindow, ValueAndTimestamp, Windowed
from streamfleet.state.stores import Stores

FAR = 10**12


def build(kind="rocksdb", *, retention=50, size=10, time_first=False, **options):
    return Stores.window("s", retention, size, kind=kind, **options).with_time_first(time_first)


VARIANTS = [("rocksdb", False), ("rocksdb", True), ("in_memory", False)]


@pytest.fixture(params=VARIANTS, ids=["key first", "time first", "in memory"])
def variant(request):
    kind, time_first = request.param
    return {"kind": kind, "time_first": time_first}


@pytest.fixture(params=[False, True], ids=["uncached", "cached"])
def task(request, new_task, variant):
    return new_task(build(**variant, caching=request.param))


@pytest.fixture
def filled(task, settled):
    for key, value, start in (("a", "x", 10), ("b", "y", 10), ("a", "z", 20), ("ab", "w", 15), ("a", "v", 35)):
        task.store.put(key, value, start)
    task.store.put("a", "u", 20)
    task.store.put("b", "gone", 12)
    task.store.put("b", None, 12)
    return settled(task)


def windows(rows):
    return [(key.key, key.window.start, value) for key, value in rows]


def test_fetch_looks_up_one_window(filled):
    assert filled.fetch("a", 20) == "u"
    assert filled.fetch("a", 21) is None
    assert filled.fetch("b", 12) is None
    assert filled.fetch("a", -1) is None


def test_fetch_between_is_inclusive_and_exact_about_the_key(filled):
    assert list(filled.fetch_between("a", 10, 20)) == [(10, "x"), (20, "u")]
    assert list(filled.fetch_between("a", 11, 19)) == []
    assert list(filled.fetch_between("a", -5, 2**70)) == [(10, "x"), (20, "u"), (35, "v")]
    assert list(filled.backward_fetch_between("a", 0, 100)) == [(35, "v"), (20, "u"), (10, "x")]
    assert list(filled.fetch_between("a", 20, 10)) == []


def test_fetch_range_bounds_are_inclusive(filled):
    assert sorted(windows(filled.fetch_range("a", "ab", 0, 20))) == [("a", 10, "x"), ("a", 20, "u"), ("ab", 15, "w")]
    assert sorted(windows(filled.fetch_range("ab", None, 0, 100))) == [("ab", 15, "w"), ("b", 10, "y")]
    assert sorted(windows(filled.fetch_range(None, "a", 15, 100))) == [("a", 20, "u"), ("a", 35, "v")]
    assert windows(filled.fetch_range("b", "a", 0, 100)) == []


def test_backward_scans_are_forward_scans_turned_round(filled):
    assert list(filled.backward_fetch_range("a", "b", 10, 20)) == list(filled.fetch_range("a", "b", 10, 20))[::-1]
    assert list(filled.backward_fetch_all(0, 100)) == list(filled.fetch_all(0, 100))[::-1]
    assert list(filled.backward_all()) == list(filled.all())[::-1]


def test_scans_have_the_order_of_their_kind(filled, variant):
    by_key = [("a", 10, "x"), ("a", 20, "u"), ("a", 35, "v"), ("ab", 15, "w"), ("b", 10, "y")]
    by_time = [("a", 10, "x"), ("b", 10, "y"), ("ab", 15, "w"), ("a", 20, "u"), ("a", 35, "v")]
    is_timed = variant["time_first"] or variant["kind"] == "in_memory"
    assert windows(filled.all()) == (by_time if is_timed else by_key)
    assert windows(filled.fetch_all(0, 100)) == (by_time if is_timed else by_key)
    assert windows(filled.fetch_range("a", "b", 0, 100)) == (by_time if variant["kind"] == "in_memory" else by_key)


def test_windows_have_the_size_of_the_store(filled):
    key, _ = next(iter(filled.fetch_range("b", "b", 0, 100)))
    assert key == Windowed("b", TimeWindow(10, 20))


def test_timestamped_values_keep_their_timestamp(new_task, variant, settled):
    task = new_task(build(**variant).timestamped())
    task.store.put("a", ValueAndTimestamp("x", 7), 0)
    assert settled(task).fetch("a", 0) == ValueAndTimestamp("x", 7)


def test_negative_starts_and_none_keys_are_refused(task):
    with pytest.raises(ValueError, match="negative window start -1"):
        task.store.put("a", "x", -1)
    with pytest.raises(TypeError, match="None as a key"):
        task.store.fetch_between(None, 0, 1)


# retention


def test_in_memory_forgets_exactly_on_time_and_counts_late_puts(new_task):
    task = new_task(build("in_memory"))
    store = task.store
    store.put("a", "old", 50)
    store.put("a", "edge", 51)
    store.put("c", "now", 100)
    assert windows(store.all()) == [("a", 51, "edge"), ("c", 100, "now")]
    task.logged()
    store.put("a", "late", 50)
    assert task.context.dropped == [("s", "expired")]
    assert task.logged() == [(b"a" + (50).to_bytes(8, "big") + bytes(4), b"late", 0)]
    assert store.fetch("a", 50) is None


def test_rocksdb_hides_old_rows_of_a_living_segment_without_counting(new_task):
    task = new_task(build())
    store = task.store
    store.put("a", "old", 50)
    store.put("a", "edge", 51)
    store.put("c", "now", 100)
    store.put("a", "late", 20)
    assert windows(store.all()) == [("a", 51, "edge"), ("c", 100, "now")]
    assert list(store.fetch_between("a", 0, 100)) == [(51, "edge")]
    assert store.fetch("a", 50) is None
    assert task.context.dropped == []


def test_time_first_rows_can_be_read_one_millisecond_longer(new_task):
    store = new_task(build(time_first=True)).store
    store.put("a", "old", 49)
    store.put("a", "edge", 50)
    store.put("c", "now", 100)
    assert windows(store.fetch_all(0, 100)) == [("a", 50, "edge"), ("c", 100, "now")]
    assert store.fetch("a", 50) == "edge"
    assert store.fetch("a", 49) is None


@pytest.mark.parametrize("time_first", [False, True])
def test_dead_segments_are_deleted_and_puts_into_them_counted(new_task, time_first):
    task = new_task(build(retention=100_000, time_first=time_first))
    store = task.store
    store.put("a", "first segment", 0)
    store.put("a", "second segment", 60_500)
    task.commit()
    store.put("b", "time goes on", 160_000)
    assert list(store._bottom._segments.buffer.scan(b"", (1).to_bytes(8, "big"))) == []
    store.put("a", "too late", 59_999)
    assert task.context.dropped == [("s", "expired")]
    assert store.fetch("a", 59_999) is None
    task.commit()
    task.reopen()
    assert windows(task.store.all()) == [("a", 60_500, "second segment"), ("b", 160_000, "time goes on")]


def test_scans_go_through_segments_in_order(new_task):
    store = new_task(build(retention=FAR)).store
    half = FAR // 2
    for key, start in (("b", 0), ("a", half), ("a", 1), ("c", 0)):
        store.put(key, "v", start)
    assert windows(store.all()) == [("a", 1, "v"), ("b", 0, "v"), ("c", 0, "v"), ("a", half, "v")]
    assert list(store.backward_fetch_between("a", 0, FAR)) == [(half, "v"), (1, "v")]


def test_time_goes_on_after_a_restart(new_task):
    task = new_task(build())
    task.store.put("a", "old", 10)
    task.store.put("b", "now", 100)
    task.commit()
    task.reopen()
    assert windows(task.store.all()) == [("b", 100, "now")]


def test_an_abort_turns_time_back(new_task, variant):
    task = new_task(build(**variant))
    task.store.put("a", "old", 10)
    task.commit()
    task.store.put("b", "now", 10_000_000)
    assert windows(task.store.all()) == [("b", 10_000_000, "now")]
    task.state.discard()
    assert windows(task.store.all()) == [("a", 10, "old")]


def test_a_cache_goes_on_showing_what_has_expired_below(new_task):
    task = new_task(build(caching=True))
    task.store.put("a", "old", 10)
    task.store.put("b", "now", 100)
    task.commit()
    assert windows(task.store.all()) == [("a", 10, "old"), ("b", 100, "now")]


# duplicates


def test_duplicates_are_kept_in_the_order_of_their_arrival(new_task, variant, settled):
    task = new_task(build(**variant, retain_duplicates=True))
    for value in "zyx":
        task.store.put("a", value, 20)
    task.store.put("a", "first", 10)
    store = settled(task)
    assert list(store.fetch_between("a", 0, 30)) == [(10, "first"), (20, "z"), (20, "y"), (20, "x")]
    assert list(store.backward_fetch_between("a", 0, 30)) == [(20, "x"), (20, "y"), (20, "z"), (10, "first")]
    assert len(list(store.all())) == 4


def test_nulls_do_not_delete_duplicates_but_are_logged_with_a_number_of_their_own(new_task, variant):
    task = new_task(build(**variant, retain_duplicates=True))
    for value in ("x", None, "y"):
        task.store.put("a", value, 10)
    assert list(task.store.fetch_between("a", 0, 30)) == [(10, "x"), (10, "y")]
    suffixes = [(key[-4:], value) for key, value, _ in task.logged()]
    assert suffixes == [(b"\0\0\0\1", b"x"), (b"\0\0\0\2", None), (b"\0\0\0\3", b"y")]


def test_duplicates_go_on_after_a_restart_and_after_a_restore(new_task, restore_task):
    task = new_task(build(retain_duplicates=True))
    task.store.put("a", "x", 10)
    task.commit()
    restored = restore_task(task)
    task.reopen()
    for store in (task.store, restored.store):
        store.put("a", "y", 10)
        assert list(store.fetch_between("a", 0, 30)) == [(10, "x"), (10, "y")]


def test_a_store_of_duplicates_has_no_cache(new_task):
    task = new_task(build(retain_duplicates=True, caching=True))
    assert not task.store.set_flush_listener(lambda *_: None, send_old_values=False)


# everything against a model

KEYS = ["a", "ab", "b", "a\x00", "é"]
OPERATIONS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(KEYS), st.none() | st.sampled_from("xyz"), st.integers(0, 300_000)),
    st.tuples(st.just("fetch"), st.sampled_from(KEYS), st.integers(0, 300_000), st.integers(0, 300_000)),
    st.tuples(
        st.just("range"),
        st.none() | st.sampled_from(KEYS),
        st.none() | st.sampled_from(KEYS),
        st.integers(0, 300_000),
        st.integers(0, 300_000),
    ),
    st.tuples(st.sampled_from(["flush", "commit"])),
)


@settings(max_examples=80, deadline=None)
@given(
    variant=st.sampled_from(VARIANTS),
    cache_bytes=st.sampled_from([None, 1, 300, 10_000]),
    operations=st.lists(OPERATIONS, max_size=40),
)
def test_a_window_store_is_a_dict_of_key_and_start(new_task, variant, cache_bytes, operations):
    kind, time_first = variant
    task = new_task(
        build(kind, retention=400_000, time_first=time_first, caching=cache_bytes is not None),
        cache_max_bytes=cache_bytes or 0,
    )
    model = {}
    for name, *arguments in operations:
        if name == "put":
            key, value, start = arguments
            task.store.put(key, value, start)
            model[key, start] = value
        elif name == "fetch":
            key, low, high = arguments
            found = sorted((s, v) for (k, s), v in model.items() if k == key and low <= s <= high and v is not None)
            assert list(task.store.fetch_between(key, low, high)) == found
            assert list(task.store.backward_fetch_between(key, low, high)) == found[::-1]
        elif name == "range":
            first, last, low, high = arguments
            found = sorted(
                (k, s, v)
                for (k, s), v in model.items()
                if v is not None
                and low <= s <= high
                and (first is None or k.encode() >= first.encode())
                and (last is None or k.encode() <= last.encode())
            )
            assert sorted(windows(task.store.fetch_range(first, last, low, high))) == found
        else:
            getattr(task, name)()
    left = sorted((k, s, v) for (k, s), v in model.items() if v is not None)
    assert sorted(windows(task.store.all())) == left
    assert all(task.store.fetch(k, s) == v for (k, s), v in model.items())
    task.close()
