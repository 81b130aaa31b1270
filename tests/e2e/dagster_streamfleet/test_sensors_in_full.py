"""What the short forms in tests/integration/dagster_streamfleet show, for longer and with more going wrong."""

import random
import time
from contextlib import ExitStack

import pytest
from tests.dagster_lab.daemon import Daemon
from tests.dagster_lab.fleet import Fleet, until
from tests.dagster_lab.load import Load, assert_counted_once, latest
from tests.dagster_lab.placement import interrupt, promotion, seconds_after_a_tick, until_spread

from examples.demo.dagster_up import Dagster
from streamfleet_platform import Phase

pytestmark = pytest.mark.timeout(900)


def test_a_caught_up_warm_up_waits_for_the_timer_for_the_sensor_or_for_nobody(started):
    """Side by side: the group's own timer alone, the sensor, and a worker that asks by itself."""
    fleet, daemon = started("leader", "timer", "warm")
    found = {}
    with ExitStack() as stack:
        for app in fleet.apps:
            stack.enter_context(Load(fleet.bootstrap_servers, f"{app}-in", 400, keys=2000))
            until_spread(fleet, app)
        for app in ("leader", "timer"):  # without Dagster, which would act for the second one
            interrupt(fleet, app, 1)
            found[app] = promotion(fleet, app, 1, 180)
        daemon.start()
        interrupt(fleet, "warm", 1)
        found["warm"], promoted_at = promotion(fleet, "warm", 1, 60), time.time()
        tick = next(tick for tick in reversed(daemon.ticks("streamfleet_probing")) if tick.runs)
        bound = seconds_after_a_tick()
    print(f"worker by itself: {found['leader']}")
    print(f"sensor: {found['warm']}, {promoted_at - tick.at:.1f} s after its tick, of {bound:.1f}")
    print(f"timer, set to 60 s (600 unless set): {found['timer']}")
    assert {operation.actor for operation in fleet.operations("warm", "probe")} == {"dagster"}
    assert fleet.operations("timer", "probe") == fleet.operations("leader", "probe") == []
    assert promoted_at - tick.at < bound
    assert found["leader"].since_return < found["warm"].since_return < found["timer"].since_return


def standing(fleet, app):
    """The probe that is decided for an app and not yet done; None: there is none."""
    with fleet.client() as client:
        return next((each.intent_id for each in client.decisions().probing if each.app == app), None)


def standing_scale(fleet, app):
    """The same of scaling."""
    with fleet.client() as client:
        decided = [each for each in client.decisions().scaling if each.app == app and each.action != "hold"]
        return next((each.intent_id for each in decided if not each.is_advice), None)


def run_keys(runs):
    return [tag["value"] for run in runs for tag in run["tags"] if tag["key"] == "dagster/run_key"]


def test_ticks_replayed_while_a_decision_stands_launch_nothing_and_it_is_done_once_when_it_can_be(started):
    """It stands because the server refuses what this Dagster launches, until it is started with the token it should have."""
    fleet, daemon = started("warm")
    with Load(fleet.bootstrap_servers, "warm-in", 400, keys=2000):
        until_spread(fleet, "warm")
        daemon.start_as_viewer()
        interrupt(fleet, "warm", 1)
        until(lambda: [run for run in daemon.runs("probe") if run["status"] == "FAILURE"], "a run that is refused", 120)
        intent = standing(fleet, "warm")
        assert intent is not None
        for _ in range(2):
            (tick,) = daemon.replay("streamfleet_probing")
            assert tick.runs == ()
            assert standing(fleet, "warm") == intent
        assert fleet.operations("warm", "probe") == []
        daemon.dagster.stop()

        daemon.start()
        until(lambda: fleet.operations("warm", "probe"), "the probe", 120)
        promotion(fleet, "warm", 1, 60)
        done = fleet.operations("warm", "probe")
    intents = [operation.intent_id for operation in done]
    assert (done[0].intent_id, done[0].actor) == (intent, "dagster")
    assert len(intents) == len(set(intents))
    keys = run_keys(daemon.runs("probe"))
    assert len(keys) == len(set(keys))


def test_a_daemon_that_was_away_while_it_was_decided_scales_and_probes_once_each(started):
    """It comes back, is killed as soon as it has acted, comes back again, and loses what its sensors remember, twice."""
    fleet, daemon = started("busy", "warm")
    daemon.start()
    daemon.stop_daemon()
    verbs = (("busy", "scale", standing_scale), ("warm", "probe", standing))
    with Load(fleet.bootstrap_servers, "busy-in", 20) as busy, Load(fleet.bootstrap_servers, "warm-in", 400, keys=2000):
        until_spread(fleet, "warm")
        busy.rate = 110
        interrupt(fleet, "warm", 1)
        for app, _, decided in verbs:
            until(lambda app=app, decided=decided: decided(fleet, app), f"a decision about {app}", 240)
        assert all(fleet.operations(app, verb) == [] for app, verb, _ in verbs)  # nobody was there to act

        daemon.start()
        for app, verb, _ in verbs:
            until(lambda app=app, verb=verb: fleet.operations(app, verb), f"the {verb} of {app}", 120)
        daemon.kill_daemon()
        daemon.start()
        for _ in range(2):
            daemon.replay("streamfleet_scaling", "streamfleet_probing")
        promotion(fleet, "warm", 1, 60)
        busy.rate = 20
    for app, verb, _ in verbs:
        done = [operation.intent_id for operation in fleet.operations(app, verb)]
        assert len(done) == len(set(done)), done
        keys = run_keys(daemon.runs(verb))
        assert len(keys) == len(set(keys))
    # intents of scaling name the slots they are decided at: it went from one slot once
    scaled = fleet.operations("busy", "scale")
    told = [(each.intent_id, each.created_at, each.state.value, each.reason, each.error) for each in scaled]
    from_one = [each for each in scaled if each.intent_id.startswith("scale-busy-1-")]
    assert [each.actor for each in from_one] == ["dagster"], told
    until(lambda: latest(fleet.bootstrap_servers, "busy-out") == busy.written, "all records to be counted", 180)
    assert_counted_once(fleet.bootstrap_servers, "busy-out")


def test_an_app_is_audited_when_its_schedule_says_so(broker, tmp_path):
    """By Dagster's own daemon, every minute: its findings are at the server."""
    fleet = Fleet(tmp_path, broker.bootstrap_servers, ["landed"], audited="* * * * *")
    dagster = Dagster(tmp_path / "dagster", on_usual_port=False)
    daemon = Daemon(dagster, fleet)
    try:
        fleet.start(dagster=dagster.url)
        fleet.apply()
        fleet.until_running()
        daemon.start()
        run = until(lambda: next(iter(daemon.runs("audit")), None), "the schedule", 120)
        with fleet.client() as client:
            audit = until(lambda: next(iter(client.audits("landed")), None), "the audit", 120)
        until(lambda: daemon.runs("audit")[0]["status"] == "SUCCESS", "its run to end")
        assert audit.id == f"audit-{run['id']}"
        assert (audit.verdict, audit.engine, audit.findings) == ("clean", "local", 0)
        assert {tag["value"] for tag in run["tags"] if tag["key"] == "dagster/partition"} == {"landed"}
    finally:
        daemon.close()
        fleet.close()


def test_load_that_is_raised_twice_scales_twice_by_effective_steps_and_every_record_is_counted_once(started):
    fleet, daemon = started("busy")
    daemon.start()
    with Load(fleet.bootstrap_servers, "busy-in", 20) as load:
        for rate, slots in ((110, 2), (220, 4)):
            load.rate = rate
            until(lambda slots=slots: (fleet.app("busy").slots_ready or 0) >= slots, f"{slots} slots", 240)
            fleet.until_running("busy")
        load.rate = 20
    until(lambda: latest(fleet.bootstrap_servers, "busy-out") == load.written, "all records to be counted", 120)
    assert_counted_once(fleet.bootstrap_servers, "busy-out")
    scaled = [(done.params["slots"], done.actor) for done in fleet.operations("busy", "scale")]
    print(f"scaled {scaled}, {sum(load.written.values())} records counted once")
    assert scaled in ([(2, "dagster"), (4, "dagster")], [(4, "dagster")])  # how busy a slot is depends on the machine


@pytest.mark.parametrize("seed", [1])
def test_a_daemon_killed_at_any_moment_resets_once_per_generation(started, seed):
    fleet, daemon = started("again", "careful")
    daemon.start()
    with Load(fleet.bootstrap_servers, "again-in", 400, keys=50) as load:
        until(lambda: min(load.written.values(), default=0) >= 2, "every key")
    chance = random.Random(seed)
    rounds = 5
    for done in range(1, rounds + 1):
        fleet.raise_generation("careful")
        wanted = fleet.raise_generation("again")
        fleet.apply()
        time.sleep(chance.uniform(0, 8))  # anywhere from before its tick to after its run
        daemon.kill_daemon()
        daemon.start()
        until(lambda wanted=wanted: fleet.app("again").generation == wanted, f"generation {wanted}", 120)
        until(lambda: fleet.app("again").phase is Phase.RUNNING, "it to run", 120)
        resets = fleet.operations("again", "reset")
        assert len(resets) == done
        assert {each.state.value for each in resets} == {"succeeded"}
    daemon.replay("streamfleet_reset", "streamfleet_scaling", "streamfleet_probing")
    assert len(fleet.operations("again", "reset")) == rounds
    assert fleet.operations("careful", "reset") == []
    until(lambda: latest(fleet.bootstrap_servers, "again-out") == load.written, "the same results once more")
