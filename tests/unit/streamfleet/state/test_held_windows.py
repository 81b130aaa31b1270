"""A window store that holds its values as objects answers, logs and drops as one that holds bytes, expiry included."""

from hypothesis import given, settings
from hypothesis import strategies as st

from streamfleet import Stores, serdes
from streamfleet.records import ValueAndTimestamp

KEYS = st.sampled_from(["a", "ab"])
DELTAS = st.integers(-150, 40)
"""Backwards as far as rows that are hidden, and rows that are gone."""
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, DELTAS, st.integers(0, 9) | st.none()),
        st.tuples(st.just("put"), KEYS, st.integers(0, 30), st.integers(0, 9)),
        st.tuples(st.just("fetch"), KEYS, DELTAS),
        st.tuples(st.just("between"), KEYS, DELTAS, st.integers(0, 80)),
        st.tuples(st.sampled_from(["commit", "abort", "reopen", "all", "view"])),
    ),
    max_size=60,
)


def rows(iterator):
    with iterator as found:
        return list(found)


def changelog_by_key(task):
    """Between keys the order within a commit does not matter: a delete is logged when it is made, a held value with the commit."""
    return sorted(((r.key, r.value, r.timestamp) for r in task.context.logged), key=lambda entry: entry[0])


class Twins:
    def __init__(self, new_task, **options):
        store = Stores.timestamped_window("s", 100, 10, key_serde=serdes.string(), value_serde=serdes.long(), **options)
        cache = 400 if options["caching"] else 0
        self.tasks = [
            new_task(store, deduplicate_changelog=True, object_max_bytes=size, cache_max_bytes=cache)
            for size in (5_000, 0)
        ]

    def both(self, act):
        holding, plain = (act(task) for task in self.tasks)
        assert holding == plain


@settings(max_examples=60)
@given(logging=st.booleans(), steps=STEPS)
def test_values_are_held_until_the_commit(new_task, logging, steps):
    twins = Twins(new_task, caching=False, logging=logging)
    assert twins.tasks[0].store._objects is not None
    play(twins, steps)


@settings(max_examples=30)
@given(steps=STEPS)
def test_values_are_held_in_the_record_cache(new_task, steps):
    """There the object cache has no part, so the other twin holds bytes because it is told to."""
    twins = Twins(new_task, caching=True)
    assert twins.tasks[0].store._object_entries is not None
    twins.tasks[1].store._object_entries = None
    play(twins, [step for step in steps if step[0] != "reopen"])


def play(twins, steps):
    now = 1000
    for name, *given_ in steps:
        if name == "put":
            key, delta, value = given_
            now, time = max(now, now + delta), now + delta
            row = None if value is None else ValueAndTimestamp(value, time)
            twins.both(lambda task, k=key, r=row, t=time: task.store.put(k, r, t))
        elif name == "fetch":
            key, delta = given_
            twins.both(lambda task, k=key, t=now + delta: task.store.fetch(k, t))
        elif name == "between":
            key, delta, ahead = given_
            start = now + delta
            twins.both(lambda task, k=key, t=start, a=ahead: rows(task.store.fetch_between(k, t, t + a)))
        elif name == "all":
            twins.both(lambda task: rows(task.store.all()))
        elif name == "view":
            twins.both(lambda task, t=now: task.store.current_view().fetch("a", t))
            twins.both(lambda task: rows(task.store.current_view().all()))
        elif name == "abort":
            twins.both(lambda task: task.state.discard())
        else:
            twins.both(lambda task, act=name: getattr(task, act)())
    twins.both(lambda task: task.commit())
    twins.both(lambda task: rows(task.store.all()))
    twins.both(changelog_by_key)
    twins.both(lambda task: task.context.dropped)
    for task in twins.tasks:
        task.close()
