"""The routes that only look: fleet, apps, operations, events, decisions, and how far things are."""

# no `from __future__ import annotations`: FastAPI reads the annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from starlette.responses import PlainTextResponse

from streamfleet_platform import views
from streamfleet_platform.api.commands import Fleet, Looking
from streamfleet_platform.api.versions import app_version
from streamfleet_platform.model.names import NAME_PATTERN

routes = APIRouter(prefix="/v1")

AppName = Annotated[str, Path(pattern=NAME_PATTERN)]
RunId = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$")]
OptionalApp = Annotated[str | None, Query(pattern=NAME_PATTERN)]
Limit = Annotated[int, Query(ge=1, le=1000)]


@routes.get("/fleet")
def fleet(_: Looking, service: Fleet) -> views.FleetView:
    return service.fleet()


@routes.get("/apps")
def apps(_: Looking, service: Fleet) -> list[views.AppSummary]:
    return list(service.apps())


@routes.get("/apps/{app}")
def app_detail(app: AppName, _: Looking, service: Fleet, response: Response) -> views.AppDetail:
    """All about an app. Its ETag is the version of what is wanted of it, for If-Match."""
    detail = service.app(app)
    response.headers["ETag"] = app_version(detail)
    return detail


@routes.get("/apps/{app}/provenance")
def provenance(app: AppName, _: Looking, service: Fleet) -> list[tuple[str, str, str]]:
    return list(service.provenance(app))


@routes.get("/apps/{app}/topology.svg", response_class=Response, responses={200: {"content": {"image/svg+xml": {}}}})
def topology_svg(app: AppName, _: Looking, service: Fleet) -> Response:
    # the picture has its own style sheet; whatever else an app's names might smuggle in stays inert
    policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
    return Response(service.topology_svg(app), media_type="image/svg+xml", headers={"Content-Security-Policy": policy})


@routes.get("/apps/{app}/phases")
def phases(app: AppName, _: Looking, service: Fleet, limit: Limit = 50) -> list[views.PhaseChange]:
    return list(service.phases(app, limit))


@routes.get("/apps/{app}/observations")
def observations(app: AppName, _: Looking, service: Fleet, limit: Limit = 200) -> list[views.ObservationPoint]:
    return list(service.observations(app, limit))


@routes.get("/apps/{app}/workers/{slot}/logs", response_class=PlainTextResponse)
def logs(
    app: AppName,
    slot: Annotated[int, Path(ge=0, le=100_000)],
    _: Looking,
    service: Fleet,
    lines: Annotated[int, Query(ge=1, le=5000)] = 200,
) -> PlainTextResponse:
    return PlainTextResponse(service.logs(app, slot, lines))


@routes.get("/apps/{app}/reset-preview")
def reset_preview(app: AppName, _: Looking, service: Fleet) -> views.ResetPreview:
    return service.reset_preview(app)


@routes.get("/events")
def events(
    _: Looking,
    service: Fleet,
    app: OptionalApp = None,
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Limit = 100,
) -> list[views.EventView]:
    return list(service.events(app, after, limit))


@routes.get("/decisions")
def decisions(_: Looking, service: Fleet) -> views.Decisions:
    return service.decisions()


@routes.get("/operations")
def operations(_: Looking, service: Fleet, app: OptionalApp = None, limit: Limit = 50) -> list[views.OperationRef]:
    return list(service.operations(app, limit))


@routes.get("/operations/{operation_id}")
def operation(operation_id: RunId, _: Looking, service: Fleet) -> views.OperationView:
    return service.operation(operation_id)
