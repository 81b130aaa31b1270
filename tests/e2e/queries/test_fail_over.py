"""F70: queries while workers are killed, stand still and come back. Every answer is true for what it claims to be."""

import http.client
import signal

import pytest
from tests.queries.fleet import QueryFleet, until
from tests.queries.prober import Prober


@pytest.fixture
def new_fleet(broker, tmp_path):
    fleets = []

    def make(**options):
        fleets.append(QueryFleet(broker.bootstrap_servers, tmp_path, **options))
        return fleets[-1]

    yield make
    for fleet in fleets:
        fleet.close()


@pytest.fixture
def probed(new_fleet):
    """probed(**options) -> a fleet of three workers that is being asked all the time, and who asks."""
    probers = []

    def make(*, stale=False, **options):
        fleet = new_fleet(**options)
        fleet.input.write(300)
        for _ in range(3):
            fleet.add()
        prober = Prober(fleet, stale=stale)
        prober.start()
        probers.append(prober)
        prober.wait_for_all_partitions()
        return fleet, prober

    yield make
    for prober in probers:
        prober.stop()


GUARANTEES = ["exactly_once_v2", "at_least_once"]


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_killed_workers_are_replaced_and_no_answer_goes_back_in_time(probed, guarantee, capsys):
    fleet, prober = probed(guarantee=guarantee)
    for worker in list(fleet.workers):
        worker.signal(signal.SIGKILL)
        prober.wait_for_all_partitions()
        worker.start()
        prober.wait_for_all_partitions()
    prober.stop()
    with capsys.disabled():
        print("\n" + prober.report(f"three kills, {guarantee}"))
    assert prober.errors == []
    assert prober.statuses["503"] > 0, "while nobody had a partition, nobody answered for it"


def stand_still(fleet, prober):
    """Stop a worker past its session, ask it all the time, and let it go on: the statuses of its answers."""
    zombie = fleet.workers[0]
    address = zombie.address
    zombie.signal(signal.SIGSTOP)
    prober.wait_for_all_partitions(200)
    waiting = []
    for key in list(fleet.input.partition_of)[:50]:
        connection = http.client.HTTPConnection(*address, timeout=60)
        waiting.append((connection, prober.send(connection, key, worker=zombie.name)))
    zombie.resume(address)
    statuses = [receive() for _, receive in waiting]
    for connection, _ in waiting:
        connection.close()
    return statuses


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_worker_that_stood_still_past_its_session_does_not_answer_as_the_owner(probed, guarantee, capsys):
    fleet, prober = probed(guarantee=guarantee)
    statuses = stand_still(fleet, prober)
    prober.wait_for_all_partitions()
    prober.stop()
    with capsys.disabled():
        print("\n" + prober.report(f"stopped and continued, {guarantee}"), "while it stood still:", sorted(statuses))
    assert prober.errors == []


SURE_OF_ITSELF = """
import signal
import threading
import time

from streamfleet.kafka.membership import Membership
from streamfleet.thread.stream_thread import StreamThread

stood_still = threading.Event()
signal.signal(signal.SIGCONT, lambda *_: stood_still.set())
run_once = StreamThread._run_once

Membership.is_surely_member = property(lambda self: True)
StreamThread._run_once = lambda self: time.sleep(0.01) if stood_still.is_set() else run_once(self)
StreamThread._drop_all = StreamThread._go_back = lambda self: None  # of the step that was cut off
"""
"""And it does nothing else from then on, or it would have to be asked in the milliseconds before it hears of its successor."""


def test_a_worker_that_answers_without_looking_at_its_session_is_found_out(probed):
    """The other tests would notice: at least once only the logs tell who had a partition when."""
    fleet, prober = probed(guarantee="at_least_once", app_code=SURE_OF_ITSELF)
    stand_still(fleet, prober)
    prober.stop()
    assert any(f"{fleet.workers[0].name} says it has" in error for error in prober.errors)


def test_standbys_answer_for_a_killed_owner_and_say_that_they_are_late(probed, capsys):
    fleet, prober = probed(stale=True, standbys=1)
    for worker in fleet.workers[:2]:
        worker.signal(signal.SIGKILL)
        before = prober.statuses["stale"]
        until(lambda before=before: prober.statuses["stale"] > before)
        prober.wait_for_all_partitions()
        worker.start()
        prober.wait_for_all_partitions()
    prober.stop()
    with capsys.disabled():
        print("\n" + prober.report("standbys"))
    assert prober.errors == []
