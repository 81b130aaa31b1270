"""A fleet in memory, at the port: FleetService with nothing behind it. fleet_contract.py tests it like the real one."""

from __future__ import annotations

import hashlib
import threading
from datetime import UTC, datetime
from typing import Any

from streamfleet_platform import views
from streamfleet_platform.errors import ConflictError, InvalidRequestError, NotFoundError, StaleError
from streamfleet_platform.model.operation import OperationKind, OperationState, StepState
from streamfleet_platform.model.phase import Phase
from streamfleet_platform.service import Door, Limits

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
OWNERS = {"orders": "payments", "clicks": "web"}


def app_detail(name: str, owner: str, **given: Any) -> views.AppDetail:
    settled: dict[str, Any] = {
        "name": name,
        "owner": owner,
        "tier": "gold",
        "cluster": "main",
        "application_id": f"{name}-app",
        "generation": 1,
        "revision": "sha256-00",
        "desired": "running",
        "phase": Phase.RUNNING,
        "phase_since": NOW,
        "slots": 2,
        "slots_ready": 2,
        "min_slots": 1,
        "max_slots": 8,
        "tasks": 4,
        "lag_records": 12,
        "topology_hash": "sha256:11",
        "sub_topologies": (
            views.SubTopologyView(id=0, content_id="c", sources=("in",), sinks=("out",), stores=("counts",)),
        ),
        "stores": (
            views.StoreView(name="counts", kind="timestamped_key_value", changelog="c-changelog", sub_topology=0),
            views.StoreView(name="by-minute", kind="timestamped_window", changelog="w-changelog", sub_topology=0),
            views.StoreView(name="held-back", kind="change_buffer", changelog="b-changelog", sub_topology=0),
        ),
        "topics": (views.TopicView(name="in", role="input", partitions=4),),
        "workers": (views.WorkerView(slot=0, state="running"), views.WorkerView(slot=1, state="running")),
        "placement": (
            views.TaskView(id="0_0", sub_topology=0, partition=0, role="active", slot=0, state="running"),
            views.TaskView(id="0_0", sub_topology=0, partition=0, role="standby", slot=1, state="caught_up"),
        ),
    }
    return views.AppDetail(**(settled | given))


class FakeFleet:
    """Two apps of two teams. `settle` lets operations that were begun come to their end."""

    def __init__(self) -> None:
        self.apps_by_name = {name: app_detail(name, owner) for name, owner in OWNERS.items()}
        self.operations_by_id: dict[str, views.OperationView] = {}
        self.log: list[views.EventView] = []
        self.doors_of: dict[str, list[Door]] = {}
        self.reports: dict[str, tuple[views.AuditRunView, str]] = {}
        self.runs: dict[str, views.BootstrapRunView] = {}
        self.decided = views.Decisions()
        self.planned: tuple[views.AppChange, ...] = ()
        self._lock = threading.RLock()

    # looking

    def fleet(self) -> views.FleetView:
        return views.FleetView(
            name="test",
            version="0",
            revision=None,
            is_leader=True,
            apps=len(self.apps_by_name),
            by_phase={"running": 2},
            workers=4,
            lag_records=24,
        )

    def apps(self) -> list[views.AppSummary]:
        fields = views.AppSummary.model_fields
        return [views.AppSummary(**{name: getattr(app, name) for name in fields}) for app in self.apps_by_name.values()]

    def app(self, name: str) -> views.AppDetail:
        if name not in self.apps_by_name:
            raise NotFoundError(f"there is no app {name}", hint="see `streamfleet status`")
        return self.apps_by_name[name]

    def owner_of(self, app: str) -> str:
        return self.app(app).owner

    def provenance(self, app: str) -> list[tuple[str, str, str]]:
        self.app(app)
        return [("spec.scaling.min", "1", "apps/orders.yaml:12")]

    def topology_svg(self, app: str) -> str:
        self.app(app)
        return "<svg xmlns='http://www.w3.org/2000/svg'/>"

    def phases(self, app: str, limit: int) -> list[views.PhaseChange]:
        self.app(app)
        return [views.PhaseChange(phase=Phase.RUNNING, since=NOW, reason="all tasks run")][:limit]

    def observations(self, app: str, limit: int) -> list[views.ObservationPoint]:
        self.app(app)
        point = views.ObservationPoint(
            at=NOW, lag_records=1, records_per_second=2.0, slots_ready=2, restoring_tasks=0, warming_tasks=0
        )
        return [point][:limit]

    def logs(self, app: str, slot: int, lines: int) -> str:
        if slot not in [worker.slot for worker in self.app(app).workers]:
            raise NotFoundError(f"app {app} has no slot {slot}")
        return "\n".join(["a line"] * min(lines, 3)) + "\n"

    def doors(self, app: str) -> list[Door]:
        self.app(app)
        return self.doors_of.get(app, [])

    def events(self, app: str | None, after: int, limit: int) -> list[views.EventView]:
        found = [event for event in self.log if event.id > after and app in (None, event.app)]
        return found[:limit] if after else found[-limit:]

    # changing

    def plan(self, source: views.SourceRequest) -> views.PlanView:
        return views.PlanView(revision="sha256-22", changes=self.planned)

    def apply(
        self, request: views.ApplyRequest, *, actor: str, intent_id: str, limits: Limits | None = None
    ) -> views.ApplyResult:
        begun = []
        changes = [c for c in self.planned if c.action != "none" and (not request.apps or c.app in request.apps)]
        if limits is not None:
            for change in changes:
                limits.check(change, OWNERS.get(change.app))
        for change in changes:
            kind = OperationKind.DEPLOY if change.action == "create" else OperationKind.UPGRADE
            if change.app not in self.apps_by_name:
                self.apps_by_name[change.app] = app_detail(change.app, change.owner or "?")
            operation = self._begin(kind, change.app, {"ref": request.ref}, actor, f"{intent_id}:{change.app}")
            begun.append(ref_of(operation))
        return views.ApplyResult(plan=self.plan(request), operations=tuple(begun))

    def start_operation(
        self, kind: OperationKind, app: str, params: dict[str, object], *, actor: str, intent_id: str
    ) -> views.OperationView:
        slots, decided_at = self.app(app).slots, params.get("from_slots")
        if decided_at is not None and decided_at != slots:
            raise StaleError(f"app {app} has {slots} slots by now", hint="wait for the next decision")
        preview = params.get("preview")
        if kind is OperationKind.RESET and preview is not None and preview != self.reset_preview(app).id:
            raise StaleError("the preview no longer fits", hint="look again")
        return self._begin(kind, app, params, actor, intent_id)

    def _begin(
        self, kind: OperationKind, app: str, params: dict[str, Any], actor: str, intent_id: str
    ) -> views.OperationView:
        with self._lock:
            for operation in self.operations_by_id.values():
                if operation.intent_id == intent_id:
                    if (operation.kind, operation.app, operation.params) != (kind, app, params):
                        raise InvalidRequestError(f"the intent {intent_id} was another one")
                    return operation
                if operation.app == app and not operation.state.is_over:
                    raise ConflictError(f"operation {operation.id} runs on {app}", hint="wait for it")
            begun = views.OperationView(
                id=hashlib.sha256(intent_id.encode()).hexdigest()[:12],
                app=app,
                kind=kind,
                state=OperationState.PLANNED,
                created_at=NOW,
                intent_id=intent_id,
                actor=actor,
                params=params,
                steps=(views.StepView(name="act", state=StepState.PENDING),),
            )
            self._keep(begun)
            self._note(app, f"operation.{kind}", actor)
            return begun

    def settle(self) -> None:
        for operation in list(self.operations_by_id.values()):
            if operation.state in (OperationState.PLANNED, OperationState.RUNNING):
                steps = tuple(step.model_copy(update={"state": StepState.DONE}) for step in operation.steps)
                self._keep(operation.model_copy(update={"state": OperationState.SUCCEEDED, "steps": steps}))
                if operation.kind is OperationKind.SCALE:
                    app = self.apps_by_name[operation.app]
                    slots = operation.params["slots"]
                    self.apps_by_name[app.name] = app.model_copy(update={"slots": slots, "slots_ready": slots})

    def ask(self, operation_id: str) -> None:
        self._keep(self.operations_by_id[operation_id].model_copy(update={"state": OperationState.ASKING}))

    def operation(self, operation_id: str) -> views.OperationView:
        if operation_id not in self.operations_by_id:
            raise NotFoundError(f"there is no operation {operation_id}")
        return self.operations_by_id[operation_id]

    def operations(self, app: str | None, limit: int) -> list[views.OperationRef]:
        return [ref_of(each) for each in self.operations_by_id.values() if app in (None, each.app)][-limit:]

    def cancel(self, operation_id: str, *, actor: str) -> views.OperationView:
        return self._decide(operation_id, OperationState.CANCELLED, actor)

    def approve(self, operation_id: str, *, actor: str) -> views.OperationView:
        return self._decide(operation_id, OperationState.PLANNED, actor)

    def _decide(self, operation_id: str, state: OperationState, actor: str) -> views.OperationView:
        operation = self.operation(operation_id)
        asked = {OperationState.ASKING} | ({OperationState.PLANNED} if state is OperationState.CANCELLED else set())
        if operation.state not in asked:
            raise ConflictError(f"operation {operation_id} is {operation.state}")
        self._keep(operation.model_copy(update={"state": state}))
        self._note(operation.app, f"operation.{state}", actor)
        return self.operation(operation_id)

    def reset_preview(self, app: str) -> views.ResetPreview:
        detail = self.app(app)
        return views.ResetPreview(
            id=f"preview-{detail.slots}",
            app=app,
            offsets={"in": 10},
            topics=("c-changelog",),
            bytes=100,
            stores=("counts",),
            state_directories=2,
            downstream=(),
            lines=(f"forget 10 records of {app}",),
        )

    def decisions(self) -> views.Decisions:
        return self.decided

    # jobs

    def audit_spec(self, app: str) -> views.AuditSpecView:
        return views.AuditSpecView(spec={"app": self.app(app).name})

    def record_audit(self, app: str, report: views.AuditReport, *, actor: str) -> views.AuditRunView:
        self.app(app)
        if report.run_id not in self.reports:
            run = views.AuditRunView(
                id=report.run_id,
                app=app,
                engine=report.engine,
                started_at=report.started_at,
                ended_at=report.ended_at,
                verdict=report.verdict,
                findings=len(report.findings),
                summary=report.summary,
            )
            self.reports[report.run_id] = (run, report.report_html or "")
            self._note(app, "audit.recorded", actor)
        return self.reports[report.run_id][0]

    def audits(self, app: str, limit: int) -> list[views.AuditRunView]:
        self.app(app)
        return [run for run, _ in self.reports.values() if run.app == app][-limit:]

    def audit_html(self, app: str, run_id: str) -> str:
        run, html = self.reports.get(run_id, (None, ""))
        if run is None or run.app != app:
            raise NotFoundError(f"app {app} has no audit {run_id}")
        return html

    def findings(self, app: str | None, state: str | None) -> list[views.FindingView]:
        return []

    def start_bootstrap(
        self, app: str, request: views.BootstrapStart, *, actor: str, intent_id: str
    ) -> views.BootstrapRunView:
        self.app(app)
        old = self.runs.get(f"{app}-{request.name}")
        run = views.BootstrapRunView(
            id=f"{app}-{request.name}",
            app=app,
            name=request.name,
            state="fenced" if old is None else old.state,
            token=1 if old is None else old.token + 1,
            epoch=1,
            spec={"app": app, "name": request.name},
            created_at=NOW,
            updated_at=NOW,
        )
        self.runs[run.id] = run
        self._note(app, "bootstrap.started", actor)
        return run

    def move_bootstrap(self, app: str, run_id: str, move: views.BootstrapMove, *, actor: str) -> views.BootstrapRunView:
        run = self.runs.get(run_id)
        if run is None or run.app != app:
            raise NotFoundError(f"app {app} has no bootstrap {run_id}")
        if move.token != run.token:
            raise ConflictError("another run of the job has taken over")
        # Its operation publishes what was verified, here at once.
        state = "published" if move.state == "verified" else move.state
        self.runs[run_id] = run.model_copy(update={"state": state, "detail": move.detail})
        self._note(app, "bootstrap.moved", actor)
        return self.runs[run_id]

    def bootstraps(self, app: str) -> list[views.BootstrapRunView]:
        self.app(app)
        return [run for run in self.runs.values() if run.app == app]

    # inside

    def _keep(self, operation: views.OperationView) -> None:
        self.operations_by_id[operation.id] = operation
        app = self.apps_by_name[operation.app]
        self.apps_by_name[app.name] = app.model_copy(update={"operation": ref_of(operation)})

    def _note(self, app: str, kind: str, actor: str) -> None:
        with self._lock:
            self.log.append(
                views.EventView(id=len(self.log) + 1, at=NOW, app=app, kind=kind, message=kind, actor=actor)
            )


def ref_of(operation: views.OperationView) -> views.OperationRef:
    return views.OperationRef(**{name: getattr(operation, name) for name in views.OperationRef.model_fields})
