"""Measures from pretended /status pages of examples.apps.orders: sub-topology 1 re-keys, 0 joins, 2 counts."""

from datetime import UTC, datetime, timedelta

import pytest

import streamfleet as sf
from examples.apps.orders import topology
from streamfleet_platform.model.app_policies import Scale
from streamfleet_platform.observe.looks import Look
from streamfleet_platform.observe.measuring import Measuring, measured
from streamfleet_platform.scaling.decision import decide
from streamfleet_platform.scaling.measures import Bounds
from streamfleet_platform.topologies.lock import TopologyLock

LOCK = TopologyLock.from_topology_json(topology().to_json())
NOW = datetime(2026, 1, 1, tzinfo=UTC)
JOIN = next(part["id"] for part in LOCK.sub_topologies if "customers" in part["stores"])
COUNT = next(part["id"] for part in LOCK.sub_topologies if "revenue" in part["stores"])
REKEY = next(part["id"] for part in LOCK.sub_topologies if not part["stores"])
NEAR = 10_000
INPUTS = {
    REKEY: ["orders"],
    JOIN: ["customers", "shop-with-customer-repartition"],
    COUNT: ["shop-by-country-repartition"],
}


def content(number):
    return next(part["content_id"] for part in LOCK.sub_topologies if part["id"] == number)


def task(number, partition, processed, cost, *, lag=0, phase="running"):
    inputs = [
        {
            "topic": topic,
            "partition": partition,
            "position": 0 if topic == "customers" else processed,
            "lag_records": lag,
        }
        for topic in INPUTS[number]
    ]
    return {
        "id": f"{number}_{partition}", "phase": phase, "inputs": inputs, "restore": None,
        "processed_records": processed, "busy_seconds": processed * cost,
    }  # fmt: skip


def status(tasks, standbys=(), *, process=0.0, commit=0.0, poll=0.0, started=1):
    activity = {"process": process, "commit": commit, "poll": poll}
    thread = {"name": "shop-0", "tasks": tasks, "standbys": list(standbys), "activity_seconds": activity}
    return {
        "topology_hash": LOCK.hash, "started_at_ms": started, "state": "running", "paused": False, "threads": [thread],
    }  # fmt: skip


def look(seconds, records, **more):
    """Two slots, two partitions: orders come with `records`, twice as many are re-keyed, half of those are counted."""
    statuses = {
        slot: status(
            [
                task(REKEY, slot, records, 0.001),
                task(JOIN, slot, records * 2, 0.002),
                task(COUNT, slot, records, 0.003, lag=more.get("lag", 0)),
            ],
            more.get("standbys", {}).get(slot, ()),
            process=records * 0.008,
            commit=records * 0.001,
            poll=records * 0.0005,
        )
        for slot in (0, 1)
    }
    return Look(NOW + timedelta(seconds=seconds), statuses, frozenset({0, 1}), {0: 3000, 1: 1000})


def test_rates_costs_ratios_and_shares_are_differences_of_two_looks():
    found = measured(look(0, 1000), look(10, 2000, lag=7), LOCK, "shop")
    rekey, join = (found.tasks[sf.assignment.TaskKey(content(number), 0)] for number in (REKEY, JOIN))
    count = found.tasks[sf.assignment.TaskKey(content(COUNT), 1)]
    assert (rekey.records_per_second, rekey.relayed_per_second, rekey.state_bytes) == (100, 0, 0)
    assert (join.records_per_second, join.relayed_per_second, join.state_bytes) == (0, 200, 1500)
    assert join.busy_seconds_per_record == pytest.approx(0.002)
    assert (count.lag_records, count.state_bytes) == (7, 500)
    assert found.sub_topologies[content(JOIN)].fed_by == {content(REKEY): 2.0}
    assert found.sub_topologies[content(COUNT)].fed_by == {content(JOIN): pytest.approx(0.5, abs=0.01)}
    assert found.sub_topologies[content(JOIN)].stateful and not found.sub_topologies[content(REKEY)].stateful
    slot = found.slots[0]
    assert (slot.busy_share, slot.produce_share, slot.broker_share) == pytest.approx((0.8, 0.1, 0.05))
    assert found.placement[0] == {sf.assignment.TaskKey(content(number), 0) for number in INPUTS}


def test_what_was_measured_can_be_decided_on():
    measuring = Measuring()
    assert measuring.look("shop", look(0, 1000), LOCK, "shop", NEAR) is None
    found = measuring.look("shop", look(120, 2000), LOCK, "shop", NEAR)
    assert found.stable_since == NOW
    decision = decide(found, Bounds(Scale(min=1, max=4)), [], NOW + timedelta(seconds=120))
    assert decision.cause.value != "blind" and decision.reason


def test_caught_up_copies_are_those_within_the_acceptable_lag():
    copies = {
        1: [
            {"id": f"{JOIN}_0", "kind": "standby", "lag_records": 10},
            {"id": f"{COUNT}_0", "kind": "standby", "lag_records": None},
        ]
    }
    found = measured(look(0, 1), look(10, 2, standbys=copies), LOCK, "shop", acceptable_lag=10)
    assert found.copies == {sf.assignment.TaskKey(content(JOIN), 0): {1}}


def without(look, number, partition):
    for status in look.statuses.values():
        tasks = status["threads"][0]["tasks"]
        tasks[:] = [task for task in tasks if task["id"] != f"{number}_{partition}"]
    return look


def test_nothing_is_measured_when_a_task_has_no_owner_a_slot_does_not_answer_or_a_lag_is_not_known():
    before = look(0, 1)
    assert measured(before, without(look(10, 2), COUNT, 1), LOCK, "shop") is None
    silent = look(10, 2)
    del silent.statuses[1]
    assert measured(before, silent, LOCK, "shop") is None
    assert measured(before, look(10, 2, lag=None), LOCK, "shop") is None
    other = look(10, 2)
    other.statuses[0]["topology_hash"] = "other"
    assert measured(before, other, LOCK, "shop") is None


def test_counters_of_a_restarted_worker_are_not_subtracted():
    after = look(10, 100)
    after.statuses[0]["started_at_ms"] = 2
    found = measured(look(0, 5000), after, LOCK, "shop")
    assert found.tasks[sf.assignment.TaskKey(content(REKEY), 0)].busy_seconds_per_record == pytest.approx(0.001)
    assert 0 not in found.slots and 1 in found.slots


def test_a_warm_up_or_a_restore_ends_what_counts_as_stable():
    measuring = Measuring()
    measuring.look("shop", look(0, 1), LOCK, "shop", NEAR)
    warm = {0: [{"id": f"{JOIN}_1", "kind": "warmup", "lag_records": 5}]}
    assert measuring.look("shop", look(10, 2, standbys=warm), LOCK, "shop", NEAR).stable_since is None
    assert measuring.look("shop", look(20, 3), LOCK, "shop", NEAR).stable_since == NOW + timedelta(seconds=20)


def test_looks_that_follow_at_once_keep_the_older_one():
    measuring = Measuring()
    measuring.look("shop", look(0, 0), LOCK, "shop", NEAR)
    assert measuring.look("shop", look(1, 500), LOCK, "shop", NEAR) is None
    found = measuring.look("shop", look(10, 1000), LOCK, "shop", NEAR)
    assert found.tasks[sf.assignment.TaskKey(content(REKEY), 0)].records_per_second == 100
