"""The Observer that asks workers' doors, all at once, and the Doors that give them orders. Made by server/.

A door that does not answer within its time is told as such; nothing here waits for it longer, and nothing raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import httpx
import structlog

from streamfleet_platform.errors import TransientError
from streamfleet_platform.observe.looks import Look
from streamfleet_platform.observe.measuring import Measuring
from streamfleet_platform.operations.seen import AppSeen, WorkerSeen
from streamfleet_platform.reconcile.observing import AppToSee
from streamfleet_platform.runtime.api import WorkerState
from streamfleet_platform.scaling.measures import Measures
from streamfleet_platform.views import TaskView

log = structlog.get_logger(__name__)

_SECONDS = 3.0
_THREADS = 32


class HttpDoors:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        # trust_env off: a proxy of the environment has no business between us and loopback
        self._http = httpx.Client(timeout=_SECONDS, trust_env=False)

    def close(self) -> None:
        self._http.close()

    def order(self, worker: WorkerState, name: str, details: Mapping[str, Any] | None = None) -> None:
        self._ask("POST", worker, f"/control/{name}", json=dict(details or {}))

    def client_state(self, worker: WorkerState) -> str | None:
        try:
            return str(self.status(worker)["state"])
        except TransientError:
            return None

    def status(self, worker: WorkerState) -> dict[str, Any]:
        return self._ask("GET", worker, "/status")

    def _ask(self, method: str, worker: WorkerState, path: str, **body: Any) -> dict[str, Any]:
        if worker.url is None:
            raise TransientError(f"slot {worker.slot} of app {worker.app} has no door yet")
        headers = {} if worker.token is None else {"Authorization": f"Bearer {worker.token}"}
        try:
            answer = self._http.request(method, worker.url + path, headers=headers, **body)
            content = answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise TransientError(f"slot {worker.slot} of app {worker.app} does not answer: {error}") from error
        if answer.status_code >= httpx.codes.BAD_REQUEST or not isinstance(content, dict):
            said = content.get("error", content) if isinstance(content, dict) else content
            raise TransientError(f"slot {worker.slot} of app {worker.app} refused {path}: {said}")
        return content


class DoorObserver:
    def __init__(self, doors: HttpDoors, clock: Callable[[], datetime]) -> None:
        self._doors = doors
        self._clock = clock
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="observe")
        self._measuring = Measuring()
        self._positions: dict[str, tuple[datetime, dict[tuple[str, int], int]]] = {}

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def observe(self, apps: Sequence[AppToSee]) -> Mapping[str, AppSeen]:
        asked = [worker for app in apps for worker in app.workers if worker.is_alive and worker.url is not None]
        statuses = dict(zip([(w.app, w.slot) for w in asked], self._pool.map(self._status, asked), strict=True))
        now = self._clock()
        return {app.app.name: self._seen(app, statuses, now) for app in apps}

    def _status(self, worker: WorkerState) -> dict[str, Any] | None:
        try:
            return self._doors.status(worker)
        except TransientError:
            return None

    def _seen(self, app: AppToSee, statuses: Mapping[tuple[str, int], dict[str, Any] | None], now: datetime) -> AppSeen:
        workers = {w.slot: _worker(w, statuses.get((w.app, w.slot))) for w in app.workers}
        told = [(w.slot, status) for w in app.workers if (status := statuses.get((w.app, w.slot))) is not None]
        placement = tuple(task for slot, status in told for task in _tasks(slot, status))
        lags = [task.lag_records for task in placement if task.role == "active"]
        return AppSeen(
            at=now,
            workers=workers,
            placement=placement,
            lag_records=sum(lag or 0 for lag in lags) if lags else None,
            records_per_second=self._rate(app.app.name, told, now),
            measures=self._measures(app, dict(told), now),
        )

    def _measures(self, app: AppToSee, statuses: Mapping[int, dict[str, Any]], now: datetime) -> Measures | None:
        look = Look(now, statuses, frozenset(worker.slot for worker in app.workers if worker.is_alive))
        try:
            return self._measuring.look(app.app.name, look, app.revision.lock, app.app.application_id)
        except (KeyError, ValueError) as error:  # a worker of another version tells other things
            log.warning("app cannot be measured", app=app.app.name, error=repr(error))
            return None

    def _rate(self, app: str, told: Sequence[tuple[int, dict[str, Any]]], now: datetime) -> float | None:
        """By how far positions have moved since the last look, of partitions that were seen both times."""
        positions = {
            (place["topic"], place["partition"]): int(place["position"])
            for _, status in told
            for thread in status["threads"]
            for task in thread["tasks"]
            for place in task["inputs"]
        }
        former = self._positions.get(app)
        self._positions[app] = (now, positions)
        if former is None or not positions:
            return None
        seconds = (now - former[0]).total_seconds()
        moved = sum(max(0, positions[place] - at) for place, at in former[1].items() if place in positions)
        return moved / seconds if seconds > 0 else None


def _worker(state: WorkerState, status: Mapping[str, Any] | None) -> WorkerSeen:
    if status is None:
        return WorkerSeen(state)
    failure = status.get("failure")
    return WorkerSeen(
        state,
        client_state=status["state"],
        topology_hash=status["topology_hash"],
        is_ready=bool(status["ready"]["ok"]),
        is_paused=bool(status["paused"]),
        failure=None if failure is None else f"{failure['error']}: {failure['message']}",
    )


def _tasks(slot: int, status: Mapping[str, Any]) -> list[TaskView]:
    found = []
    for thread in status["threads"]:
        for task in thread["tasks"]:
            restore = task["restore"] or {}
            lags = [place["lag_records"] for place in task["inputs"]]
            known = [lag for lag in lags if lag is not None]
            found.append(
                _view(
                    task["id"],
                    slot,
                    role="active",
                    state=task["phase"],
                    lag_records=sum(known) if known else None,
                    restore_remaining=restore.get("remaining_records"),
                    eta_seconds=restore.get("eta_seconds"),
                )
            )
        for copy in thread["standbys"]:
            state = "caught_up" if copy["lag_records"] == 0 else "catching_up"
            lag, eta = copy["lag_records"], copy["eta_seconds"]
            found.append(_view(copy["id"], slot, role=copy["kind"], state=state, lag_records=lag, eta_seconds=eta))
    return found


def _view(task_id: str, slot: int, **more: Any) -> TaskView:
    sub_topology, partition = map(int, task_id.split("_"))
    return TaskView(id=task_id, sub_topology=sub_topology, partition=partition, slot=slot, **more)
