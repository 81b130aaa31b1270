"""What workers' pages say of an app: which copies have caught up, and that a lag nobody knows is not 0."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from tests.unit.streamfleet_platform.reconcile.sights import LOCK, app, spec, state

import streamfleet as sf
from streamfleet_platform.model.fleet_definition import Cluster
from streamfleet_platform.operations.work import AppRevision
from streamfleet_platform.reconcile.decisions import probe_decision
from streamfleet_platform.reconcile.door_observer import DoorObserver
from streamfleet_platform.reconcile.observing import AppToSee

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LAG = "acceptable.recovery.lag"
NOTHING = SimpleNamespace(sights=lambda _: {}, close=lambda: None)


def page(lags, copies=()):
    """Of one worker whose task reads one input per lag."""
    inputs = [
        {"topic": "one-in", "partition": number, "position": 7, "committed": 7, "lag_records": lag}
        for number, lag in enumerate(lags)
    ]
    task = {
        "id": "1_0", "phase": "running", "inputs": inputs, "restore": None, "processed_records": 7, "busy_seconds": 0.1,
    }  # fmt: skip
    standbys = [
        {"id": f"1_{number}", "kind": kind, "lag_records": lag, "eta_seconds": None, "records_per_second": 0}
        for number, (kind, lag) in enumerate(copies, start=1)
    ]
    thread = {"tasks": [task], "standbys": standbys, "activity_seconds": {}, "leads_group": True}
    return {
        "state": "running", "topology_hash": LOCK.hash, "started_at_ms": 1, "paused": False, "ready": {"ok": True},
        "failure": None, "dropped_records": {}, "restore_rate_bytes_per_second": 0, "rebalances": 1, "threads": [thread],
    }  # fmt: skip


def looked(told, *, of_app=None, of_cluster=None, sizes=None):
    cluster = Cluster.model_validate({"bootstrap": "broker:9092", "config": of_cluster or {}})
    definition = SimpleNamespace(spec=spec(run={"config": of_app or {}}))
    revision = AppRevision("one", "r1", definition, LOCK, "code", cluster)
    worker = state(0, url="http://127.0.0.1:1")
    doors = SimpleNamespace(status=lambda _: told)
    state_watch = SimpleNamespace(sizes=lambda _: {"one": sizes or {}}, close=lambda: None)
    observer = DoorObserver(doors, lambda: NOW, NOTHING, state_watch)
    try:
        return observer.observe([AppToSee(app(), revision, [worker], ())])["one"]
    finally:
        observer.close()


def test_state_on_disk_is_seen_by_slot_and_task():
    sizes = {0: {"5f0c_1": 8}, 3: {}}
    assert looked(page([0]), sizes=sizes).state == sizes


def caught_up(sight):
    return [task.lag_records for task in sight.placement if task.state == "caught_up"]


@pytest.mark.parametrize(
    ("of_cluster", "of_app", "near", "far"),
    [
        pytest.param({}, {}, sf.StreamsConfig.acceptable_recovery_lag, 10_001, id="the engine's own"),
        pytest.param({}, {LAG: 20}, 20, 21, id="the app's"),
        pytest.param({LAG: "50"}, {}, 50, 51, id="the cluster's"),
        pytest.param({LAG: 50}, {LAG: "0"}, 0, 1, id="the app's before the cluster's"),
    ],
)
def test_a_copy_has_caught_up_within_the_lag_that_the_engine_accepts(of_cluster, of_app, near, far):
    copies = [("warmup", near), ("standby", near), ("warmup", far), ("warmup", None)]
    sight = looked(page([0], copies), of_app=of_app, of_cluster=of_cluster)
    assert caught_up(sight) == [near, near]


def test_a_warm_up_that_never_comes_to_0_under_load_is_probed():
    sight = looked(page([0], [("warmup", 3)]))
    assert probe_decision("one", sight, None, NOW).tasks == ("1_1@0",)


@pytest.mark.parametrize(
    ("lags", "told"), [([0, 0], 0), ([2, 5], 7), ([0, None], None), ([None], None), ([9, None], None)]
)
def test_a_lag_of_which_a_part_is_not_known_is_not_known(lags, told):
    sight = looked(page(lags))
    assert (sight.lag_records, sight.placement[0].lag_records) == (told, told)


def test_an_app_without_tasks_has_no_lag():
    told = page([0])
    told["threads"][0]["tasks"] = []
    assert looked(told).lag_records is None
