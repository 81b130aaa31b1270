"""What is wrong with an app that runs, over time: progress, restores, rebalances, sizes, bad records, each against the bound
that its definition sets. Called by reconciler.py in every pass, with what was just seen.

It remembers when things began, in memory: a new server counts anew, which delays an alarm and never invents one. While an operation
runs nothing is held against the app: rebalances and restores are what operations are made of.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from streamfleet_platform.model.app_definition import AppSpec
from streamfleet_platform.model.app_policies import ErrorBudget
from streamfleet_platform.model.quantities import bytes_text, duration_text
from streamfleet_platform.operations.seen import AppSeen, Place, WorkerSeen
from streamfleet_platform.topologies.lock import TopologyLock

HOUR = timedelta(hours=1)
BUCKET = timedelta(seconds=10)
"""Counts within it are kept as one."""
_Process = tuple[int, object]
"""A slot, and when its process began: counters of another process begin anew."""


@dataclass(frozen=True)
class Ailments:
    """What is wrong, in sentences."""

    told: tuple[str, ...] = ()
    spent_budget: str | None = None
    """Why the app should be paused."""


@dataclass
class _Counted:
    """A counter of workers, as one that never goes back."""

    last: dict[_Process, int] = field(default_factory=dict)
    history: deque[tuple[datetime, int]] = field(default_factory=deque)

    def add(self, at: datetime, count: int) -> None:
        if self.history and at - self.history[-1][0] < BUCKET:
            at, count = self.history[-1][0], self.history.pop()[1] + count
        if count:
            self.history.append((at, count))


@dataclass
class _Remembered:
    places: dict[Place, tuple[int, datetime]] = field(default_factory=dict)
    first_positions: dict[Place, int] = field(default_factory=dict)
    restoring: dict[str, datetime] = field(default_factory=dict)
    rebalances: _Counted = field(default_factory=_Counted)
    processed: _Counted = field(default_factory=_Counted)
    bad: _Counted = field(default_factory=_Counted)


class HealthWatch:
    """All apps of a fleet. Used by one thread."""

    def __init__(self) -> None:
        self._apps: dict[str, _Remembered] = {}

    def look(self, app: str, seen: AppSeen, spec: AppSpec, lock: TopologyLock, *, is_left_alone: bool) -> Ailments:
        """`is_left_alone`: it is to run, and no operation is about to change it."""
        known = self._apps.setdefault(app, _Remembered())
        _count(known.rebalances, seen, lambda worker: worker.rebalances, is_shared=True)
        if spec.errors.budget is not None:
            _count(known.processed, seen, lambda worker: worker.processed_records)
            _count(known.bad, seen, lambda worker: worker.bad_records)
        if not is_left_alone:
            self._apps[app] = _Remembered(
                rebalances=_Counted(known.rebalances.last),
                processed=_Counted(known.processed.last),
                bad=_Counted(known.bad.last),
            )
            return Ailments()
        told = [
            *_stuck(known, seen, spec.health.no_progress),
            *_long_restores(known, seen, spec.health.max_restore),
            *_restless(known, seen.at, spec.health.max_rebalances_per_hour),
            *_large_stores(seen, spec, lock),
        ]
        budget = spec.errors.budget
        return Ailments(tuple(told), None if budget is None else _spent(known, seen.at, budget))

    def forget(self, app: str) -> None:
        self._apps.pop(app, None)


def _count(counted: _Counted, seen: AppSeen, value: Callable[[WorkerSeen], int], *, is_shared: bool = False) -> None:
    """What was added since the last look. All members of a group count the same rebalance: the most of one is what there were."""
    added = []
    for slot, worker in seen.workers.items():
        if worker.client_state is None:
            continue
        process = (slot, worker.state.started_at)
        now = value(worker)
        added.append(max(0, now - counted.last[process]) if process in counted.last else 0)
        counted.last = {known: count for known, count in counted.last.items() if known[0] != slot} | {process: now}
    counted.add(seen.at, max(added, default=0) if is_shared else sum(added))


def _within(counted: _Counted, now: datetime, window: timedelta) -> int:
    while counted.history and counted.history[0][0] <= now - window:
        counted.history.popleft()
    return sum(count for _, count in counted.history)


def _stuck(known: _Remembered, seen: AppSeen, bound_ms: int) -> Iterator[str]:
    """Committed offsets that stand still while there are records behind them. Nobody else moves an offset of a partition whose
    worker is silent, so what is not told any more stands still too. Where nothing was committed yet it stands where its worker
    began: a topic may begin far behind 0.
    """
    for place, now in seen.inputs.items():
        first = known.first_positions.setdefault(place, now.position or 0)
        committed = first if now.committed is None else now.committed
        former = known.places.get(place)
        if former is None or former[0] != committed or now.end is None or committed >= now.end:
            known.places[place] = (committed, seen.at)
    if not seen.inputs:
        return
    for (topic, partition), (committed, since) in sorted(known.places.items()):
        stood = (seen.at - since).total_seconds() * 1000
        if stood > bound_ms:
            yield f"no progress for {duration_text(stood)}: {topic}-{partition} stands at {committed}"


def _long_restores(known: _Remembered, seen: AppSeen, bound_ms: int) -> Iterator[str]:
    open_now = {f"{task.id} on slot {task.slot}" for task in seen.restoring}
    known.restoring = {task: known.restoring.get(task, seen.at) for task in open_now}
    for task, since in sorted(known.restoring.items()):
        taken = (seen.at - since).total_seconds() * 1000
        if taken > bound_ms:
            yield f"task {task} restores for {duration_text(taken)}, more than {duration_text(bound_ms)}"


def _restless(known: _Remembered, now: datetime, bound: int) -> Iterator[str]:
    count = _within(known.rebalances, now, HOUR)
    if count > bound:
        yield f"{count} rebalances within an hour, more than {bound}"


def _large_stores(seen: AppSeen, spec: AppSpec, lock: TopologyLock) -> Iterator[str]:
    """By database: the stores of one sub-topology share it, and so their bounds."""
    for part in lock.sub_topologies:
        stores = sorted(part["stores"])
        bounds = [spec.state.stores[name].max_bytes if name in spec.state.stores else None for name in stores]
        held = seen.largest_stores.get(stores[0]) if stores else None
        if held is None or any(bound is None for bound in bounds):
            continue
        bound = sum(bound or 0 for bound in bounds)
        if held[1] > bound:
            yield f"slot {held[0]} has {bytes_text(held[1])} of {', '.join(stores)}, more than {bytes_text(bound)}"


def _spent(known: _Remembered, now: datetime, budget: ErrorBudget) -> str | None:
    """One bad record is within every budget: its share of few records says nothing."""
    window = timedelta(milliseconds=budget.window)
    bad, processed = _within(known.bad, now, window), _within(known.processed, now, window)
    if bad <= max(1.0, budget.rate * processed):
        return None
    return (
        f"{bad} of {processed} records within {duration_text(budget.window)} could not be handled, "
        f"more than {budget.rate:.2%}"
    )
