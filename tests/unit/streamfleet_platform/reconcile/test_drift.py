"""Differences between what should be and what is, and what is done about them."""

from types import SimpleNamespace

import pytest
from tests.unit.streamfleet_platform.reconcile.sights import LOCK, START, app, seen, worker

from streamfleet_platform.reconcile.drift import corrections, differences
from streamfleet_platform.registry.tables import InternalTopic, Worker
from streamfleet_platform.runtime.api import WorkerPhase

CONTENT = LOCK.sub_topologies[1]["content_id"]
REVISIONS = {"r1": SimpleNamespace(lock=LOCK)}
ROWS = [Worker(app="one", slot=0, revision="r1")]
SPECS = {0: SimpleNamespace(digest="digest")}
ORPHAN = InternalTopic(
    application_id="one", name="one-old-changelog", app="one", generation=1, kind="changelog", partitions=4,
    is_orphan=True, recorded_at=START,
)  # fmt: skip


def told(sight, row=None, rows=ROWS, topics=()):
    return differences(row or app(), rows, sight, REVISIONS, topics)


def done(sight, row=None, rows=ROWS, specs=SPECS):
    return [(each.what, each.slot) for each in corrections(row or app(), rows, sight, specs)]


def test_an_app_that_is_as_it_should_be_has_no_difference():
    assert told(seen(worker())) == () and done(seen(worker())) == []


@pytest.mark.parametrize("phase", [WorkerPhase.LOST, WorkerPhase.STOPPED, None])
def test_a_slot_without_worker_is_told_and_started(phase):
    sight = seen() if phase is None else seen(worker(0, phase, topology_hash=None))
    assert told(sight) == ("slot 0 has no worker",) and done(sight) == [("start", 0)]


def test_a_worker_of_another_digest_is_stopped_and_one_that_stops_is_left_alone():
    assert done(seen(worker()), specs={0: SimpleNamespace(digest="other")}) == [("stop", 0)]
    assert done(seen(worker(0, WorkerPhase.STOPPING)), specs={0: SimpleNamespace(digest="other")}) == []


def test_another_topology_than_that_of_the_revision_is_told():
    assert told(seen(worker(topology_hash="ffff"))) == (f"slot 0 runs topology ffff, not {LOCK.hash}",)


def test_a_worker_nobody_recorded_is_taken_over_and_never_ended():
    sight = seen(worker(0), worker(1))
    assert told(sight) == ("slot 1 runs and is not recorded",) and done(sight) == [("adopt", 1)]


@pytest.mark.parametrize("row", [app(desired="stopped"), app(desired="retired"), app(fenced_by="reset-1")])
def test_whoever_runs_while_the_app_is_to_rest_is_stopped(row):
    assert told(seen(worker()), row) == ("slot 0 runs, and should not",)
    assert done(seen(worker()), row) == [("stop", 0)] and done(seen(), row) == []


@pytest.mark.parametrize(
    ("phase", "slot", "task", "expected"),
    [
        pytest.param(WorkerPhase.STOPPED, 0, f"{CONTENT}_1", [], id="the app's own, at rest"),
        pytest.param(WorkerPhase.STOPPED, 0, "5f0c_1", ["slot 0 has 8 B of state of 5f0c_1, which no version of the app has"],
                     id="of another version, beside nobody"),
        pytest.param(WorkerPhase.RUNNING, 0, "5f0c_1", [], id="of another version, beside a worker who deletes it"),
        pytest.param(WorkerPhase.STOPPED, 3, f"{CONTENT}_1", [f"slot 3 has 8 B of state of {CONTENT}_1, and is no slot of the app"],
                     id="on a slot that the app does not have"),
        pytest.param(None, 3, f"{CONTENT}_1", [], id="on a slot that has gone since it was walked"),
    ],
)  # fmt: skip
def test_state_that_nobody_uses_or_deletes_is_told_and_stays(phase, slot, task, expected):
    there = [] if phase is None else [worker(slot, phase, topology_hash=None, client_state=None)]
    sight = seen(*there, state={slot: {task: 8}})
    row = app(desired="stopped")
    assert [text for text in told(sight, row) if "state" in text] == expected
    assert all(what == "stop" and which == 0 for what, which in done(sight, row)), "nothing is done about it"


def test_pausing_follows_what_is_wanted_and_the_error_budget():
    assert done(seen(worker()), app(desired="paused")) == [("pause", 0)]
    assert done(seen(worker()), app(quarantine="12 bad")) == [("pause", 0)]
    assert done(seen(worker(is_paused=True)), app(quarantine="12 bad")) == []
    assert done(seen(worker(is_paused=True))) == [("resume", 0)]


def test_what_the_cluster_says_and_topics_that_are_left_over_are_told():
    sight = seen(worker(), drift=("topic one-x is gone",))
    assert told(sight, topics=[ORPHAN]) == (
        "topic one-x is gone",
        "topic one-old-changelog is no longer used by the app",
    )
