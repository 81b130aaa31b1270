"""create_app: the service behind routes, the gatekeeper in front of them. Called by server/ and by tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import RouteContext, iter_route_contexts
from starlette.responses import JSONResponse

from streamfleet_platform import views
from streamfleet_platform.api import change_feed, console_files, gateway, jobs, looking, operating, problems
from streamfleet_platform.api.access import Action
from streamfleet_platform.api.commands import Allowed, Looking, RememberedAnswers
from streamfleet_platform.api.gatekeeper import Gatekeeper
from streamfleet_platform.api.token_file import Authenticator
from streamfleet_platform.errors import FleetError
from streamfleet_platform.service import FleetService

OPENAPI_PATH = "/v1/openapi.json"


def create_app(
    service: FleetService,
    auth: Authenticator,
    *,
    hosts: Collection[str] = (),
    console: Path | None = None,
    query_gateway: gateway.QueryGateway | None = None,
) -> FastAPI:
    """`hosts`: names the server goes by, beside those of loopback. `console`: where its files are, if not where they belong."""
    app = FastAPI(
        title="Streamfleet",
        summary="A fleet of stream-processing apps: look, plan, operate, query.",
        openapi_url=None,
        docs_url=None,  # those pages load their code from elsewhere
        redoc_url=None,
        lifespan=_lifespan,
        responses={"default": {"model": views.ProblemView, "description": "application/problem+json"}},
    )
    app.state.service = service
    app.state.remembered = RememberedAnswers()
    app.state.feed = change_feed.ChangeFeed(service)
    app.state.gateway = query_gateway or gateway.QueryGateway(service)
    problems.install(app)
    # the stream before /events/..., the query's greedy path last
    for part in (change_feed, looking, operating, jobs, gateway):
        app.include_router(part.routes)
    _add_openapi(app)
    _add_health(app)
    files = console or console_files.console_directory()
    if files is not None:
        console_files.mount(app, files)
    _check_all_ask_who(app)
    app.add_middleware(Gatekeeper, auth=auth, hosts=hosts)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    app.state.feed.close()
    app.state.gateway.close()


def _add_openapi(app: FastAPI) -> None:
    def description(_: Looking) -> JSONResponse:
        return JSONResponse(app.openapi())

    app.add_api_route(OPENAPI_PATH, description, methods=["GET"], include_in_schema=False)


def _add_health(app: FastAPI) -> None:
    def alive() -> dict[str, str]:
        return {"status": "alive"}

    def ready(request: Request) -> JSONResponse:
        """Whether the registry answers, and the fleet is looked after. Says nothing else: everybody may ask."""
        try:
            fleet: views.FleetView = request.app.state.service.fleet()
        except FleetError:
            return JSONResponse({"status": "not ready"}, 503)
        if not fleet.is_well:
            return JSONResponse({"status": "not ready"}, 503)
        return JSONResponse({"status": "ready"})

    app.add_api_route("/healthz", alive, methods=["GET"], include_in_schema=False)
    app.add_api_route("/readyz", ready, methods=["GET"], include_in_schema=False)


def _check_all_ask_who(app: FastAPI) -> None:
    """A route of the API that names no action is a defect that must not be served."""
    for route in iter_route_contexts(app.routes):
        if (route.path or "").startswith("/v1/") and not list(actions_of(route)):
            raise AssertionError(f"{route.path} does not say who may call it")


def actions_of(route: RouteContext) -> Iterator[Action]:
    """What a route asks of its caller, as its dependencies say."""

    def within(dependant: Dependant) -> Iterator[Action]:
        if isinstance(dependant.call, Allowed):
            yield dependant.call.action
        for inner in dependant.dependencies:
            yield from within(inner)

    return within(route.dependant)
