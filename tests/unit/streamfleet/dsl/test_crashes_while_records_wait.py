"""What operators hold back is part of the commit: after a crash the results are those of an app that never crashed."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.streamfleet.dsl.crashing_task import CrashingApp

import streamfleet as sf

slow = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
GRACE = 10
records = st.tuples(st.sampled_from(["in", "in", "table"]), st.sampled_from("ab"), st.sampled_from([3, 4, 13, 14, 24]))
steps = st.lists(st.one_of(records, records, st.sampled_from(["commit", "lost disk", "crash"])), min_size=5)


def join_with_grace(builder):
    history = sf.Stores.versioned_key_value("rows", 1000)
    table = builder.table("table", materialized=sf.Materialized(history))
    builder.stream("in").left_join(table, lambda value, row: f"{value}+{row}", grace=GRACE, name="held").to("out")


@pytest.fixture
def new_app(tmp_path_factory):
    apps = []

    def make(build):
        settings = {"outer_join_emit_interval_ms": 0, "statestore_cache_max_bytes": 0}
        app = CrashingApp(build, tmp_path_factory.mktemp("app"), **settings)
        apps.append(app)
        return app

    yield make
    for app in apps:
        app.close()


def played(app, script, *, crashes):
    """Records are processed once each as far as committed results tell; whatever a crash undid is read again."""
    inputs = [(topic, key, f"{topic}{number}", time) for number, (topic, key, time) in enumerate(records_of(script))]
    position = 0
    for step in [*script, "commit"]:
        if isinstance(step, tuple):
            app.process(*inputs[position])
            position += 1
        elif step == "commit":
            app.commit()
        elif crashes:
            app.crash(disk_is_lost=step == "lost disk")
            for again in inputs[app.done : position]:
                app.process(*again)
    app.process("in", "end", "end", 10**6)
    app.commit()
    return app.results


def records_of(script):
    return [step for step in script if isinstance(step, tuple)]


@slow
@given(script=steps)
def test_a_join_with_grace_gives_the_results_of_one_that_never_crashed(new_app, script):
    expected = played(new_app(join_with_grace), script, crashes=False)
    assert played(new_app(join_with_grace), script, crashes=True) == expected


@pytest.mark.parametrize("disk_is_lost", [True, False])
def test_a_held_record_survives_a_crash_beside_a_new_one_of_its_key_and_time(new_app, disk_is_lost):
    app = new_app(join_with_grace)
    app.process("in", "k", "older", 3)
    app.process("in", "k", "first", 5)
    app.process("in", "x", "time goes on", 14)
    app.commit()
    app.crash(disk_is_lost=disk_is_lost)
    app.process("in", "k", "second", 5)
    app.process("in", "end", "end", 100)
    app.commit()
    assert [value for _, value, _ in app.results] == [
        b"older+None",
        b"first+None",
        b"second+None",
        b"time goes on+None",
    ]


@pytest.mark.parametrize("disk_is_lost", [True, False])
def test_a_held_record_meets_the_row_that_came_after_the_crash(new_app, disk_is_lost):
    app = new_app(join_with_grace)
    app.process("in", "k", "v", 5)
    app.commit()
    app.process("table", "k", "lost with the crash", 4)
    app.crash(disk_is_lost=disk_is_lost)
    app.process("table", "k", "row", 5)
    app.process("in", "end", "end", 100)
    assert app.results == [(b"k", b"v+row", 5)]


def suppression(builder):
    held = sf.Suppressed.until_time_limit(GRACE, sf.BufferConfig.unbounded(), name="held")
    builder.table("in").suppress(held).to_stream().to("out")


@pytest.mark.parametrize("disk_is_lost", [True, False])
def test_a_suppressed_update_survives_a_crash_with_the_time_of_the_first(new_app, disk_is_lost):
    app = new_app(suppression)
    app.process("in", "a", "1", 3)
    app.process("in", "a", "2", 9)
    app.commit()
    app.process("in", "a", "lost with the crash", 10)
    app.crash(disk_is_lost=disk_is_lost)
    app.process("in", "b", "1", 12)
    app.commit()
    assert app.results == []
    app.process("in", "b", "2", 13)
    app.commit()
    assert app.results == [(b"a", b"2", 9)]


@slow
@given(script=steps)
def test_a_suppression_ends_with_the_updates_of_one_that_never_crashed(new_app, script):
    """Not when they come: the operator's own stream time begins again, as in the original. So late ones wait for the end."""
    ordered = [("in", *step[1:]) if isinstance(step, tuple) else step for step in script]
    expected, found = {}, {}
    for app, crashes, last in ((new_app(suppression), False, expected), (new_app(suppression), True, found)):
        for key, value, timestamp in played(app, ordered, crashes=crashes):
            last[key] = (value, timestamp)
    assert found == expected


def outer_join(builder):
    windows = sf.JoinWindows(5, 5, GRACE)
    left, right = builder.stream("in"), builder.stream("table")
    left.outer_join(right, lambda one, other: f"{one}+{other}", window=windows).to("out")


@pytest.mark.parametrize("disk_is_lost", [True, False])
def test_a_record_without_partner_survives_a_crash_and_finds_one_or_goes_alone(new_app, disk_is_lost):
    app = new_app(outer_join)
    app.process("in", "a", "L1", 3)
    app.process("table", "b", "R1", 4)
    app.commit()
    app.process("table", "a", "lost with the crash", 4)
    app.crash(disk_is_lost=disk_is_lost)
    app.process("table", "a", "R2", 8)
    assert app.results == [(b"a", b"L1+R2", 8)]
    app.process("in", "end", "end", 100)
    assert app.results[1:] == [(b"b", b"None+R1", 4)]
