"""What the short forms in tests/integration/dagster_streamfleet show, for longer and with more going wrong."""

import random
import time
from contextlib import ExitStack

import pytest
from tests.dagster_lab.fleet import until
from tests.dagster_lab.load import Load, assert_counted_once, latest
from tests.dagster_lab.placement import interrupt, promotion, until_spread

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
        found["warm"] = promotion(fleet, "warm", 1, 60)
    print(f"worker by itself: {found['leader']}")
    print(f"sensor: {found['warm']}")
    print(f"timer, set to 60 s (600 unless set): {found['timer']}")
    assert {operation.actor for operation in fleet.operations("warm", "probe")} == {"dagster"}
    assert fleet.operations("timer", "probe") == fleet.operations("leader", "probe") == []
    assert found["leader"].since_return < found["warm"].since_return < found["timer"].since_return


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
