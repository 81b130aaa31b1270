"""Queries to worker processes on the real broker: routing, and the truth of every answer while tasks move."""

import http.client
import json
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


def get(door, target, order=None):
    """What is answered; with an order, to it."""
    connection = http.client.HTTPConnection(*door, timeout=10)
    try:
        if order is None:
            connection.request("GET", target)
        else:
            connection.request("POST", target, json.dumps(order), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def value_of(door, key):
    status, body = get(door, f"/query/counts/key/{key}")
    return body["value"] if status == 200 else None


def test_every_worker_answers_for_every_key_and_the_owner_says_so(new_fleet):
    fleet = new_fleet(guarantee="at_least_once")
    fleet.input.write(500)
    first, second = fleet.add(), fleet.add()
    keys = list(fleet.input.partition_of)
    for worker in (first, second):
        for key in keys:
            until(lambda door=worker.address, key=key: value_of(door, key) == fleet.input.count(key), worker)
    owners = {get(first.address, f"/query/counts/owner/{key}")[1]["owner"] for key in keys}
    assert owners == {f"{host}:{port}" for host, port in fleet.doors()}, "both have some"
    statuses = [get(first.address, f"/query/counts/key/{key}?forward=false")[0] for key in keys]
    assert set(statuses) == {200, 421}
    status, body = get(second.address, "/query/counts/range?limit=1000")
    rows = [row for part in body["partitions"].values() for row in part["rows"]]
    assert status == 200
    assert body["complete"]
    assert {row["key"]: row["value"] for row in rows} == {key: fleet.input.count(key) for key in keys}


def test_a_standby_answers_and_says_how_late_it_is(new_fleet):
    fleet = new_fleet(guarantee="at_least_once", standbys=1)
    fleet.input.write(200)
    fleet.add()
    fleet.add()
    (here, there), keys = fleet.workers, list(fleet.input.partition_of)

    def late(key):
        """What the worker tells that has a copy; None if there is none."""
        answers = [get(each.address, f"/query/counts/key/{key}?stale=true&forward=false") for each in (here, there)]
        if [status for status, _ in answers] != [200, 200] or sum(body["active"] for _, body in answers) != 1:
            return None
        [told] = [body for _, body in answers if not body["active"]]
        assert isinstance(told["lag_records"], int)
        return told

    def follows(key):
        fleet.input.write(20)
        told = late(key)
        return told is not None and told["age_ms"] is not None and 0 <= told["age_ms"] < 60_000

    def has_caught_up(key):
        told = late(key)
        return told is not None and told["value"] == fleet.input.count(key) and told["lag_records"] == 0

    for holds in (follows, has_caught_up):
        for key in keys:
            until(lambda key=key, holds=holds: holds(key), here)


def test_F70_while_a_long_restore_is_under_way_only_late_answers_are_given_and_say_so(new_fleet):
    fleet = new_fleet(restore_rate=1)
    fleet.input.write(300)
    first = fleet.add()
    owner, late = Prober(fleet), Prober(fleet, stale=True)
    owner.start()
    for key in fleet.input.partition_of:
        until(lambda key=key: value_of(first.address, key) == fleet.input.count(key), first)
    first.signal(signal.SIGTERM)
    second = fleet.add()  # its state directory is empty
    late.start(1)
    until(lambda: late.statuses["stale"] >= 20, second)
    answered, refused = owner.statuses["active"], owner.statuses["503"]
    fleet.input.write(50)
    until(lambda: owner.statuses["503"] >= refused + 100 and late.statuses["stale"] >= 100, second)
    assert owner.statuses["active"] == answered, "nobody has a partition before it is restored"
    assert late.statuses["active"] == 0
    assert min(late.lags) > 0
    assert get(second.address, "/control/restore-rate", {"bytes_per_second": 0})[0] == 202
    owner.wait_for_all_partitions(20)
    for prober in (owner, late):
        prober.stop()
    print(owner.report("restored, the owner's answers"), late.report("late ones"), f"lags to {max(late.lags)}")
    assert owner.errors == [] and late.errors == []


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_F70_answers_stay_true_while_workers_join_and_leave(new_fleet, guarantee):
    fleet = new_fleet(guarantee=guarantee)
    fleet.input.write(200)
    fleet.add()
    prober = Prober(fleet)
    prober.start()
    prober.wait_for_all_partitions()
    second = fleet.add()
    prober.wait_for_all_partitions()
    fleet.add()
    prober.wait_for_all_partitions()
    second.signal(signal.SIGTERM)
    prober.wait_for_all_partitions()
    prober.stop()
    print(prober.report("join, join, leave"))
    assert prober.errors == []
