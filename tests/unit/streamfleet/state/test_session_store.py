"""One contract for every session store, and where the kinds differ."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfleet.records import SessionWindow, Windowed
from streamfleet.state.stores import Stores

VARIANTS = [("rocksdb", False), ("rocksdb", True), ("in_memory", False)]


def build(kind="rocksdb", *, retention=50, time_first=False, **options):
    return Stores.session("s", retention, kind=kind, **options).with_time_first(time_first)


def session(key, start, end):
    return Windowed(key, SessionWindow(start, end))


def sessions(rows):
    return [(key.key, key.window.start, key.window.end, value) for key, value in rows]


@pytest.fixture(params=VARIANTS, ids=["key first", "time first", "in memory"])
def variant(request):
    kind, time_first = request.param
    return {"kind": kind, "time_first": time_first}


@pytest.fixture(params=[False, True], ids=["uncached", "cached"])
def task(request, new_task, variant):
    return new_task(build(**variant, caching=request.param))


@pytest.fixture
def filled(task, settled):
    store = task.store
    for key, start, end, value in (("a", 0, 10, "x"), ("a", 20, 30, "y"), ("b", 5, 15, "z"), ("ab", 12, 40, "w")):
        store.put(session(key, start, end), value)
    store.put(session("b", 1, 2), "gone")
    store.remove(session("b", 1, 2))
    store.put(session("b", 3, 4), "gone")
    store.put(session("b", 3, 4), None)
    return settled(task)


def test_fetch_session_needs_both_bounds(filled):
    assert filled.fetch_session("a", 0, 10) == "x"
    assert filled.fetch_session("a", 0, 11) is None
    assert filled.fetch_session("b", 1, 2) is None
    assert filled.fetch_session("a", -1, 5) is None


def test_fetch_finds_the_sessions_of_exactly_that_key(filled):
    assert sessions(filled.fetch("a")) == [("a", 0, 10, "x"), ("a", 20, 30, "y")]
    assert sessions(filled.backward_fetch("a")) == [("a", 20, 30, "y"), ("a", 0, 10, "x")]


def test_sessions_are_found_by_earliest_end_and_latest_start(filled):
    assert sessions(filled.find_sessions("a", 10, 20)) == [("a", 0, 10, "x"), ("a", 20, 30, "y")]
    assert sessions(filled.find_sessions("a", 11, 19)) == []
    assert sessions(filled.find_sessions("a", 11, 20)) == [("a", 20, 30, "y")]
    assert sessions(filled.find_sessions("a", -7, 0)) == [("a", 0, 10, "x")]
    assert sessions(filled.backward_find_sessions("a", 0, 100)) == [("a", 20, 30, "y"), ("a", 0, 10, "x")]


def test_ranges_are_ordered_as_their_kind_does(filled, variant):
    by_key = [("a", 0, 10, "x"), ("a", 20, 30, "y"), ("ab", 12, 40, "w"), ("b", 5, 15, "z")]
    by_end = [("a", 0, 10, "x"), ("b", 5, 15, "z"), ("a", 20, 30, "y"), ("ab", 12, 40, "w")]
    expected = by_end if variant["kind"] == "in_memory" else by_key
    assert sessions(filled.fetch_range(None, None)) == expected
    assert sessions(filled.backward_fetch_range("a", "b")) == expected[::-1]
    assert sessions(filled.find_sessions_range("a", "ab", 11, 14)) == [("ab", 12, 40, "w")]
    assert sessions(filled.backward_find_sessions_range("ab", None, 0, 14)) == [
        row for row in expected[::-1] if row[0] in ("ab", "b")
    ]
    assert sessions(filled.fetch_range("b", "a")) == []


def test_ended_sessions_come_in_the_order_of_their_end(filled):
    assert sessions(filled.find_ended_sessions(10, 30)) == [("a", 0, 10, "x"), ("b", 5, 15, "z"), ("a", 20, 30, "y")]
    assert sessions(filled.find_ended_sessions(11, 14)) == []
    assert sessions(filled.find_ended_sessions(30, 10)) == []
    assert len(sessions(filled.find_ended_sessions(-1, 2**70))) == 4


def test_in_memory_sessions_that_end_together_come_with_the_latest_start_first(new_task):
    store = new_task(build("in_memory")).store
    for key, start in (("a", 1), ("a", 3), ("b", 2), ("a", 2)):
        store.put(session(key, start, 10), "v")
    starts = [(key, start) for key, start, _, _ in sessions(store.fetch_range(None, None))]
    assert starts == [("a", 3), ("a", 2), ("a", 1), ("b", 2)]
    assert [start for _, start, _, _ in sessions(store.find_sessions("a", 0, 2))] == [2, 1]
    assert [start for _, start, _, _ in sessions(store.backward_fetch("a"))] == [1, 2, 3]


@pytest.mark.parametrize("bad", [session("a", 5, 4), session("a", -1, 4)])
def test_impossible_sessions_are_refused(task, bad):
    with pytest.raises(ValueError, match="impossible session"):
        task.store.put(bad, "x")


def test_a_plain_key_is_not_a_session(task):
    with pytest.raises(TypeError, match="takes a Windowed session, got 'a'"):
        task.store.put("a", "x")


# retention


def test_in_memory_forgets_exactly_on_time_and_counts_late_puts(new_task):
    task = new_task(build("in_memory"))
    store = task.store
    store.put(session("a", 0, 50), "old")
    store.put(session("a", 0, 51), "edge")
    store.put(session("c", 90, 100), "now")
    assert sessions(store.fetch_range(None, None)) == [("a", 0, 51, "edge"), ("c", 90, 100, "now")]
    store.put(session("a", 10, 50), "late")
    store.remove(session("a", 10, 50))
    assert task.context.dropped == [("s", "expired")]


@pytest.mark.parametrize("time_first", [False, True])
def test_rocksdb_hides_old_sessions_of_a_living_segment(new_task, time_first):
    task = new_task(build(time_first=time_first))
    store = task.store
    store.put(session("a", 0, 50), "old")
    store.put(session("a", 0, 51), "edge")
    store.put(session("c", 90, 100), "now")
    store.put(session("a", 10, 40), "late")
    assert sessions(store.fetch_range(None, None)) == [("a", 0, 51, "edge"), ("c", 90, 100, "now")]
    assert sessions(store.fetch("a")) == [("a", 0, 51, "edge")]
    assert store.fetch_session("a", 0, 50) is None
    assert task.context.dropped == []


@pytest.mark.parametrize("time_first", [False, True])
def test_dead_segments_are_deleted_and_puts_into_them_counted(new_task, time_first):
    task = new_task(build(retention=100_000, time_first=time_first))
    store = task.store
    store.put(session("a", 0, 59_999), "first segment")
    task.commit()
    store.put(session("b", 0, 160_000), "time goes on")
    assert sessions(store.find_ended_sessions(0, 100_000)) == []
    store.put(session("a", 0, 59_998), "too late")
    store.remove(session("a", 0, 59_999))
    assert task.context.dropped == [("s", "expired")]


# everything against a model

KEYS = ["a", "ab", "b", "a\x00"]
TIMES = st.integers(0, 200_000)
OPERATIONS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(KEYS), TIMES, TIMES, st.none() | st.sampled_from("xyz")),
    st.tuples(st.just("remove"), st.sampled_from(KEYS), TIMES, TIMES),
    st.tuples(st.just("find"), st.sampled_from(KEYS), TIMES, TIMES),
    st.tuples(st.just("range"), st.none() | st.sampled_from(KEYS), st.none() | st.sampled_from(KEYS), TIMES, TIMES),
    st.tuples(st.just("ended"), TIMES, TIMES),
    st.tuples(st.sampled_from(["flush", "commit"])),
)


@settings(max_examples=80, deadline=None)
@given(
    variant=st.sampled_from(VARIANTS),
    cache_bytes=st.sampled_from([None, 1, 300, 10_000]),
    operations=st.lists(OPERATIONS, max_size=40),
)
def test_a_session_store_is_a_dict_of_key_start_and_end(new_task, variant, cache_bytes, operations):
    kind, time_first = variant
    task = new_task(
        build(kind, retention=300_000, time_first=time_first, caching=cache_bytes is not None),
        cache_max_bytes=cache_bytes or 0,
    )
    model = {}

    def found(low=None, high=None, *, ends=(0, 10**9), latest_start=10**9):
        return sorted(
            (k, s, e, v)
            for (k, s, e), v in model.items()
            if v is not None
            and (low is None or k.encode() >= low.encode())
            and (high is None or k.encode() <= high.encode())
            and ends[0] <= e <= ends[1]
            and s <= latest_start
        )

    for name, *arguments in operations:
        if name in ("put", "remove"):
            key, one, other, *value = arguments
            start, end = sorted((one, other))
            model[key, start, end] = value[0] if value else None
            getattr(task.store, name)(session(key, start, end), *value)
        elif name == "find":
            key, earliest, latest = arguments
            expected = found(key, key, ends=(earliest, 10**9), latest_start=latest)
            assert sorted(sessions(task.store.find_sessions(key, earliest, latest))) == expected
            assert sorted(sessions(task.store.backward_find_sessions(key, earliest, latest))) == expected
        elif name == "range":
            low, high, earliest, latest = arguments
            expected = found(low, high, ends=(earliest, 10**9), latest_start=latest)
            assert sorted(set(sessions(task.store.find_sessions_range(low, high, earliest, latest)))) == expected
        elif name == "ended":
            rows = sessions(task.store.find_ended_sessions(*arguments))
            assert sorted(rows) == found(ends=arguments)
            assert [end for _, _, end, _ in rows] == sorted(end for _, _, end, _ in rows)
        else:
            getattr(task, name)()
    task.flush()
    assert sorted(set(sessions(task.store.fetch_range(None, None)))) == found()
    task.close()
