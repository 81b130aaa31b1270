"""Stream-stream joins against a nested loop over everything that came before.

First with a grace larger than any disorder in the data, so that no record is forgotten before it could meet another; then with a
small one: records come too late, are forgotten, and go alone while others of their time still come.
"""

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import streamfleet as sf

FOREVER = 10**6
slow = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
arrivals = st.lists(
    st.tuples(st.sampled_from("LR"), st.sampled_from([*"ab", None]), st.integers(0, 60), st.booleans()), max_size=30
)
kinds = st.sampled_from(["rocksdb", "in_memory"])
END = 10**7


def piped(script):
    """The last two records close every window, on either side."""
    records = [
        (side, key, None if is_null else f"{side}{index}", timestamp)
        for index, (side, key, timestamp, is_null) in enumerate(script)
    ]
    return [*records, ("L", "end", "L-end", END), ("R", "end", "R-end", END)]


class NestedLoop:
    """One record after the other; each looks at all that came before it."""

    def __init__(self, before, after, *, left_outer, right_outer):
        self.ahead = {"L": after, "R": before}
        self.behind = {"L": before, "R": after}
        self.is_outer = {"L": left_outer, "R": right_outer}
        self.waits = left_outer
        self.seen = {"L": [], "R": []}
        self.waiting = []
        self.stream_time = -1
        self.results = []
        self.dropped = 0

    def arrive(self, side, key, value, timestamp):
        other = "R" if side == "L" else "L"
        self.stream_time = max(self.stream_time, timestamp)
        if value is None or (key is None and not self.is_outer[side]):
            self.dropped += 1
            return
        if key is None:
            self.emit(side, key, value, None, timestamp)
            return
        if timestamp == self.stream_time:
            self.close()
        low, high = timestamp - self.behind[side], timestamp + self.ahead[side]
        found = sorted(((t, v) for k, t, v in self.seen[other] if k == key and low <= t <= high), key=lambda e: e[0])
        for other_time, other_value in found:
            self.waiting = [w for w in self.waiting if w[:3] != (other_time, other, key)]
            self.emit(side, key, value, other_value, max(timestamp, other_time))
        if not found and self.is_outer[side]:
            if max(0, high) < self.stream_time:
                self.emit(side, key, value, None, timestamp)
            else:
                self.waiting.append((timestamp, side, key, value))
        self.seen[side].append((key, timestamp, value))

    def close(self):
        for waiting in sorted(self.waiting, key=lambda w: (w[0], w[1] == "L", w[2])):
            timestamp, side, key, value = waiting
            if timestamp + self.ahead[side] + FOREVER < self.stream_time:
                self.waiting.remove(waiting)
                self.emit(side, key, value, None, timestamp)

    def emit(self, side, key, own, other, timestamp):
        left, right = (own, other) if side == "L" else (other, own)
        self.results.append((key, f"{left}+{right}", timestamp))


def joined(method, windows, **options):
    def build(builder):
        left, right = builder.stream("L"), builder.stream("R")
        join = getattr(left, method)
        join(right, lambda one, other: f"{one}+{other}", window=windows, **options).to("out")

    return build


@slow
@given(arrivals, st.integers(-5, 20), st.integers(0, 20), kinds)
@pytest.mark.parametrize(
    ("method", "left_outer", "right_outer"),
    [("join", False, False), ("left_join", True, False), ("outer_join", True, True)],
)
def test_a_join_finds_what_a_nested_loop_finds(run, method, left_outer, right_outer, script, before, after, kind):
    after = max(after, -before)
    windows = sf.JoinWindows(before, after, FOREVER)
    results, _, dropped = run(joined(method, windows, kind=kind), piped(script))
    model = NestedLoop(before, after, left_outer=left_outer, right_outer=right_outer)
    for record in piped(script):
        model.arrive(*record)
    found = [(r.key and r.key.decode(), r.value.decode(), r.timestamp) for r in results]
    assert found == model.results
    assert dropped == model.dropped


class Forgetting(NestedLoop):
    """The nested loop, but each side forgets what is older than its join window and grace, by the times it was given itself."""

    def __init__(self, before, after, grace, **outer):
        super().__init__(before, after, **outer)
        self.grace = grace
        self.retention = before + after + grace
        self.known_until = {"L": -1, "R": -1}
        self.earliest_waiting = None
        """Nothing that waits is older; None: nothing waits. It says when to look, and is not made later by partners found."""
        self.is_late = 0

    def arrive(self, side, key, value, timestamp):
        for store in "LR":
            self.seen[store] = [e for e in self.seen[store] if e[1] > self.known_until[store] - self.retention]
        self.looking = side
        kept, waiting = len(self.seen[side]), list(self.waiting)
        super().arrive(side, key, value, timestamp)
        for timestamp_waiting, *_ in (w for w in self.waiting if w not in waiting):
            known = self.earliest_waiting
            self.earliest_waiting = timestamp_waiting if known is None else min(known, timestamp_waiting)
        if key is None:
            return
        self.known_until[side] = max(self.known_until[side], timestamp)
        # A retention of no time at all forgets every record.
        if value is not None and timestamp <= self.known_until[side] - self.retention:
            del self.seen[side][kept:]
            self.is_late += 1

    def close(self):
        earliest = self.earliest_waiting
        if earliest is not None and earliest + self.ahead[self.looking] + self.grace >= self.stream_time:
            return
        self.earliest_waiting, is_open = None, set()
        for waiting in sorted(self.waiting, key=lambda w: (w[0], w[1] == "L", w[2])):
            timestamp, side, key, value = waiting
            self.earliest_waiting = timestamp
            if len(is_open) == 2:
                return
            if timestamp + self.ahead[side] + self.grace >= self.stream_time:
                is_open.add(side)
                continue
            self.waiting.remove(waiting)
            self.emit(side, key, value, None, timestamp)


disorderly = st.lists(
    st.tuples(st.sampled_from("LR"), st.sampled_from("ab"), st.integers(0, 60), st.just(False)), min_size=5, max_size=40
)


@settings(slow, max_examples=80)
@given(disorderly, st.integers(0, 8), st.integers(0, 8), st.integers(0, 6), kinds)
@pytest.mark.parametrize(
    ("method", "left_outer", "right_outer"),
    [("join", False, False), ("left_join", True, False), ("outer_join", True, True)],
)
def test_with_a_small_grace_late_records_meet_only_what_is_still_known(
    run, method, left_outer, right_outer, script, before, after, grace, kind
):
    windows = sf.JoinWindows(before, after, grace)
    results, _, dropped = run(joined(method, windows, kind=kind), piped(script))
    model = Forgetting(before, after, grace, left_outer=left_outer, right_outer=right_outer)
    for record in piped(script):
        model.arrive(*record)
    event("a record was late" if model.is_late else "no record was late")
    found = [(r.key.decode(), r.value.decode(), r.timestamp) for r in results]
    assert found == model.results
    if kind == "in_memory":  # stores on disk take late records as long as a segment has room, and hide them
        assert dropped == model.is_late


@slow
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60)), max_size=20), st.integers(0, 15), kinds)
def test_a_stream_joined_with_itself_meets_itself_once(run, script, difference, kind):
    def build(builder):
        stream = builder.stream("in")
        windows = sf.JoinWindows(difference, difference, FOREVER)
        stream.join(stream, lambda one, other: f"{one}+{other}", window=windows, kind=kind).to("out")

    results, _, _ = run(build, [("in", key, str(index), time) for index, (key, time) in enumerate(script)])
    expected = sorted(
        (key, f"{one}+{other}")
        for one, (key, time) in enumerate(script)
        for other, (other_key, other_time) in enumerate(script)
        if key == other_key and abs(time - other_time) <= difference
    )
    assert sorted((r.key.decode(), r.value.decode()) for r in results) == expected


def test_what_waits_for_a_partner_is_looked_for_once_in_an_interval(run):
    windows = sf.JoinWindows(5, 5, 0)
    records = [("L", "a", "1", 0), ("L", "b", "2", 20), ("L", "c", "3", 40)]
    results, stores, _ = run(joined("left_join", windows), records, outer_join_emit_interval_ms=1000)
    assert results == []
    (waiting,) = (rows for name, rows in stores.items() if "OUTERSHARED" in name)
    assert [key.key for key in waiting] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"join with a KStream needs window=JoinWindows\(\.\.\.\)"),
        ({"window": sf.TimeWindows(5, 0)}, "needs window=JoinWindows"),
        ({"window": sf.JoinWindows(5, 5, 0), "this_store": sf.Stores.window("w", 10, 10)}, "does not keep all records"),
        (
            {
                "window": sf.JoinWindows(5, 5, 0),
                "this_store": sf.Stores.window("w", 20, 10, retain_duplicates=True),
            },
            "window_size 10 and retention 20, but JoinWindows.* needs 10 and 10",
        ),
        (
            {
                "window": sf.JoinWindows(5, 5, 0),
                "this_store": sf.Stores.window("w", 10, 10, retain_duplicates=True),
                "other_store": sf.Stores.window("w", 10, 10, retain_duplicates=True),
            },
            "both named w",
        ),
    ],
)
def test_a_stream_join_that_cannot_be_is_refused(options, message):
    builder = sf.StreamsBuilder()
    left, right = builder.stream("L"), builder.stream("R")
    with pytest.raises(sf.TopologyError, match=message):
        left.join(right, lambda one, other: one, **options)


def test_an_unknown_option_of_a_join_is_refused():
    builder = sf.StreamsBuilder()
    with pytest.raises(TypeError, match="windwo"):
        builder.stream("L").join(builder.stream("R"), lambda one, other: one, windwo=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, -1, 0), r"before \(-1 ms\) and after \(-1 ms\) leave no time"),
        ((5, 5, -1), "grace of JoinWindows must not be negative"),
        ((5, 5), "JoinWindows was given no grace"),
        (("5s", 5, 0), "before of JoinWindows must be a duration"),
    ],
)
def test_join_windows_that_cannot_be_are_refused(arguments, message):
    with pytest.raises((sf.OptionError, TypeError), match=message):
        sf.JoinWindows(*arguments)
