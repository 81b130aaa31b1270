"""What a pass found becomes rows: phases, sums, plots, decisions, events, in one transaction at its end.

Called by reconciler.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import structlog
from sqlalchemy import insert, update
from sqlalchemy.orm import Session

from streamfleet_platform.definitions.fleet import priority_of_tier
from streamfleet_platform.model.fleet_definition import Budgets, FleetDefinition
from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.model.phase import Phase, may_move
from streamfleet_platform.operations.seen import AppSeen, WorkerSeen
from streamfleet_platform.operations.steps import OperationType
from streamfleet_platform.operations.work import AppRevision, World
from streamfleet_platform.reconcile.claims import claims_of, with_decision
from streamfleet_platform.reconcile.decisions import Former, bounds_of, probe_decision, scaling_decision
from streamfleet_platform.reconcile.drift import differences
from streamfleet_platform.reconcile.health import Ailments, HealthWatch
from streamfleet_platform.reconcile.phases import Situation, phase_of
from streamfleet_platform.reconcile.recent_rates import RecentRates
from streamfleet_platform.registry import apps, history, journal
from streamfleet_platform.registry.journal import Ended
from streamfleet_platform.registry.lease import Leadership
from streamfleet_platform.registry.tables import (
    App,
    InternalTopic,
    Observation,
    Operation,
    PhaseChange,
    ScalingRecord,
    Step,
    Worker,
)
from streamfleet_platform.scaling.attempts import Attempts
from streamfleet_platform.scaling.budget import free_slots

log = structlog.get_logger(__name__)

OBSERVATION_SECONDS = 5.0
DECISION_SECONDS = 5.0

Revisions = Mapping[str, Mapping[str, AppRevision]]
"""By app and id: those that are in use."""


@dataclass
class Recorded:
    """What the registry has, read at the beginning of a pass."""

    apps: Sequence[App]
    workers: Mapping[str, list[Worker]]
    operations: Mapping[str, Operation]
    topics: Mapping[str, list[InternalTopic]]
    scaling: Mapping[str, ScalingRecord]
    ended: Mapping[str, Ended]
    """By intent: how its operation ended, of those that are over."""
    fleet: FleetDefinition | None
    """None: nothing was applied yet."""


@dataclass
class Written:
    """What a pass writes at its end, in one transaction."""

    apps: list[dict[str, Any]] = field(default_factory=list)
    quarantined: list[dict[str, Any]] = field(default_factory=list)
    phases: list[dict[str, Any]] = field(default_factory=list)
    observations: list[dict[str, Any]] = field(default_factory=list)
    workers: list[dict[str, Any]] = field(default_factory=list)
    scaling: list[dict[str, Any]] = field(default_factory=list)
    events: list[tuple[str, str, str]] = field(default_factory=list)
    """App, kind and message."""
    troubles: dict[str, str] = field(default_factory=dict)
    """By app: what kept the pass from doing its part for it."""


class Recorder:
    """`types` are the operations there are."""

    def __init__(self, world: World, types: Mapping[OperationKind, OperationType]) -> None:
        self._world = world
        self._types = types
        self._health = HealthWatch()
        self._observed_at: dict[str, datetime] = {}
        self._decided_at: dict[str, datetime] = {}
        self._rates = RecentRates()

    def conclude(self, recorded: Recorded, revisions: Revisions, seen: Mapping[str, AppSeen], written: Written) -> None:
        """Everything that is to be written about every app."""
        now = self._world.clock()
        after = self._after()
        deciding: list[tuple[App, AppRevision]] = []
        for app in recorded.apps:
            row = after.apps.get(app.name)
            if row is None:  # retired in this pass
                self._health.forget(app.name)
                self._rates.forget(app.name)
                continue
            sight = seen[app.name]
            self._rates.add(app.name, sight.at, sight.records_per_second)
            revision = revisions[app.name].get(row.revision) or self._world.revisions.get(row.name, row.revision)
            ailments = self._ailments(row, sight, after, revision)
            phase, reason = self._phase(row, self._situation(row, sight, after, ailments), written)
            changed = self._summed_up(row, phase, reason, sight, recorded, after, revisions[app.name], now, written)
            if ailments.spent_budget is not None and row.quarantine is None:
                written.quarantined.append({"name": row.name, "quarantine": ailments.spent_budget})
                written.events.append((row.name, "quarantine", f"paused: {ailments.spent_budget}"))
            written.apps.append(changed)
            deciding.append((row, revision))
        self._decide_all(deciding, seen, recorded, now, written)

    def _phase(self, app: App, now: Situation, written: Written) -> tuple[Phase, str]:
        phase, reason = phase_of(now)
        if phase != app.phase and not may_move(Phase(app.phase), phase):
            log.error("phase cannot move so", app=app.name, old=app.phase, new=phase.value)
            return Phase(app.phase), app.reason
        trouble = written.troubles.get(app.name)
        return phase, "; ".join(filter(None, (reason, trouble)))

    def _ailments(self, app: App, seen: AppSeen, after: _After, revision: AppRevision) -> Ailments:
        is_left_alone = (
            app.name not in after.operations
            and app.desired == "running"
            and app.fenced_by is None
            and app.quarantine is None
        )
        return self._health.look(app.name, seen, revision.spec, revision.lock, is_left_alone=is_left_alone)

    def _after(self) -> _After:
        with self._world.database.read() as session:
            operations = {row.app: row for row in journal.busy(session)}
            return _After(
                apps={row.name: row for row in apps.all_apps(session)},
                workers=apps.all_workers(session),
                operations=operations,
                steps=journal.steps_under_way(session, [row.id for row in operations.values()]),
                failed=journal.last_failures(session),
            )

    def _situation(self, app: App, seen: AppSeen, after: _After, ailments: Ailments) -> Situation:
        operation = after.operations.get(app.name)
        step = None if operation is None else after.steps.get(operation.id)
        return Situation(
            app=app,
            seen=seen,
            wanted_slots=[row.slot for row in after.workers.get(app.name, ())],
            operation=operation,
            operation_phase=None if operation is None else self._types[OperationKind(operation.kind)].phase,
            step=None if step is None else f"{step.name}{'' if step.slot is None else f' {step.slot}'}: {step.detail}",
            failed=after.failed.get(app.name),
            ailments=ailments.told,
        )

    def _summed_up(
        self,
        app: App,
        phase: Phase,
        reason: str,
        seen: AppSeen,
        recorded: Recorded,
        after: _After,
        revisions: Mapping[str, AppRevision],
        now: datetime,
        written: Written,
    ) -> dict[str, Any]:
        is_new = phase != app.phase
        if is_new:
            written.phases.append({"app": app.name, "phase": phase.value, "since": now, "reason": reason})
        rows = after.workers.get(app.name, [])  # some may have gone in this pass
        drift = differences(app, rows, seen, revisions, recorded.topics.get(app.name, ()))
        probe = probe_decision(app.name, seen, app.observed.get("probe"), now)
        observed = {
            "slots_ready": sum(worker.is_up for worker in seen.workers.values()),
            "tasks": len(seen.active),
            "lag_records": seen.lag_records,
            "records_per_second": seen.records_per_second,
            "restoring_tasks": len(seen.restoring),
            "warming_tasks": len(seen.warming),
            "drift": list(drift),
            "placement": [task.model_dump() for task in seen.placement],
            "workers": [_worker(worker) for _, worker in sorted(seen.workers.items())],
            "topics": [
                {"name": name, "partitions": t.partitions, "end_offsets": t.end_offsets, "drift": list(t.drift)}
                for name, t in sorted(seen.topics.items())
            ],
            "store_bytes": dict(seen.store_bytes),
            "restore_bytes_per_second": _restore_speed(seen, app.observed),
            "probe": None if probe is None else probe.model_dump(mode="json"),
        }
        _note_workers(rows, seen, written)
        self._plot(app, observed, now, written)
        return {
            "name": app.name,
            "phase": phase.value,
            "phase_since": now if is_new else app.phase_since,
            "reason": reason,
            "observed": observed,
            "observed_at": seen.at,
        }

    def _plot(self, app: App, observed: Mapping[str, Any], now: datetime, written: Written) -> None:
        if not _is_due(self._observed_at, app.name, now, OBSERVATION_SECONDS):
            return
        names = ("lag_records", "records_per_second", "slots_ready", "restoring_tasks", "warming_tasks")
        written.observations.append({"app": app.name, "at": now, **{name: observed[name] for name in names}})

    def _decide_all(
        self,
        apps: Sequence[tuple[App, AppRevision]],
        seen: Mapping[str, AppSeen],
        recorded: Recorded,
        now: datetime,
        written: Written,
    ) -> None:
        """One after the other, the most important first: what one is given of the fleet's budget no other can have."""
        fleet = recorded.fleet
        claims = claims_of(recorded.apps, recorded.operations, recorded.scaling, recorded.ended)
        if fleet is not None:
            apps = sorted(apps, key=lambda each: -priority_of_tier(fleet, each[0].tier))
        for app, revision in apps:
            is_held = app.fenced_by is not None or app.quarantine is not None
            is_free = app.name not in recorded.operations and app.desired == "running" and not is_held
            if is_free and _is_due(self._decided_at, app.name, now, DECISION_SECONDS):
                self._decide(app, revision, seen[app.name], recorded, claims, now, written)

    def _decide(
        self,
        app: App,
        revision: AppRevision,
        seen: AppSeen,
        recorded: Recorded,
        claims: dict[str, int],
        now: datetime,
        written: Written,
    ) -> None:
        budgets = Budgets() if recorded.fleet is None else recorded.fleet.spec.budgets
        claims[app.name] = app.slots  # what it was to get is decided anew
        bounds = bounds_of(revision.spec, seen.measures, budgets.restore, free_slots(budgets.slots, claims))
        former = _former(recorded.scaling.get(app.name), recorded.ended)
        rate = self._rates.of(app.name)
        decided = scaling_decision(app, seen, former, bounds, rate, now)
        if decided is None:
            with_decision(claims, app, former.decision, recorded.ended)
            return
        view = decided.view
        told = view.model_dump(mode="json")
        with_decision(claims, app, told, {})
        attempts = decided.attempts.model_dump(mode="json")
        row = {"app": app.name, "decision": told, "recommended": decided.recommended, "attempts": attempts}
        written.scaling.append(row)
        before = former.decision
        if (view.action, view.slots) != (before.get("action"), before.get("slots")) and view.action != "hold":
            written.events.append((app.name, "scaling", f"{view.action} to {view.slots}: {view.reason}"))

    def write(self, leadership: Leadership, written: Written) -> None:
        """The leader's sight of things."""
        now = self._world.clock()

        def change(session: Session) -> None:
            for sights in (written.apps, written.quarantined):
                apps.put_sights(session, sights)
            if written.workers:
                session.execute(update(Worker), written.workers)
            for table, values in ((PhaseChange, written.phases), (Observation, written.observations)):
                if values:
                    session.execute(insert(table), values)
            history.put_scaling_records(session, written.scaling)
            for app, kind, message in written.events:
                history.add_event(session, now, kind, message, app=app)
            if written.observations:
                history.forget_old_observations(session, now)

        self._world.leases.write(leadership, change)


@dataclass(frozen=True)
class _After:
    """What the registry has once operations were carried on."""

    apps: Mapping[str, App]
    workers: Mapping[str, list[Worker]]
    operations: Mapping[str, Operation]
    steps: Mapping[str, Step]
    failed: Mapping[str, str]


def _restore_speed(seen: AppSeen, former: Mapping[str, Any]) -> float | None:
    """Of one restoring task; nothing restores most of the time, so what was measured last is kept."""
    now = None if seen.measures is None else seen.measures.restore_bytes_per_second
    return former.get("restore_bytes_per_second") if now is None else now


def _former(row: ScalingRecord | None, ended: Mapping[str, Ended]) -> Former:
    if row is None:
        return Former({}, [], Attempts())
    intent = row.decision.get("intent_id", "")
    return Former(row.decision, row.recommended, Attempts.model_validate(row.attempts), ended.get(intent))


def _is_due(last: dict[str, datetime], app: str, now: datetime, seconds: float) -> bool:
    if app in last and (now - last[app]).total_seconds() < seconds:
        return False
    last[app] = now
    return True


def _worker(worker: WorkerSeen) -> dict[str, Any]:
    state = worker.state
    return {
        "slot": state.slot,
        "state": state.phase.value,
        "reason": worker.failure or state.reason,
        "pid": state.pid,
        "url": state.url,
        "revision": state.revision,
        "topology_hash": worker.topology_hash,
        "client_state": worker.client_state,
        "restarts": state.restarts,
        "started_at": None if state.started_at is None else state.started_at.isoformat(),
        "is_leader": worker.is_leader,
        "busy_share": worker.busy_share,
    }


def _note_workers(rows: Sequence[Worker], seen: AppSeen, written: Written) -> None:
    """The last that was seen of each slot; only where that has changed."""
    for row in rows:
        worker = seen.workers.get(row.slot)
        if worker is None:
            continue
        told = _worker(worker)
        kept = {name: told[name] for name in ("pid", "url", "started_at", "topology_hash", "restarts")}
        now = (told["state"], told["reason"], kept)
        if now != (row.state, row.reason, row.seen):
            key = {"app": row.app, "slot": row.slot}
            written.workers.append({**key, "state": now[0], "reason": now[1], "seen": now[2]})
