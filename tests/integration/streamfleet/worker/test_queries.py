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


def get(door, target):
    connection = http.client.HTTPConnection(*door, timeout=10)
    try:
        connection.request("GET", target)
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


def test_F70_answers_stay_true_while_workers_join_and_leave(new_fleet):
    fleet = new_fleet()
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
