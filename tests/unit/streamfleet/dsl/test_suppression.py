"""Suppression against a model: one update per key, in a list."""

import pytest
from hypothesis import HealthCheck, given, settings
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
    def __init__(self, wait, limit):
        self.wait, self.limit = wait, limit
        self.held = {}
        self.stream_time = -1
        self.results = []

    def update(self, key, value, timestamp):
        self.stream_time = max(self.stream_time, timestamp)
        time = self.held[key][0] if key in self.held else timestamp
        self.held[key] = (time, value, timestamp)
        self.evict(lambda: min(self.held.values())[0] <= self.stream_time - self.wait)
        self.evict(lambda: len(self.held) > self.limit)

    def evict(self, is_too_much):
        while self.held and is_too_much():
            key = min(self.held, key=lambda key: (self.held[key][0], key))
            _, value, timestamp = self.held.pop(key)
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
