"""A real server is killed (kill -9) while it works on a real app: its workers go on, and the next server finishes what it began.

A sample; tests/e2e/streamfleet_platform has every step of every operation.
"""

import pytest
from tests.integration.streamfleet_platform.real_fleet import RealFleet, until
from tests.unit.streamfleet_platform.registry.conftest import postgres as postgres_server

postgres = postgres_server


@pytest.fixture
def fleet(broker, tmp_path):
    fleet = RealFleet(tmp_path, broker.bootstrap_servers)
    yield fleet
    fleet.close()


def test_killed_while_it_scales_and_resets_and_a_second_one_that_does_not_act(fleet):
    fleet.deployed()
    fleet.send()
    fleet.assert_counts_are_exact()

    # a second server looks, and does not act; when the first is killed it takes over
    before = fleet.pids()
    second = fleet.start_server(leads=False)
    with pytest.raises(Exception, match="does not lead"):
        second.scale(fleet.name, 2)
    first = fleet.servers[0]
    first.kill()
    first.wait(30)
    results = fleet.results()
    fleet.send()
    until(lambda: fleet.results() > results, "results while nobody leads")
    until(lambda: second.fleet().is_leader, "the second server to lead", 30)
    assert fleet.pids() == before, "workers never noticed"

    # killed right after a slot was started, before that was written down
    fleet.kill_server()
    fleet.start_server("scale/start-slot/done")
    operation = fleet.client.scale(fleet.name, 2)
    fleet.await_its_death()
    until(lambda: fleet.pids().get(1) is not None, "the worker that its keeper starts")
    during = fleet.pids()
    assert during[0] == before[0]
    fleet.start_server()
    fleet.finish(operation)
    assert fleet.pids() == during, "the slot that was started is the slot that runs"

    # killed with the topics deleted, before that was written down
    fleet.kill_server()
    fleet.start_server("reset/delete-topics/done")
    operation = fleet.client.reset(fleet.name, confirm=fleet.name)
    fleet.await_its_death()
    assert fleet.internal_topics() == [] and fleet.pids() == {}, "nothing starts it half reset"
    fleet.start_server()
    fleet.finish(operation)
    fleet.send()
    fleet.assert_counts_are_exact()


def test_with_a_registry_on_postgres(broker, tmp_path, postgres):
    fleet = RealFleet(tmp_path, broker.bootstrap_servers, registry=postgres)
    try:
        fleet.deployed()
        fleet.send()
        fleet.assert_counts_are_exact()
        before = fleet.pids()
        fleet.kill_server()
        fleet.start_server("scale/start-slot/done")
        operation = fleet.client.scale(fleet.name, 2)
        fleet.await_its_death()
        until(lambda: fleet.pids().get(1) is not None, "the worker that its keeper starts")
        during = fleet.pids()
        fleet.start_server()
        fleet.finish(operation)
        assert fleet.pids() == during and during[0] == before[0]
        fleet.finish(fleet.client.reset(fleet.name, confirm=fleet.name))
        fleet.send()
        fleet.assert_counts_are_exact()
        assert not list(fleet.data.glob("*.db")), "nothing is kept in a file beside it"
    finally:
        fleet.close()
