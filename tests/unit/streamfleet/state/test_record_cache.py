from hypothesis import given
from hypothesis import strategies as st

from streamfleet.records import RecordContext
from streamfleet.state.record_cache import RecordCache
from streamfleet.state.store_caches import StoreCaches


def at(timestamp, headers=()):
    return RecordContext("in", 0, 0, timestamp, headers=headers)


def cache_of(max_bytes=10_000):
    """A store's cache and the list of what it flushed: one list of (key, value, timestamp) per flush."""
    flushes = []

    def flushed(updates):
        flushes.append([(key, entry.value, entry.context.timestamp) for key, entry in updates])

    shared = RecordCache(max_bytes)
    return shared, shared.store_cache(flushed), flushes


def test_flush_hands_over_the_last_updates_in_the_order_they_were_made():
    _, cache, flushes = cache_of()
    cache.put(b"a", b"1", at(1))
    cache.put(b"b", b"1", at(2))
    cache.put(b"a", b"2", at(3))
    cache.flush()
    cache.flush()
    assert flushes == [[(b"b", b"1", 2), (b"a", b"2", 3)]]


def test_flushed_entries_stay_for_reads_but_deleted_ones_do_not():
    _, cache, _ = cache_of()
    cache.put(b"a", b"1", at(1))
    cache.put(b"b", None, at(2))
    assert cache.get(b"b").value is None
    cache.flush()
    assert cache.get(b"a").value == b"1"
    assert cache.get(b"b") is None


def test_a_full_cache_flushes_all_dirty_entries_the_evicted_one_first():
    shared, cache, flushes = cache_of()
    cache.put(b"a", b"1", at(1))
    cache.put(b"b", b"1", at(2))
    cache.put(b"a", b"2", at(3))
    cache.put(b"c", b"1", at(4))
    shared.max_bytes = shared.size_bytes
    cache.put(b"d", b"1", at(5))
    assert flushes == [[(b"b", b"1", 2), (b"a", b"2", 3), (b"c", b"1", 4), (b"d", b"1", 5)]]
    assert cache.get(b"b") is None
    assert cache.get(b"a").value == b"2"
    cache.flush()
    assert len(flushes) == 1


def test_what_was_read_last_is_evicted_last():
    shared, cache, _ = cache_of()
    cache.put(b"a", b"1", at(1))
    cache.put(b"b", b"1", at(2))
    cache.get(b"a")
    shared.max_bytes = shared.size_bytes
    cache.put(b"c", b"1", at(3))
    assert cache.get(b"b") is None
    assert cache.get(b"a") is not None


def test_evicting_a_clean_entry_flushes_nothing():
    shared, cache, flushes = cache_of()
    cache.put_clean(b"a", b"1")
    shared.max_bytes = shared.size_bytes + 10
    cache.put(b"b", b"1", at(1))
    assert flushes == []
    assert cache.get(b"b") is not None
    assert cache.get(b"a") is None


def test_a_cache_without_room_flushes_every_put_at_once():
    shared, cache, flushes = cache_of(0)
    cache.put(b"a", b"1", at(1))
    cache.put(b"a", b"2", at(2))
    cache.put_clean(b"b", b"1")
    assert flushes == [[(b"a", b"1", 1)], [(b"a", b"2", 2)]]
    assert shared.size_bytes == 0
    assert cache.scan(b"", None) == []


def test_scan_shows_deleted_entries_and_excludes_the_end():
    _, cache, _ = cache_of()
    cache.put(b"c", b"3", at(1))
    cache.put(b"a", b"1", at(2))
    assert cache.scan(b"a", b"c") == [(b"a", b"1")]
    cache.put(b"b", None, at(3))
    assert cache.scan(b"a", None, reverse=True) == [(b"c", b"3"), (b"b", None), (b"a", b"1")]


def test_an_update_made_while_flushing_is_not_lost():
    shared = RecordCache(10_000)
    seen = []

    def flushed(updates):
        seen.append([(key, entry.value) for key, entry in updates])
        if len(seen) == 1:
            cache.put(b"a", b"again", at(9))

    cache = shared.store_cache(flushed)
    cache.put(b"a", None, at(1))
    cache.flush()
    assert cache.get(b"a").value == b"again"
    cache.flush()
    assert seen == [[(b"a", None)], [(b"a", b"again")]]


def test_stores_share_one_limit_and_the_growing_one_makes_room():
    shared = RecordCache(10_000)
    flushed_by = []
    one = shared.store_cache(lambda updates: flushed_by.append("one"))
    other = shared.store_cache(lambda updates: flushed_by.append("other"))
    one.put(b"a", b"1", at(1))
    shared.max_bytes = shared.size_bytes
    other.put(b"b", b"1", at(2))
    assert flushed_by == ["other"]
    assert one.get(b"a") is not None


def test_size_returns_to_zero():
    shared, cache, _ = cache_of()
    cache.put(b"a", b"1", at(1, (("h", b"value"), ("n", None))))
    cache.put(b"a", b"longer", at(2))
    cache.put(b"b", None, at(3))
    cache.scan(b"", None)
    cache.flush()
    cache.put(b"c", b"1", at(4))
    assert shared.size_bytes > 0
    cache.clear()
    assert shared.size_bytes == 0
    cache.flush()
    assert cache.scan(b"", None) == []


def test_headers_count():
    plain, cache, _ = cache_of()
    cache.put(b"a", b"1", at(1))
    with_headers, other, _ = cache_of()
    other.put(b"a", b"1", at(1, (("name", b"12345"),)))
    assert with_headers.size_bytes == plain.size_bytes + 9


def test_a_smaller_share_of_the_memory_holds_from_the_next_update_on():
    caches = StoreCaches(10_000, 0)
    flushed = []
    store = caches.record.store_cache(flushed.extend)
    for number in range(20):
        store.put(b"%02d" % number, b"value", None)
    assert flushed == []
    caches.resize(200, 0)
    store.put(b"99", b"value", None)
    assert len(flushed) > 15
    assert caches.record.size_bytes <= 200


def test_an_object_that_is_updated_again_is_flushed_once_behind_what_was_updated_before():
    _, cache, flushes = cache_of()
    for key, held, timestamp in [(b"a", "1", 1), (b"b", "1", 2), (b"a", "22", 3)]:
        cache.put_object(key, held, len(held), at(timestamp), str.encode)
    cache.flush()
    assert flushes == [[(b"b", b"1", 2), (b"a", b"22", 3)]]


def test_an_object_that_is_updated_while_it_is_flushed_is_handed_over_as_it_was_and_then_again():
    shared, flushes = RecordCache(10_000), []

    def flushed(updates):
        for key, entry in updates:
            if not flushes:
                cache.put_object(b"b", "new", 3, at(9), str.encode)
            flushes.append((key, entry.value, entry.context.timestamp))

    cache = shared.store_cache(flushed)
    cache.put_object(b"a", "1", 1, at(1), str.encode)
    cache.put_object(b"b", "1", 1, at(2), str.encode)
    cache.flush()
    cache.flush()
    assert flushes == [(b"a", b"1", 1), (b"b", b"1", 2), (b"b", b"new", 9)]


OBJECT_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "object", "delete", "get", "flush"]), st.integers(0, 3), st.text("ab", max_size=9)
    )
)


@given(OBJECT_STEPS, st.integers(1, 400))
def test_objects_and_bytes_are_flushed_evicted_and_counted_alike(steps, max_bytes):
    """One cache is given objects where the other is given their bytes."""
    (one, objects, flushed), (other, plain, expected) = cache_of(max_bytes), cache_of(max_bytes)
    for number, (step, key_number, text) in enumerate(steps):
        key, context = b"%d" % key_number, at(number)
        if step == "object":
            objects.put_object(key, text, len(text), context, str.encode)
            plain.put(key, text.encode(), context)
            continue
        for cache in (objects, plain):
            if step == "put":
                cache.put(key, text.encode(), context)
            elif step == "delete":
                cache.put(key, None, context)
            elif step == "flush":
                cache.flush()
        if step == "get":
            found, wanted = objects.get(key), plain.get(key)
            assert (found and found.value) == (wanted and wanted.value)
        assert one.size_bytes == other.size_bytes
        assert flushed == expected
