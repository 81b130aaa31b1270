"""What is seen of an app, made up: for tests of everything that only looks."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.unit.streamfleet_platform.simulated_world import locks_of

from streamfleet_platform.model.app_definition import AppSpec
from streamfleet_platform.operations.seen import AppSeen, WorkerSeen
from streamfleet_platform.registry.tables import App
from streamfleet_platform.runtime.api import WorkerPhase, WorkerState
from streamfleet_platform.views import TaskView

START = datetime(2026, 1, 1, tzinfo=UTC)
LOCK = locks_of("one", "topology")
STORE = "activity-by-minute"


def at(**later):
    return START + timedelta(**later)


def spec(**more):
    return AppSpec.model_validate(
        {
            "code": {"entrypoint": "code:topology"},
            "cluster": "dev",
            "applicationId": "one",
            "inputs": {"orders": {"topic": "one-in"}},
            **more,
        }
    )


def state(slot=0, phase=WorkerPhase.RUNNING, started=START, **more):
    return WorkerState("one", slot, phase, "digest", "r1", started_at=started, **more)


def worker(slot=0, phase=WorkerPhase.RUNNING, started=START, reason=None, **more):
    told = {"client_state": "running", "is_ready": True, "topology_hash": LOCK.hash} | more
    return WorkerSeen(state(slot, phase, started, reason=reason), **told)


def seen(*workers, now=START, **more):
    return AppSeen(now, {each.state.slot: each for each in workers}, **more)


def later(sight, **delta):
    return replace(sight, at=sight.at + timedelta(**delta))


def task(task_id="1_0", slot=0, role="active", doing="running", **more):
    sub_topology, partition = map(int, task_id.split("_"))
    return TaskView(
        id=task_id, sub_topology=sub_topology, partition=partition, slot=slot, role=role, state=doing, **more
    )


def app(**more):
    given = {
        "name": "one", "owner": "team-a", "cluster": "dev", "application_id": "one", "generation": 1,
        "wanted_generation": 1, "revision": "r1", "wanted_revision": "r1", "desired": "running", "slots": 1,
        "phase": "running", "phase_since": START,
    }  # fmt: skip
    return App(**(given | more))
