"""What the fleet can be asked and told: the seam between the edges (api/) and what acts (server/).

The API turns HTTP into these calls and FleetErrors into statuses; it decides who may call, not what happens. Every method that
changes something takes who asked for it (`actor`) and an intent id: the same intent again gives the first result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from streamfleet_platform import views
from streamfleet_platform.model.operation import OperationKind


@dataclass(frozen=True)
class Door:
    """Where a worker answers, from the registry: never from a caller."""

    slot: int
    url: str
    token: str | None


class Limits(Protocol):
    """What a caller may change who does not act for the whole fleet. Asked about the very plan that is applied."""

    def check(self, change: views.AppChange, owner: str | None) -> None:
        """ForbiddenError, unless the caller may. `owner` is whose the app is now; None: there is none yet."""
        ...


class FleetService(Protocol):
    """One fleet. Whatever is refused comes as a FleetError."""

    def fleet(self) -> views.FleetView: ...

    def apps(self) -> Sequence[views.AppSummary]: ...

    def app(self, name: str) -> views.AppDetail: ...

    def owner_of(self, app: str) -> str: ...

    def provenance(self, app: str) -> Sequence[tuple[str, str, str]]:
        """Every effective value: its path, the value as text, and file:line or the layer that gave it."""
        ...

    def topology_svg(self, app: str) -> str: ...

    def phases(self, app: str, limit: int) -> Sequence[views.PhaseChange]: ...

    def observations(self, app: str, limit: int) -> Sequence[views.ObservationPoint]: ...

    def logs(self, app: str, slot: int, lines: int) -> str: ...

    def doors(self, app: str) -> Sequence[Door]: ...

    def events(self, app: str | None, after: int, limit: int) -> Sequence[views.EventView]:
        """In order of their ids: the first `limit` after an id, or, after 0, the newest ones."""
        ...

    def plan(self, source: views.SourceRequest) -> views.PlanView: ...

    def apply(
        self, request: views.ApplyRequest, *, actor: str, intent_id: str, limits: Limits | None = None
    ) -> views.ApplyResult:
        """With limits the fleet's own settings stay as they are. ForbiddenError: nothing was changed."""
        ...

    def start_operation(
        self, kind: OperationKind, app: str, params: dict[str, object], *, actor: str, intent_id: str
    ) -> views.OperationView:
        """Write it down; the reconciler carries it out."""
        ...

    def operation(self, operation_id: str) -> views.OperationView: ...

    def operations(self, app: str | None, limit: int) -> Sequence[views.OperationRef]: ...

    def cancel(self, operation_id: str, *, actor: str) -> views.OperationView: ...

    def approve(self, operation_id: str, *, actor: str) -> views.OperationView:
        """A person's word for an operation that is ASKING."""
        ...

    def reset_preview(self, app: str) -> views.ResetPreview: ...

    def decisions(self) -> views.Decisions: ...

    def audit_spec(self, app: str) -> views.AuditSpecView: ...

    def record_audit(self, app: str, report: views.AuditReport, *, actor: str) -> views.AuditRunView: ...

    def audits(self, app: str, limit: int) -> Sequence[views.AuditRunView]: ...

    def audit_html(self, app: str, run_id: str) -> str: ...

    def findings(self, app: str | None, state: str | None) -> Sequence[views.FindingView]: ...

    def start_bootstrap(
        self, app: str, request: views.BootstrapStart, *, actor: str, intent_id: str
    ) -> views.BootstrapRunView: ...

    def move_bootstrap(
        self, app: str, run_id: str, move: views.BootstrapMove, *, actor: str
    ) -> views.BootstrapRunView: ...

    def bootstraps(self, app: str) -> Sequence[views.BootstrapRunView]: ...
