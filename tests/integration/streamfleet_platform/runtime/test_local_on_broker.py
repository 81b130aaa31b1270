"""A real app on a real broker, run by the local runtime: two slots, killed workers, measures from their doors."""

import json
import os
import signal
import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from examples.apps.orders import topology
from streamfleet_platform.observe.looks import Look
from streamfleet_platform.observe.measuring import measured
from streamfleet_platform.runtime.api import WorkerPhase, WorkerSpec
from streamfleet_platform.runtime.local import LocalRuntime, LocalSettings, RestartPolicy
from streamfleet_platform.topologies.lock import TopologyLock

ROOT = Path(__file__).parents[4]
TOPICS = ("orders", "customers", "enriched-orders", "revenue-per-country")
LOCK = TopologyLock.from_topology_json(topology().to_json())


def wait_for(condition, what, seconds=90):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, what()
        time.sleep(0.2)
    return found


@pytest.fixture
def topics(broker):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in admin.create_topics([NewTopic(name, 2, 1) for name in TOPICS]).values():
        future.result(30)
    yield
    for future in admin.delete_topics(list(TOPICS)).values():
        future.result(30)


@pytest.fixture
def runtime(tmp_path, topics):
    runtime = LocalRuntime(LocalSettings(tmp_path / "runtime", restarts=RestartPolicy(first_pause=0.1)))
    yield runtime
    for state in runtime.list():
        runtime.stop(state.app, state.slot, token=1)
    wait_for(lambda: not any(state.is_alive for state in runtime.list()), runtime.list)


@pytest.fixture
def specs(broker):
    application_id = f"orders-{uuid.uuid4().hex[:8]}"
    settings = {"bootstrap.servers": broker.bootstrap_servers, "commit.interval.ms": 200, "session.timeout.ms": 10_000}
    return [
        WorkerSpec("orders", application_id, slot, "r1", ROOT, "examples.apps.orders:topology", settings)
        for slot in (0, 1)
    ]


def produce(broker, topic, records):
    # Java's partitioner, which the app uses too: customers have to be where their orders come to
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "partitioner": "murmur2_random"})
    for key, value in records:
        producer.produce(topic, json.dumps(value), key)
    assert producer.flush(30) == 0


def customers():
    return [(f"c{number}", {"name": f"n{number}", "country": f"k{number % 5}"}) for number in range(50)]


def orders(count):
    return [(f"o{n}", {"customer": f"c{n % 50}", "product": "p", "cents": 100}) for n in range(count)]


def look(runtime):
    statuses = {}
    for state in runtime.list():
        try:
            statuses[state.slot] = httpx.get(f"{state.url}/status", timeout=3, trust_env=False).json()
        except httpx.HTTPError:
            continue
    sizes = {state.slot: runtime.state_bytes(state.app, state.slot) for state in runtime.list()}
    return Look(datetime.now(UTC), statuses, frozenset(state.slot for state in runtime.list()), sizes)


def at_rest(runtime, topic, records):
    """All six tasks run, on both slots; so many records have come to a topic, and all are processed."""
    found = look(runtime)
    tasks = list(found.tasks())
    shares = {task.slot for task in tasks}
    done = len(tasks) == 6 and shares == {0, 1} and found.is_at_rest and all(task.lag_records == 0 for task in tasks)
    seen = sum(end for (name, _), end in found.ends().items() if name.endswith(topic))
    return found if done and seen == records else None


def test_two_slots_share_an_app_that_is_measured_and_a_killed_one_comes_back_as_the_same_member(broker, runtime, specs):
    def told():
        return "\n".join(runtime.logs("orders", slot, 15) for slot in (0, 1)) + str(runtime.list())

    for spec in specs:
        runtime.start(spec, token=1)
    produce(broker, "customers", customers())
    before = wait_for(lambda: at_rest(runtime, "customers", 50), told)
    produce(broker, "orders", orders(2000))
    after = wait_for(lambda: at_rest(runtime, "by-country-repartition", 2000), told)

    found = measured(before, after, LOCK, specs[0].application_id)
    seconds = (after.at - before.at).total_seconds()
    arrived = sum(task.records_per_second for task in found.tasks.values()) * seconds
    assert arrived == pytest.approx(2000)
    assert all(task.busy_seconds_per_record < 0.05 for task in found.tasks.values())
    ratios = [ratio for part in found.sub_topologies.values() for ratio in part.fed_by.values()]
    assert ratios == [1.0, 1.0]
    assert sum(task.state_bytes for task in found.tasks.values()) > 0
    assert all(0 < slot.busy_share < 1 for slot in found.slots.values())

    pid = runtime.describe("orders", 1).pid
    placed = {task.id: task.slot for task in after.tasks()}
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: runtime.describe("orders", 1).restarts == 1, told)
    again = wait_for(lambda: at_rest(runtime, "by-country-repartition", 2000), told)
    assert {task.id: task.slot for task in again.tasks()} == placed  # the same static member: no task moved
    assert runtime.describe("orders", 1).phase is WorkerPhase.RUNNING

    state = runtime.describe("orders", 0)
    assert httpx.post(f"{state.url}/control/probe", json={}, trust_env=False).status_code == 401
    shown = {"Authorization": f"Bearer {state.token}"}
    assert httpx.post(f"{state.url}/control/probe", json={}, headers=shown, trust_env=False).status_code == 202


def test_a_wrong_setting_is_told_with_the_engines_own_words(runtime, specs):
    runtime.start(replace(specs[0], settings={"commit.interval.ms": "soon"}), token=1)
    state = wait_for(lambda: (s := runtime.describe("orders", 0)).phase is WorkerPhase.CRASH_LOOP and s, runtime.list)
    assert state.exit_code == 2 and "commit.interval.ms" in state.reason and state.has_given_up
