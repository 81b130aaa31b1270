"""Fleet: the FleetService, put together. What the API, and through it everybody else, talks to.

Looking works on every server of a registry; changing only where this server leads, because only there it is carried out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from streamfleet_platform import views
from streamfleet_platform.errors import TransientError
from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.operations.work import World
from streamfleet_platform.reconcile.planner import Planner
from streamfleet_platform.registry import apps, history, journal
from streamfleet_platform.server.auditing import Auditing
from streamfleet_platform.server.bootstrapping import Bootstrapping
from streamfleet_platform.server.changing import Changing
from streamfleet_platform.server.looking import Looking
from streamfleet_platform.server.pruning import Pruning
from streamfleet_platform.server.resetting import Resetting
from streamfleet_platform.service import Door, Limits


class Fleet:
    """`wake` is called when something was asked for."""

    def __init__(
        self,
        world: World,
        planner: Planner,
        *,
        is_leader: Callable[[], bool],
        wake: Callable[[], None],
        runs: Path,
        snapshots: Path,
        links: Mapping[str, str] | None = None,
        stuck: Callable[[], str | None] = lambda: None,
        troubles: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """`stuck`: why nothing is looked after. `troubles`: what else the server itself has."""
        self._world = world
        self._is_leader = is_leader
        self._wake = wake
        self._stuck = stuck
        self._troubles = troubles
        self._links = dict(links or {})
        self._looking = Looking(world.database, world.revisions)
        self._resetting = Resetting(world.database, world.revisions, world.cluster_of, world.clock)
        self._changing = Changing(
            world.database,
            planner,
            world.revisions,
            self._resetting,
            world.clock,
            Pruning(world.database, world.runtime, world.code),
            code=world.code,
        )
        self._auditing = Auditing(world.database, world.revisions, world.clock)
        self._bootstrapping = Bootstrapping(
            world.database,
            world.revisions,
            world.cluster_of,
            world.clock,
            runs=runs,
            snapshots=snapshots,
            code=world.code,
        )

    # looking

    def fleet(self) -> views.FleetView:
        summaries = self._looking.apps()
        with self._world.database.read() as session:
            state = apps.fleet_state(session)
        stuck = self._stuck()
        return views.FleetView(
            name=state.definition.get("metadata", {}).get("name", "fleet"),
            version=version("streamfleet"),
            revision=state.revision,
            is_leader=self._is_leader(),
            apps=len(summaries),
            by_phase=dict(Counter(app.phase.value for app in summaries)),
            workers=sum(app.slots_ready for app in summaries),
            lag_records=sum(app.lag_records or 0 for app in summaries),
            is_well=stuck is None,
            problems=(*([] if stuck is None else [stuck]), *self._troubles(), *state.problems),
            links=self._links,
        )

    def apps(self) -> Sequence[views.AppSummary]:
        return self._looking.apps()

    def app(self, name: str) -> views.AppDetail:
        return self._looking.app(name)

    def owner_of(self, app: str) -> str:
        with self._world.database.read() as session:
            return apps.get_app(session, app).owner

    def provenance(self, app: str) -> Sequence[tuple[str, str, str]]:
        return self._looking.provenance(app)

    def topology_svg(self, app: str) -> str:
        with self._world.database.read() as session:
            row = apps.get_app(session, app)
            return apps.get_revision(session, app, row.revision).picture

    def phases(self, app: str, limit: int) -> Sequence[views.PhaseChange]:
        return self._looking.phases(app, limit)

    def observations(self, app: str, limit: int) -> Sequence[views.ObservationPoint]:
        return self._looking.observations(app, limit)

    def logs(self, app: str, slot: int, lines: int) -> str:
        self.owner_of(app)
        return self._world.runtime.logs(app, slot, lines)

    def doors(self, app: str) -> Sequence[Door]:
        self.owner_of(app)
        return [
            Door(worker.slot, worker.url, worker.token)
            for worker in self._world.runtime.list(app)
            if worker.url is not None and worker.is_alive
        ]

    def events(self, app: str | None, after: int, limit: int) -> Sequence[views.EventView]:
        return self._looking.events(app, after, limit)

    def operation(self, operation_id: str) -> views.OperationView:
        return self._looking.operation(operation_id)

    def operations(self, app: str | None, limit: int) -> Sequence[views.OperationRef]:
        return self._looking.operations(app, limit)

    def reset_preview(self, app: str) -> views.ResetPreview:
        return self._resetting.preview(app)

    def decisions(self) -> views.Decisions:
        with self._world.database.read() as session:
            rows = apps.all_apps(session)
            scaling = history.scaling_records(session)
            busy = {operation.app for operation in journal.busy(session)}
        # what was decided before an operation is decided anew behind it; and it asks for rebalances by itself
        idle = {row.name for row in rows} - busy
        probing = [row.observed["probe"] for row in rows if row.observed.get("probe") and row.name in idle]
        return views.Decisions(
            scaling=tuple(
                views.ScalingDecision.model_validate(record.decision)
                for app, record in sorted(scaling.items())
                if app in idle
            ),
            probing=tuple(views.ProbeDecision.model_validate(probe) for probe in probing),
            resets=tuple(self._resetting.decisions()),
        )

    # changing

    def plan(self, source: views.SourceRequest) -> views.PlanView:
        return self._changing.plan(source.ref)

    def apply(
        self, request: views.ApplyRequest, *, actor: str, intent_id: str, limits: Limits | None = None
    ) -> views.ApplyResult:
        self._check_leads()
        result = self._changing.apply(request, actor=actor, intent_id=intent_id, limits=limits)
        self._wake()
        return result

    def start_operation(
        self, kind: OperationKind, app: str, params: dict[str, object], *, actor: str, intent_id: str
    ) -> views.OperationView:
        self._check_leads()
        begun = self._changing.start_operation(kind, app, params, actor=actor, intent_id=intent_id)
        self._wake()
        return begun

    def cancel(self, operation_id: str, *, actor: str) -> views.OperationView:
        self._check_leads()
        cancelled = self._changing.cancel(operation_id, actor=actor)
        self._wake()
        return cancelled

    def approve(self, operation_id: str, *, actor: str) -> views.OperationView:
        self._check_leads()
        approved = self._changing.approve(operation_id, actor=actor)
        self._wake()
        return approved

    def _check_leads(self) -> None:
        if not self._is_leader():
            raise TransientError(
                f"this server does not lead, {self._world.leases.holder() or 'nobody'} does",
                hint="ask there",
                retry_after=2.0,
            )

    # jobs

    def audit_spec(self, app: str) -> views.AuditSpecView:
        return views.AuditSpecView(spec=self._auditing.audit_spec(app))

    def record_audit(self, app: str, report: views.AuditReport, *, actor: str) -> views.AuditRunView:
        return self._auditing.record_audit(app, report, actor=actor)

    def audits(self, app: str, limit: int) -> Sequence[views.AuditRunView]:
        return self._auditing.audits(app, limit)

    def audit_html(self, app: str, run_id: str) -> str:
        return self._auditing.audit_html(app, run_id)

    def findings(self, app: str | None, state: str | None) -> Sequence[views.FindingView]:
        return self._looking.findings(app, state)

    def start_bootstrap(
        self, app: str, request: views.BootstrapStart, *, actor: str, intent_id: str
    ) -> views.BootstrapRunView:
        self._check_leads()
        begun = self._bootstrapping.start(app, request, actor=actor, intent_id=intent_id)
        self._wake()
        return begun

    def move_bootstrap(self, app: str, run_id: str, move: views.BootstrapMove, *, actor: str) -> views.BootstrapRunView:
        moved = self._bootstrapping.move(app, run_id, move, actor=actor)
        self._wake()
        return moved

    def bootstraps(self, app: str) -> Sequence[views.BootstrapRunView]:
        return self._bootstrapping.bootstraps(app)
