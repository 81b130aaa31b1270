"""Dagster's daemon and a real fleet: what sensors launch happens, once, and results stay exact."""

import time

import pytest
from tests.dagster_lab.fleet import until
from tests.dagster_lab.load import Load, assert_counted_once, latest, updates
from tests.dagster_lab.placement import interrupt, promotion, seconds_after_a_tick, until_spread
from tests.integration.dagster_streamfleet.conftest import BUSY_AT_FIRST

from streamfleet_platform import OperationState, Phase

RETURNED_SECONDS = 60.0
"""From the worker's return until a task has moved: it restores, the daemon looks every five seconds. The group's own timer: 600."""


def test_a_warm_up_that_has_caught_up_is_promoted_by_the_sensor_where_the_group_itself_would_wait(fleet, daemon):
    until_spread(fleet, "warm")
    interrupt(fleet, "warm", 1)
    found, promoted_at = promotion(fleet, "warm", 1, RETURNED_SECONDS), time.time()
    operation = fleet.operations("warm", "probe")[0]
    tick = until(
        lambda: next((tick for tick in reversed(daemon.ticks("streamfleet_probing")) if tick.runs), None), "its tick"
    )
    bound = seconds_after_a_tick()
    print(f"promoted {found}, {promoted_at - tick.at:.1f} s after the tick, of {bound:.1f} (the group's timer: 600 s)")
    assert promoted_at - tick.at < bound
    assert operation.actor == "dagster"
    assert operation.intent_id.startswith("probe-warm-")


@pytest.fixture(scope="module")
def again(fleet):
    """Every key written twice, counted twice."""
    for app in ("again", "careful"):
        with Load(fleet.bootstrap_servers, f"{app}-in", 400, keys=50) as load:
            until(lambda load=load: min(load.written.values(), default=0) >= 2, "every key")
        until(
            lambda app=app, load=load: latest(fleet.bootstrap_servers, f"{app}-out") == load.written,
            "all to be counted",
        )
    return load


def has_generation(fleet, app, wanted):
    found = fleet.app(app)
    return found.generation == wanted and found.phase is Phase.RUNNING


def test_a_raised_generation_resets_where_git_may_and_asks_where_it_may_not(fleet, daemon, again):
    before = updates(fleet.bootstrap_servers, "again-out")
    fleet.raise_generation("careful")
    wanted = fleet.raise_generation("again")
    fleet.apply()
    until(lambda: has_generation(fleet, "again", wanted), "the app to run in its new generation")
    (operation,) = fleet.operations("again", "reset")
    assert (operation.state, operation.actor) == (OperationState.SUCCEEDED, "dagster")
    (run,) = until(lambda: [run for run in daemon.runs("reset") if run["status"] == "SUCCESS"], "its run to end")

    # everything was computed once more, exactly: after its own counts, every key begins at 1 again and ends as before
    def recomputed():
        found = updates(fleet.bootstrap_servers, "again-out")
        return all(counts[len(before[key]) :][-1:] == [before[key][-1]] for key, counts in found.items())

    until(recomputed, "the same results once more")
    for key, counts in updates(fleet.bootstrap_servers, "again-out").items():
        once_more = counts[len(before[key]) :]
        assert once_more == sorted(set(once_more)), key  # counts only grow: nothing was counted on old state

    # the other one was left alone, and a person was asked, with what it would mean
    asked = [each for each in daemon.observations("careful", "app") if each.get("reset asks")]
    assert len(asked) == 1
    assert "streamfleet reset careful" in asked[0]["reset asks"]
    assert "careful-counts-changelog" in asked[0]["preview"]
    assert fleet.app("careful").generation == 1
    assert fleet.operations("careful", "reset") == []
    assert {tag["value"] for tag in run["tags"] if tag["key"] == "streamfleet/app"} == {"again"}


def test_a_daemon_that_was_away_and_ticks_that_are_replayed_do_nothing_twice(fleet, daemon, again):
    resets, runs = len(fleet.operations("again", "reset")), len(daemon.runs("reset"))
    daemon.stop_daemon()
    wanted = fleet.raise_generation("again")
    fleet.apply()
    with fleet.client() as client:
        assert until(
            lambda: [each for each in client.decisions().resets if each.app == "again"], "the wish to be known"
        )
    assert len(fleet.operations("again", "reset")) == resets  # nobody is there to act

    daemon.start()
    until(lambda: has_generation(fleet, "again", wanted), "the app to run in its new generation")
    (tick,) = daemon.replay("streamfleet_reset")  # of probing, while a decision stands: in the long set
    assert tick.runs == ()
    assert "careful: generation 1 -> 2" in tick.words  # it still asks, in words
    assert len(fleet.operations("again", "reset")) == resets + 1
    assert len(daemon.runs("reset")) == runs + 1


def test_raised_load_makes_the_fleet_scale_by_an_effective_step_and_results_stay_exact(fleet, daemon, loads):
    operation = until(lambda: next(iter(fleet.operations("busy", "scale")), None), "a decision to scale", 150)
    with fleet.client() as client:
        done = client.wait(operation.id, timeout=120)
    loads["busy"].rate = BUSY_AT_FIRST
    assert done.state is OperationState.SUCCEEDED, done.error
    print(f"scaled to {done.params['slots']}: {done.reason}")
    assert done.actor == "dagster"
    assert done.intent_id.startswith("scale-busy-1-")  # from one slot
    assert done.params["slots"] in (2, 4)  # of four tasks three slots would leave one with as many as two do
    (tick,) = daemon.replay("streamfleet_scaling")
    assert tick.runs == ()
    intents = [each.intent_id for each in fleet.operations("busy", "scale")]
    assert len(intents) == len(set(intents))

    loads["busy"].close()
    wanted = loads["busy"].written
    until(lambda: latest(fleet.bootstrap_servers, "busy-out") == wanted, "all records to be counted", 180)
    assert_counted_once(fleet.bootstrap_servers, "busy-out")
