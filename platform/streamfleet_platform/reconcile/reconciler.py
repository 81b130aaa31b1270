"""One pass over all apps: look, carry operations on, correct drift, decide, write down. Called by server/ again and again, by the
leader only.

The world is read afresh each time; nothing is remembered between passes but what is cheap to find out again. A problem with one app
never keeps the others from their turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import structlog
from sqlalchemy import insert, update
from sqlalchemy.orm import Session

from streamfleet_platform.errors import StaleError
from streamfleet_platform.model.operation import OperationKind, OperationState
from streamfleet_platform.model.phase import Phase, may_move
from streamfleet_platform.operations.journal import Journal
from streamfleet_platform.operations.seen import AppSeen, WorkerSeen
from streamfleet_platform.operations.steps import OperationType
from streamfleet_platform.operations.work import AppRevision, World, spec_of
from streamfleet_platform.reconcile.decisions import probe_decision, scaling_decision
from streamfleet_platform.reconcile.drift import Correction, corrections, differences
from streamfleet_platform.reconcile.observing import AppToSee, Observer
from streamfleet_platform.reconcile.phases import Situation, phase_of
from streamfleet_platform.registry import apps, history, journal
from streamfleet_platform.registry.lease import Leadership, NotLeaderError
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
from streamfleet_platform.runtime.api import WorkerState

log = structlog.get_logger(__name__)

MAX_STARTS = 20
"""Workers that one pass starts beside its operations: after a machine comes back they come up in turns."""
OBSERVATION_SECONDS = 5.0
DECISION_SECONDS = 5.0


@dataclass
class _Recorded:
    """What the registry has, read at the beginning of a pass."""

    apps: Sequence[App]
    workers: Mapping[str, list[Worker]]
    operations: Mapping[str, Operation]
    steps: Mapping[str, Step]
    topics: Mapping[str, list[InternalTopic]]
    scaling: Mapping[str, ScalingRecord]
    over: frozenset[str]
    """Intents whose operation is over."""
    budget: int | None


@dataclass
class _Written:
    """What a pass writes at its end, in one transaction."""

    apps: list[dict[str, Any]] = field(default_factory=list)
    phases: list[dict[str, Any]] = field(default_factory=list)
    observations: list[dict[str, Any]] = field(default_factory=list)
    workers: list[dict[str, Any]] = field(default_factory=list)
    scaling: list[ScalingRecord] = field(default_factory=list)
    events: list[tuple[str, str, str]] = field(default_factory=list)


class Reconciler:
    def __init__(
        self, world: World, steps: Journal, types: Mapping[OperationKind, OperationType], observer: Observer
    ) -> None:
        self._world = world
        self._journal = steps
        self._types = types
        self._observer = observer
        self._observed_at: dict[str, datetime] = {}
        self._decided_at: dict[str, datetime] = {}

    def pass_once(self, leadership: Leadership) -> bool:
        """Whether an operation is under way, so that the next pass should come soon."""
        recorded = self._read()
        if not recorded.apps:
            return False
        revisions = self._revisions(recorded)
        seen = self._look(recorded, revisions)
        written, starts = _Written(), MAX_STARTS
        for app in recorded.apps:
            operation = recorded.operations.get(app.name)
            try:
                if operation is not None:
                    self._journal.advance(leadership, operation, app, seen[app.name])
                else:
                    starts -= self._correct(leadership, app, recorded, revisions, seen[app.name], written, starts)
            except (NotLeaderError, StaleError):
                raise
            except Exception as error:
                log.warning("app could not be reconciled", app=app.name, error=str(error))
                written.events.append((app.name, "trouble", str(error)))
        self._conclude(recorded, revisions, seen, written)
        self._write(leadership, written)
        return any(operation.state != OperationState.ASKING for operation in recorded.operations.values())

    def _read(self) -> _Recorded:
        with self._world.database.read() as session:
            operations = {row.app: row for row in journal.busy(session)}
            scaling = history.scaling_records(session)
            intents = [row.decision.get("intent_id", "") for row in scaling.values()]
            fleet = apps.fleet_state(session).definition
            return _Recorded(
                apps=apps.all_apps(session),
                workers=apps.all_workers(session),
                operations=operations,
                steps=journal.steps_under_way(session, [row.id for row in operations.values()]),
                topics=apps.all_topics(session),
                scaling=scaling,
                over=journal.over_intents(session, intents),
                budget=fleet.get("spec", {}).get("budgets", {}).get("slots"),
            )

    def _revisions(self, recorded: _Recorded) -> dict[str, dict[str, AppRevision]]:
        keys = {(app.name, app.revision) for app in recorded.apps}
        keys |= {(row.app, row.revision) for rows in recorded.workers.values() for row in rows}
        found: dict[str, dict[str, AppRevision]] = {app.name: {} for app in recorded.apps}
        for (app, revision), value in self._world.revisions.load(sorted(keys)).items():
            found.setdefault(app, {})[revision] = value
        return found

    def _look(self, recorded: _Recorded, revisions: Mapping[str, Mapping[str, AppRevision]]) -> dict[str, AppSeen]:
        workers: dict[str, list[WorkerState]] = {}
        for state in self._world.runtime.list():
            workers.setdefault(state.app, []).append(state)
        asked = [
            AppToSee(
                app, revisions[app.name][app.revision], workers.get(app.name, ()), recorded.topics.get(app.name, ())
            )
            for app in recorded.apps
        ]
        seen = dict(self._observer.observe(asked))
        for each in asked:
            if each.app.name not in seen:
                blind = {state.slot: WorkerSeen(state) for state in each.workers}
                seen[each.app.name] = AppSeen(at=self._world.clock(), workers=blind)
        return seen

    # drift

    def _correct(
        self,
        leadership: Leadership,
        app: App,
        recorded: _Recorded,
        revisions: Mapping[str, Mapping[str, AppRevision]],
        seen: AppSeen,
        written: _Written,
        starts: int,
    ) -> int:
        rows = recorded.workers.get(app.name, [])
        specs = {
            row.slot: spec_of(self._world, revisions[app.name][row.revision], row.slot, app.epochs) for row in rows
        }
        started = 0
        for correction in corrections(app, rows, seen, specs):
            if correction.what == "start":
                if started >= starts:
                    continue
                started += 1
            self._carry_out(leadership, app, correction, seen, specs)
            written.events.append((app.name, "drift", f"{correction.what} slot {correction.slot}: {correction.why}"))
        return started

    def _carry_out(
        self, leadership: Leadership, app: App, correction: Correction, seen: AppSeen, specs: Mapping[int, Any]
    ) -> None:
        slot, runtime = correction.slot, self._world.runtime
        self._world.leases.write(leadership, lambda _: None)  # an act of its own: is this still ours to do?
        if correction.what == "start":
            runtime.start(specs[slot], token=leadership.token)
        elif correction.what == "stop":
            runtime.stop(app.name, slot, token=leadership.token)
        elif correction.what == "adopt":
            revision = seen.workers[slot].state.revision
            self._world.revisions.get(app.name, revision)  # NotFoundError: unknown, so it is only told
            self._world.leases.write(leadership, lambda s: apps.put_worker(s, app.name, slot, revision))
        else:
            self._world.doors.order(seen.workers[slot].state, correction.what)

    # what is written down

    def _conclude(
        self,
        recorded: _Recorded,
        revisions: Mapping[str, Mapping[str, AppRevision]],
        seen: Mapping[str, AppSeen],
        written: _Written,
    ) -> None:
        now = self._world.clock()
        after = self._after(recorded)
        for app in recorded.apps:
            row = after.apps.get(app.name)
            if row is None:
                continue  # retired in this pass
            sight = seen[app.name]
            revision = revisions[app.name].get(row.revision) or self._world.revisions.get(row.name, row.revision)
            phase, reason = phase_of(self._situation(row, sight, after, revision))
            if phase != row.phase and not may_move(Phase(row.phase), phase):
                log.error("phase cannot move so", app=app.name, old=row.phase, new=phase.value)
                phase, reason = Phase(row.phase), row.reason
            self._sum_up(row, phase, reason, sight, recorded, revisions[app.name], revision, now, written)

    def _after(self, recorded: _Recorded) -> _After:
        with self._world.database.read() as session:
            operations = {row.app: row for row in journal.busy(session)}
            return _After(
                apps={row.name: row for row in apps.all_apps(session)},
                workers=apps.all_workers(session),
                operations=operations,
                steps=journal.steps_under_way(session, [row.id for row in operations.values()]),
                failed=journal.last_failures(session),
            )

    def _situation(self, app: App, seen: AppSeen, after: _After, revision: AppRevision) -> Situation:
        operation = after.operations.get(app.name)
        step = None if operation is None else after.steps.get(operation.id)
        return Situation(
            app=app,
            seen=seen,
            wanted_slots=[row.slot for row in after.workers.get(app.name, ())],
            operation=operation,
            operation_phase=None if operation is None else self._types[OperationKind(operation.kind)].phase,
            step=None if step is None else f"{step.name}{'' if step.slot is None else f' {step.slot}'}: {step.detail}",
            health=revision.spec.health,
            failed=after.failed.get(app.name),
        )

    def _sum_up(
        self,
        app: App,
        phase: Phase,
        reason: str,
        seen: AppSeen,
        recorded: _Recorded,
        revisions: Mapping[str, AppRevision],
        revision: AppRevision,
        now: datetime,
        written: _Written,
    ) -> None:
        is_new = phase != app.phase
        if is_new:
            written.phases.append({"app": app.name, "phase": phase.value, "since": now, "reason": reason})
        rows = recorded.workers.get(app.name, [])
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
            "probe": None if probe is None else probe.model_dump(mode="json"),
        }
        changed: dict[str, Any] = {"name": app.name, "phase": phase.value, "reason": reason, "observed": observed}
        changed["phase_since"] = now if is_new else app.phase_since
        changed["observed_at"] = seen.at
        written.apps.append(changed)
        self._plot(app, observed, now, written)
        self._decide(app, revision, seen, recorded, now, written)

    def _plot(self, app: App, observed: Mapping[str, Any], now: datetime, written: _Written) -> None:
        if not _is_due(self._observed_at, app.name, now, OBSERVATION_SECONDS):
            return
        names = ("lag_records", "records_per_second", "slots_ready", "restoring_tasks", "warming_tasks")
        written.observations.append({"app": app.name, "at": now, **{name: observed[name] for name in names}})

    def _decide(
        self, app: App, revision: AppRevision, seen: AppSeen, recorded: _Recorded, now: datetime, written: _Written
    ) -> None:
        is_free = app.name not in recorded.operations and app.desired == "running" and app.fenced_by is None
        if not is_free or not _is_due(self._decided_at, app.name, now, DECISION_SECONDS):
            return
        former = recorded.scaling.get(app.name)
        before = {} if former is None else former.decision
        used = sum(row.slots for row in recorded.apps)
        decided = scaling_decision(
            app.name,
            revision.spec,
            seen,
            before,
            [] if former is None else former.recommended,
            now,
            free_slots=None if recorded.budget is None else max(0, recorded.budget - used),
            is_over=before.get("intent_id") in recorded.over,
        )
        if decided is None:
            return
        view, recommended = decided
        written.scaling.append(
            ScalingRecord(app=app.name, decision=view.model_dump(mode="json"), recommended=recommended)
        )
        if (view.action, view.slots) != (before.get("action"), before.get("slots")) and view.action != "hold":
            written.events.append((app.name, "scaling", f"{view.action} to {view.slots}: {view.reason}"))

    def _write(self, leadership: Leadership, written: _Written) -> None:
        """The leader's sight of things. No version is raised: nobody decides on these columns by compare-and-set."""
        now = self._world.clock()

        def change(session: Session) -> None:
            if written.apps:
                session.execute(update(App), written.apps)
            for table, values in ((PhaseChange, written.phases), (Observation, written.observations)):
                if values:
                    session.execute(insert(table), values)
            for record in written.scaling:
                session.merge(record)
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
