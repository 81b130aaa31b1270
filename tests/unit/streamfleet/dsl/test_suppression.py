"""Suppression against a model: one update per key, in a list."""

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import streamfleet as sf
from streamfleet import BufferConfig, Suppressed
from streamfleet.testing import TopologyTestDriver

slow = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
updates = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([*"xyz", None]), st.integers(0, 40)), max_size=30)


def suppressed(wait, buffer):
    def build(builder):
        builder.table("in").suppress(Suppressed.until_time_limit(wait, buffer)).to_stream().to("out")

    return build


class Model:
    def __init__(self, wait, limit=None, max_bytes=None):
        self.wait, self.limit, self.max_bytes = wait, limit, max_bytes
        self.held = {}
        self.sizes = {}
        self.table = {}
        self.stream_time = -1
        self.results = []

    def update(self, key, value, timestamp):
        self.stream_time = max(self.stream_time, timestamp)
        time = self.held[key][0] if key in self.held else timestamp
        self.held[key] = (time, value, timestamp)
        self.note_size(key, value)
        self.evict(lambda: min(self.held.values())[0] <= self.stream_time - self.wait)
        self.evict(self.is_full)

    def note_size(self, key, value):
        """As Kafka Streams counts: two times, offset, partition and topic `in`; the key; the values, an old one that is the prior
        one as nothing.
        """
        old, self.table[key] = self.table.get(key, ""), value
        prior = self.sizes[key][0] if key in self.sizes else old
        self.sizes[key] = (
            prior,
            8 + 8 + 8 + 4 + 2 + len(key) + len(prior) + (len(old) if old != prior else 0) + len(value),
        )

    def is_full(self):
        if self.max_bytes is not None and sum(size for _, size in self.sizes.values()) > self.max_bytes:
            return True
        return self.limit is not None and len(self.held) > self.limit

    def evict(self, is_too_much):
        while self.held and is_too_much():
            key = min(self.held, key=lambda key: (self.held[key][0], key))
            _, value, timestamp = self.held.pop(key)
            del self.sizes[key]
            self.results.append((key, value, timestamp))


@slow
@given(updates, st.integers(0, 15), st.sampled_from([0, 1, 2, 100]))
def test_the_last_update_within_the_time_limit_is_emitted(run, script, wait, limit):
    build = suppressed(wait, BufferConfig.max_records(limit))
    results, _, _ = run(build, [("in", *update) for update in script], statestore_cache_max_bytes=0)
    model = Model(wait, limit)
    for key, value, timestamp in script:
        model.update(key, value or "", timestamp)
    found = [(r.key.decode(), "" if r.value is None else r.value.decode(), r.timestamp) for r in results]
    assert found == model.results


long_values = st.sampled_from(["z", "x" * 10, "y" * 40, None])
long_updates = st.lists(st.tuples(st.sampled_from(["a", "bb", "c" * 20]), long_values, st.integers(0, 40)), max_size=30)


@slow
@given(long_updates, st.integers(0, 60), st.sampled_from([0, 31, 60, 100, 1000]), st.booleans())
def test_a_buffer_of_so_many_bytes_emits_the_earliest_when_it_is_full(run, script, wait, max_bytes, is_limited):
    buffer = BufferConfig.max_bytes(max_bytes)
    buffer = buffer.with_max_records(2) if is_limited else buffer
    results, _, _ = run(suppressed(wait, buffer), [("in", *update) for update in script], statestore_cache_max_bytes=0)
    model = Model(wait, limit=2 if is_limited else None, max_bytes=max_bytes)
    for key, value, timestamp in script:
        model.update(key, value or "", timestamp)
    found = [(r.key.decode(), "" if r.value is None else r.value.decode(), r.timestamp) for r in results]
    assert found == model.results


def test_a_buffer_of_bytes_that_must_not_emit_early_ends_the_app():
    config = sf.StreamsConfig(
        application_id="app", default_key_serde=sf.serdes.string(), default_value_serde=sf.serdes.string()
    )
    builder = sf.StreamsBuilder(config)
    buffer = BufferConfig.max_bytes(40).shut_down_when_full()
    builder.table("in").suppress(Suppressed.until_time_limit(100, buffer, name="held")).to_stream().to("out")
    with TopologyTestDriver(builder.build(), config) as driver:
        driver.pipe_raw("in", b"a", b"1", 0)
        with pytest.raises(sf.StreamsError, match=r"buffer of operator held .*: 2 of \d+ records, 64 of 40 bytes"):
            driver.pipe_raw("in", b"b", b"1", 0)


class ClosingWindows:
    """What `until_window_closes` gives, record by record. Aggregation and suppression have a stream time of their own."""

    def __init__(self, wait):
        self.wait = wait
        self.stream_time = self.emit_time = -1
        self.held = {}
        self.results = []
        self.dropped = 0

    def hold(self, key, start, end, count, timestamp):
        """Rows leave by window end, then by key bytes: the window is part of the key."""
        self.emit_time = max(self.emit_time, timestamp)
        self.held[key, start, end] = (count, timestamp)
        for window in sorted(self.held, key=lambda window: (window[2], *self.row_order(window))):
            if window[2] <= self.emit_time - self.wait:
                value, time = self.held.pop(window)
                if value is not None:
                    self.results.append((*window, value, time))


class ClosingTimeWindows(ClosingWindows):
    def __init__(self, size, advance, grace):
        super().__init__(grace)
        self.size, self.advance = size, advance
        self.counts = {}

    @staticmethod
    def row_order(window):
        return window[0], window[1]

    def arrive(self, key, timestamp):
        self.stream_time = max(self.stream_time, timestamp)
        first = max(0, timestamp - self.size + self.advance) // self.advance * self.advance
        for start in range(first, timestamp + 1, self.advance):
            end = start + self.size
            if end <= self.stream_time - self.wait:
                self.dropped += 1
                continue
            count, time = self.counts.get((key, start), (0, -1))
            self.counts[key, start] = (count + 1, max(time, timestamp))
            self.hold(key, start, end, *self.counts[key, start])


class ClosingSessions(ClosingWindows):
    def __init__(self, gap, grace):
        super().__init__(gap + grace)
        self.gap = gap
        self.sessions = {}
        self.last_end = -1

    @staticmethod
    def row_order(window):
        return window[0], window[2], window[1]

    def arrive(self, key, timestamp):
        self.stream_time = max(self.stream_time, timestamp)
        near = [
            (k, start, end)
            for k, start, end in sorted(self.sessions, key=lambda s: (s[2], s[1]))
            if k == key
            and start <= timestamp + self.gap
            and end >= timestamp - self.gap
            and end > self.last_end - self.wait  # the store keeps no more
        ]
        start = min([timestamp, *(s[1] for s in near)])
        end = max([timestamp, *(s[2] for s in near)])
        if end < self.stream_time - self.wait:
            self.dropped += 1
            return
        count = 1 + sum(self.sessions[s] for s in near)
        if (start, end) != (timestamp, timestamp):
            for session in near:
                del self.sessions[session]
                self.hold(*session, None, session[2])
        self.sessions[key, start, end] = count
        self.last_end = max(self.last_end, end)
        self.hold(key, start, end, count, end)


disorderly = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60)), min_size=5, max_size=40)


def check_windows(run, windows, model, script):
    def build(builder):
        grouped = builder.stream("in").group_by_key(key_serde=sf.serdes.string())
        counts = grouped.windowed_by(windows).count(store="counts")
        final = counts.suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
        shown = final.to_stream(lambda key, _: f"{key.key} {key.window.start} {key.window.end}")
        shown.to("out", value_serde=sf.serdes.long())

    script = [*script, ("end", 10**6)]
    results, _, dropped = run(build, [("in", key, "x", time) for key, time in script], statestore_cache_max_bytes=0)
    for key, time in script:
        model.arrive(key, time)
    event("a record was late" if model.dropped else "no record was late")
    found = [(r.key.decode(), int.from_bytes(r.value, "big"), r.timestamp) for r in results]
    assert found == [(f"{key} {start} {end}", count, time) for key, start, end, count, time in model.results]
    assert dropped == model.dropped


@slow
@given(disorderly, st.integers(1, 12), st.integers(1, 12), st.integers(0, 8))
def test_windows_close_once_each_however_records_come(run, script, size, advance, grace):
    advance = min(advance, size)
    check_windows(run, sf.TimeWindows(size, grace, advance=advance), ClosingTimeWindows(size, advance, grace), script)


@slow
@given(disorderly, st.integers(0, 8), st.integers(0, 8))
def test_sessions_close_when_nothing_can_join_them_any_more(run, script, gap, grace):
    check_windows(run, sf.SessionWindows(gap, grace), ClosingSessions(gap, grace), script)


@slow
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 100)), max_size=30), st.integers(1, 20))
def test_a_closed_window_is_emitted_once_with_its_last_value(run, script, size):
    def build(builder):
        grouped = builder.stream("in").group_by_key(key_serde=sf.serdes.string())
        counts = grouped.windowed_by(sf.TimeWindows(size, 0)).count(store="counts")
        final = counts.suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
        final.to_stream(lambda windowed, _: windowed.key).to("out", value_serde=sf.serdes.long())

    ordered = sorted(script, key=lambda entry: entry[1])
    results, _, _ = run(build, [("in", key, "x", time) for key, time in ordered] + [("in", "end", "x", 10**6)])
    expected = {}
    for key, time in ordered:
        expected[key, time // size] = expected.get((key, time // size), 0) + 1
    found = sorted((r.key.decode(), int.from_bytes(r.value, "big")) for r in results)
    assert found == sorted((key, count) for (key, _), count in expected.items())


def test_readers_of_a_suppressed_table_see_what_was_there_before(run):
    def build(builder):
        table = builder.table("table", store="t").suppress(Suppressed.until_time_limit(100, BufferConfig.unbounded()))
        builder.stream("in").left_join(table, lambda value, row: f"{value}/{row}").to("out")

    records = [("table", "a", "1", 0), ("in", "a", "x", 1), ("table", "b", "1", 150), ("in", "a", "y", 151)]
    results, _, _ = run(build, [*records, ("table", "a", "2", 152), ("in", "a", "z", 153)])
    assert [r.value.decode() for r in results] == ["x/None", "y/1", "z/1"]


def test_what_is_held_back_is_there_again_after_a_restore(tmp_path):
    config = sf.StreamsConfig(
        application_id="app",
        default_key_serde=sf.serdes.string(),
        default_value_serde=sf.serdes.string(),
        state_dir=tmp_path,
    )
    builder = sf.StreamsBuilder(config)
    table = builder.table("in").suppress(Suppressed.until_time_limit(10, BufferConfig.unbounded(), name="held"))
    table.to_stream().to("out")
    topology = builder.build()
    with TopologyTestDriver(topology, config) as driver:
        driver.pipe_raw("in", b"a", b"1", 3, (("h", b"v"),))
        driver.pipe_raw("in", b"b", b"1", 5)
        driver.pipe_raw("in", b"a", b"2", 4, (("h", b"w"),))
        log = [record for record in driver.drain() if record.topic == "app-held-store-changelog"]
    store = next(entry for entry in topology.processor_topology("app", None).stores if entry.name == "held-store")
    buffer = store.builder.build()
    from tests.unit.streamfleet.state.conftest import FakeContext

    buffer.open(FakeContext(tmp_path / "other"))
    buffer.restore(
        sf.RawRecord(record.topic, 0, offset, 0, record.key, record.value, record.headers)
        for offset, record in enumerate(log)
    )
    assert (buffer.num_records, buffer.min_time) == (2, 3)
    evicted = []
    buffer.evict_while(lambda: True, evicted.append)
    assert [(e.key, e.change.new, e.context.timestamp, e.context.headers) for e in evicted] == [
        ("a", "2", 4, (("h", b"w"),)),
        ("b", "1", 5, ()),
    ]


def test_a_full_buffer_that_must_not_emit_early_ends_the_app():
    config = sf.StreamsConfig(
        application_id="app", default_key_serde=sf.serdes.string(), default_value_serde=sf.serdes.string()
    )
    builder = sf.StreamsBuilder(config)
    buffer = BufferConfig.max_records(1).shut_down_when_full()
    builder.table("in").suppress(Suppressed.until_time_limit(100, buffer, name="held")).to_stream().to("out")
    with TopologyTestDriver(builder.build(), config) as driver:
        driver.pipe_raw("in", b"a", b"1", 0)
        with pytest.raises(sf.StreamsError, match="buffer of operator held exceeded its capacity: 2 of 1 records"):
            driver.pipe_raw("in", b"b", b"1", 0)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda t: t.suppress(None), "suppress needs a Suppressed"),
        (lambda t: Suppressed.until_window_closes(BufferConfig.max_records(1)), "a buffer that emits early"),
        (lambda t: Suppressed.until_time_limit(-1, BufferConfig.unbounded()), "time limit of Suppressed"),
        (lambda t: Suppressed.until_time_limit(1, None), "needs a BufferConfig"),
        (lambda t: BufferConfig.max_bytes("1k"), "max_bytes must be a whole number"),
        (
            lambda t: t.suppress(Suppressed.until_window_closes(BufferConfig.unbounded())),
            "there are no windows that could close",
        ),
    ],
)
def test_a_suppression_that_cannot_be_is_refused(act, message):
    with pytest.raises(sf.TopologyError, match=message):
        act(sf.StreamsBuilder().table("in"))
