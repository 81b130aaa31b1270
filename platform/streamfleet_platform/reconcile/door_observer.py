"""The Observer of real workers: asks their doors all at once, and adds what was seen of clusters and disks. Made by server/.

A door that does not answer within its time is told as such; nothing here waits for it longer, and nothing raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from typing import Any

import structlog

import streamfleet
from streamfleet_platform.errors import TransientError
from streamfleet_platform.observe.looks import Look
from streamfleet_platform.observe.measuring import Measuring
from streamfleet_platform.observe.restoring import RestoreRates, bytes_per_second
from streamfleet_platform.operations.seen import AppSeen, InputSeen, Place, TopicSeen, WorkerSeen
from streamfleet_platform.operations.work import AppRevision
from streamfleet_platform.reconcile.cluster_watch import (
    ClusterSight,
    ClusterWatch,
    cluster_drift,
    missing_inputs,
    topics_seen,
)
from streamfleet_platform.reconcile.doors import HttpDoors
from streamfleet_platform.reconcile.observing import AppToSee
from streamfleet_platform.reconcile.state_watch import SlotSizes, StateWatch, store_sizes
from streamfleet_platform.runtime.api import WorkerState
from streamfleet_platform.scaling.measures import Measures
from streamfleet_platform.views import TaskView

log = structlog.get_logger(__name__)

_THREADS = 32
BAD_REASONS = frozenset({"deserialization error", "processing error", "production error", "serialization error"})
"""Of records that were left out although nothing is wrong with when they came."""


class DoorObserver:
    """Close it. Used by one thread."""

    def __init__(
        self, doors: HttpDoors, clock: Callable[[], datetime], clusters: ClusterWatch, state: StateWatch
    ) -> None:
        self._doors = doors
        self._clock = clock
        self._clusters = clusters
        self._state = state
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="observe")
        self._measuring = Measuring()
        self._restoring = RestoreRates()
        self._positions: dict[str, tuple[datetime, dict[Place, int]]] = {}

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._clusters.close()
        self._state.close()

    def observe(self, apps: Sequence[AppToSee]) -> Mapping[str, AppSeen]:
        asked = [worker for app in apps for worker in app.workers if worker.is_alive and worker.url is not None]
        sights, sizes = self._clusters.sights(apps), self._state.sizes(apps)
        statuses = dict(zip([(w.app, w.slot) for w in asked], self._pool.map(self._status, asked), strict=True))
        now = self._clock()
        return {
            app.app.name: self._seen(app, statuses, sights.get(app.app.name), sizes.get(app.app.name, {}), now)
            for app in apps
        }

    def _status(self, worker: WorkerState) -> dict[str, Any] | None:
        try:
            return self._doors.status(worker)
        except TransientError:
            return None

    def _seen(
        self,
        app: AppToSee,
        statuses: Mapping[tuple[str, int], dict[str, Any] | None],
        sight: ClusterSight | None,
        sizes: SlotSizes,
        now: datetime,
    ) -> AppSeen:
        told = {w.slot: status for w in app.workers if (status := statuses.get((w.app, w.slot))) is not None}
        near = near_enough(app.revision)
        placement = tuple(task for slot, status in told.items() for task in tasks_of(slot, status, near))
        lags = [task.lag_records for task in placement if task.role == "active"]
        topics = {} if sight is None else topics_seen(app, sight)
        stores, largest = store_sizes(app.revision.lock, sizes)
        measures = self._measures(app, told, sizes, near, now)
        restored = self._restored(app, told, sum(stores.values()), topics)  # also while nothing else can be measured
        if measures is not None:
            measures = replace(measures, restore_bytes_per_second=restored)
        busy = {} if measures is None else {slot: shares.busy_share for slot, shares in measures.slots.items()}
        return AppSeen(
            at=now,
            workers={w.slot: worker_of(w, told.get(w.slot), busy.get(w.slot)) for w in app.workers},
            placement=placement,
            lag_records=_sum_of_known(lags),
            records_per_second=self._rate(app.app.name, told, now),
            inputs=inputs_of(told, {} if sight is None else sight.ends),
            topics=topics,
            store_bytes=stores,
            state=sizes,
            largest_stores=largest,
            measures=measures,
            drift=() if sight is None else cluster_drift(app, sight),
            missing=() if sight is None else missing_inputs(app, sight),
            cluster_problem=None if sight is None else sight.problem,
        )

    def _measures(
        self, app: AppToSee, statuses: Mapping[int, dict[str, Any]], sizes: SlotSizes, near: int, now: datetime
    ) -> Measures | None:
        look = Look(
            now,
            statuses,
            frozenset(worker.slot for worker in app.workers if worker.is_alive),
            {slot: sum(tasks.values()) for slot, tasks in sizes.items()},
        )
        try:
            return self._measuring.look(app.app.name, look, app.revision.lock, app.app.application_id, near)
        except (KeyError, ValueError) as error:  # a worker of another version tells other things
            log.warning("app cannot be measured", app=app.app.name, error=repr(error))
            return None

    def _restored(
        self,
        app: AppToSee,
        told: Mapping[int, dict[str, Any]],
        store_bytes: int,
        topics: Mapping[str, TopicSeen],
    ) -> float | None:
        rate = self._restoring.look(app.app.name, told)
        changelogs = {row.name for row in app.topics if row.kind == "changelog"}
        records = sum(topics[name].end_offsets or 0 for name in changelogs & topics.keys())
        return bytes_per_second(rate, store_bytes, records, 1 + app.revision.spec.state.standbys)

    def _rate(self, app: str, told: Mapping[int, dict[str, Any]], now: datetime) -> float | None:
        """By how far positions have moved since the last look, of partitions that were seen both times."""
        positions = {place: int(seen["position"]) for place, seen in _inputs(told)}
        former = self._positions.get(app)
        self._positions[app] = (now, positions)
        if former is None or not positions:
            return None
        seconds = (now - former[0]).total_seconds()
        moved = sum(max(0, positions[place] - at) for place, at in former[1].items() if place in positions)
        return moved / seconds if seconds > 0 else None


def worker_of(state: WorkerState, status: Mapping[str, Any] | None, busy_share: float | None) -> WorkerSeen:
    if status is None:
        return WorkerSeen(state)
    failure, dropped = status.get("failure"), status["dropped_records"]
    threads = status["threads"]
    return WorkerSeen(
        state,
        client_state=status["state"],
        topology_hash=status["topology_hash"],
        is_ready=bool(status["ready"]["ok"]),
        is_paused=bool(status["paused"]),
        is_leader=any(thread["leads_group"] for thread in threads),
        busy_share=busy_share,
        failure=None if failure is None else f"{failure['error']}: {failure['message']}",
        restore_rate=int(status["restore_rate_bytes_per_second"]),
        rebalances=int(status["rebalances"]),
        processed_records=sum(task["processed_records"] for thread in threads for task in thread["tasks"]),
        bad_records=sum(count for reason, count in dropped.items() if reason in BAD_REASONS),
    )


def inputs_of(told: Mapping[int, Mapping[str, Any]], ends: Mapping[str, Mapping[int, int]]) -> dict[Place, InputSeen]:
    """Ends as the cluster says, or as of a worker's last fetch: one that hangs fetches nothing more."""
    found = {}
    for place, seen in _inputs(told):
        topic, partition = place
        lag = seen["lag_records"]
        fetched = None if lag is None else int(seen["position"]) + int(lag)
        end = ends.get(topic, {}).get(partition, fetched)
        found[place] = InputSeen(seen["committed"], end, int(seen["position"]))
    return found


def _inputs(told: Mapping[int, Mapping[str, Any]]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    for status in told.values():
        for thread in status["threads"]:
            for task in thread["tasks"]:
                yield from (((seen["topic"], int(seen["partition"])), seen) for seen in task["inputs"])


def near_enough(revision: AppRevision) -> int:
    """How many records a copy may lack and still take its task over, as the app's workers count it."""
    settings = {**revision.cluster.config, **revision.spec.run.config}
    return int(settings.get("acceptable.recovery.lag", streamfleet.StreamsConfig.acceptable_recovery_lag))


def _sum_of_known(lags: Sequence[int | None]) -> int | None:
    """None where one of them is not known: what cannot be fetched may be any number."""
    known = [lag for lag in lags if lag is not None]
    return sum(known) if lags and len(known) == len(lags) else None


def tasks_of(slot: int, status: Mapping[str, Any], near: int) -> list[TaskView]:
    """A copy that is within `near` has caught up: where records keep coming it is never nearer than that for long."""
    found = []
    for thread in status["threads"]:
        for task in thread["tasks"]:
            restore = task["restore"] or {}
            found.append(
                _view(
                    task["id"],
                    slot,
                    role="active",
                    state=task["phase"],
                    lag_records=_sum_of_known([place["lag_records"] for place in task["inputs"]]),
                    restore_remaining=restore.get("remaining_records"),
                    eta_seconds=restore.get("eta_seconds"),
                )
            )
        for copy in thread["standbys"]:
            lag, eta = copy["lag_records"], copy["eta_seconds"]
            state = "caught_up" if lag is not None and lag <= near else "catching_up"
            found.append(_view(copy["id"], slot, role=copy["kind"], state=state, lag_records=lag, eta_seconds=eta))
    return found


def _view(task_id: str, slot: int, **more: Any) -> TaskView:
    sub_topology, partition = map(int, task_id.split("_"))
    return TaskView(id=task_id, sub_topology=sub_topology, partition=partition, slot=slot, **more)
