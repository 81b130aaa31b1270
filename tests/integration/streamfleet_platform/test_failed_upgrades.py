"""A version whose workers crash is taken back by the gate: real server, keepers and workers, on a real broker."""

import pytest
from tests.integration.streamfleet_platform.real_fleet import RealFleet, until


@pytest.fixture
def fleet(broker, tmp_path):
    fleet = RealFleet(tmp_path, broker.bootstrap_servers)
    yield fleet
    fleet.close()


def test_a_version_that_crashes_is_rolled_back_and_counts_stay_exact(fleet):
    fleet.deployed()
    fleet.finish(fleet.client.scale(fleet.name, 2))
    fleet.send()
    fleet.assert_counts_are_exact()
    good, before = fleet.client.app(fleet.name).revision, fleet.pids()

    over = fleet.finish(fleet.upgrade_to("broken"), "rolled_back")
    assert "crashes again and again" in over.error and "this version never works" in over.error
    assert next(step.name for step in over.steps if step.state == "failed").startswith("pass-gate")

    fleet.send()
    fleet.assert_counts_are_exact()
    after = fleet.pids()
    assert after.keys() == before.keys() and len(after.items() & before.items()) == 1, "the other slot never noticed"
    assert {worker.revision for worker in fleet.runtime.list(fleet.name)} == {good}
    app = until(lambda: (now := fleet.client.app(fleet.name)).phase == "running" and now, "the app to be well")
    assert (app.revision, app.drift) == (good, 0)
    fleet.finish(fleet.upgrade_to("other"))  # and the next one comes through
    fleet.assert_counts_are_exact()
