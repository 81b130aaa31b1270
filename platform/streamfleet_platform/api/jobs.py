"""The routes of audits and bootstraps: what a job has to look at, and what it reports."""

# no `from __future__ import annotations`: FastAPI reads the annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends
from starlette.responses import HTMLResponse

from streamfleet_platform import views
from streamfleet_platform.api.access import Action, Principal
from streamfleet_platform.api.commands import MAX_REPORT_BYTES, Allowed, Command, Fleet, Looking, body_schema, command
from streamfleet_platform.api.looking import AppName, Limit, OptionalApp, RunId

routes = APIRouter(prefix="/v1")

REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox"
"""A report is written from records of an app: it is shown, and runs nothing."""


@routes.get("/apps/{app}/audit-spec")
def audit_spec(
    app: AppName, _: Annotated[Principal, Depends(Allowed(Action.AUDIT))], service: Fleet
) -> views.AuditSpecView:
    return service.audit_spec(app)


@routes.post("/apps/{app}/audits", status_code=201, openapi_extra=body_schema(views.AuditReport))
def record_audit(
    app: AppName,
    call: Annotated[
        Command[views.AuditReport], Depends(command(views.AuditReport, Action.AUDIT, max_bytes=MAX_REPORT_BYTES))
    ],
    service: Fleet,
) -> views.AuditRunView:
    return call.once(lambda: service.record_audit(app, call.body, actor=call.actor))


@routes.get("/apps/{app}/audits")
def audits(app: AppName, _: Looking, service: Fleet, limit: Limit = 20) -> list[views.AuditRunView]:
    return list(service.audits(app, limit))


@routes.get("/apps/{app}/audits/{run_id}/report", response_class=HTMLResponse)
def audit_report(app: AppName, run_id: RunId, _: Looking, service: Fleet) -> HTMLResponse:
    return HTMLResponse(service.audit_html(app, run_id), headers={"Content-Security-Policy": REPORT_POLICY})


@routes.get("/findings")
def findings(
    _: Looking,
    service: Fleet,
    app: OptionalApp = None,
    state: Literal["open", "acknowledged", "gone"] | None = None,
) -> list[views.FindingView]:
    return list(service.findings(app, state))


@routes.post("/apps/{app}/bootstraps", status_code=202, openapi_extra=body_schema(views.BootstrapStart))
def start_bootstrap(
    app: AppName,
    call: Annotated[Command[views.BootstrapStart], Depends(command(views.BootstrapStart, Action.BOOTSTRAP))],
    service: Fleet,
) -> views.BootstrapRunView:
    return call.once(lambda: service.start_bootstrap(app, call.body, actor=call.actor, intent_id=call.intent_id))


@routes.post("/apps/{app}/bootstraps/{run_id}", openapi_extra=body_schema(views.BootstrapMove))
def move_bootstrap(
    app: AppName,
    run_id: RunId,
    call: Annotated[Command[views.BootstrapMove], Depends(command(views.BootstrapMove, Action.BOOTSTRAP))],
    service: Fleet,
) -> views.BootstrapRunView:
    return call.once(lambda: service.move_bootstrap(app, run_id, call.body, actor=call.actor))


@routes.get("/apps/{app}/bootstraps")
def bootstraps(app: AppName, _: Looking, service: Fleet) -> list[views.BootstrapRunView]:
    return list(service.bootstraps(app))
