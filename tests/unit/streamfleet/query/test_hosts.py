from types import SimpleNamespace

import streamfleet as sf
from streamfleet.assignment.snapshot import Plan
from streamfleet.partitioner import partition_for
from streamfleet.query.hosts import metadata_of
from streamfleet.records import TimeWindow, Windowed


def plan(endpoints, standbys=None):
    return Plan(
        active=(),
        standby=(),
        fence=(),
        follow_up=False,
        owners={},
        endpoints=endpoints,
        standby_endpoints=standbys or {},
        shutdown=False,
    )


def test_a_key_is_found_where_the_producers_put_it(new_app):
    app = new_app()
    task = app.place("counts").task_key
    owners = plan({"a:1": (task(0), task(2)), "b:1": (task(1),)}, {"c:1": (task(1),), "a:1": (task(1),)})
    app.thread.assigned = SimpleNamespace(generation_id=3, plan=owners)
    for key in ("x", "y", "zebra", "1"):
        found = app.queries.metadata_for_key("counts", key)
        assert found.partition == partition_for(key.encode(), 3)
        assert found.active == {0: "a:1", 1: "b:1", 2: "a:1"}[found.partition]
        assert found.standbys == (("a:1", "c:1") if found.partition == 1 else ())


def test_windows_live_with_their_key(new_app):
    app = new_app()
    for key in ("x", "y", "zebra"):
        window = Windowed(key, TimeWindow(0, 60_000))
        assert app.queries.metadata_for_key("windows", window) == app.queries.metadata_for_key("windows", key)


def test_another_partitioner_or_serde_may_decide(new_app):
    app = new_app()
    assert app.queries.metadata_for_key("counts", "x", partitioner=lambda key, n: n - 1).partition == 2
    by_number = app.queries.metadata_for_key("counts", 7, sf.serdes.long())
    assert by_number.partition == partition_for((7).to_bytes(8, "big"), 3)


def test_without_a_plan_or_an_endpoint_nobody_is_named(new_app):
    app = new_app()
    assert app.queries.metadata_for_key("counts", "x").active is None
    task = app.place("counts").task_key(0)
    assert metadata_of(plan({"b:1": ()}), task).active is None


def test_of_two_threads_the_newer_plan_counts(new_app):
    app = new_app()
    task = app.place("counts").task_key(0)
    older = SimpleNamespace(generation_id=3, plan=plan({"old:1": (task,)}))
    newer = SimpleNamespace(generation_id=4, plan=plan({"new:1": (task,)}))
    for events in ((older, newer), (newer, older)):
        app.queries._threads = lambda events=events: [SimpleNamespace(assigned=event) for event in events]
        assert app.queries.metadata("counts", 0).active == "new:1"
