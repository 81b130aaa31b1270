"""The routes that change something: plans and applying, the verbs of an app, and a person's word about an operation."""

# no `from __future__ import annotations`: FastAPI reads the annotations of the functions made here

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header

from streamfleet_platform import views
from streamfleet_platform.api.access import Action, Principal
from streamfleet_platform.api.commands import Command, Fleet, body_schema, command
from streamfleet_platform.api.looking import AppName, RunId
from streamfleet_platform.api.versions import check_match
from streamfleet_platform.errors import ConfirmationError, ForbiddenError, InvalidRequestError
from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.service import FleetService

routes = APIRouter(prefix="/v1")

VERBS: Mapping[OperationKind, type[views.Request]] = {
    OperationKind.SCALE: views.ScaleRequest,
    OperationKind.PROBE: views.Request,
    OperationKind.RESET: views.ResetRequest,
    OperationKind.UPGRADE: views.UpgradeRequest,
    OperationKind.START: views.Request,
    OperationKind.STOP: views.Request,
    OperationKind.RETIRE: views.RetireRequest,
}
"""The verbs of an app, and what each is told. Deploying is applying, a bootstrap has routes of its own (jobs.py)."""

IfMatch = Annotated[str | None, Header(max_length=1000)]


@routes.post("/plans", openapi_extra=body_schema(views.SourceRequest))
def plan(
    call: Annotated[Command[views.SourceRequest], Depends(command(views.SourceRequest, Action.PLAN))], service: Fleet
) -> views.PlanView:
    return service.plan(call.body)


@routes.post("/apply", status_code=202, openapi_extra=body_schema(views.ApplyRequest))
def apply(
    call: Annotated[Command[views.ApplyRequest], Depends(command(views.ApplyRequest, Action.APPLY))], service: Fleet
) -> views.ApplyResult:
    limits = None if call.principal.reaches_all else OwnApps(call.principal)
    return call.once(lambda: service.apply(call.body, actor=call.actor, intent_id=call.intent_id, limits=limits))


@dataclass(frozen=True)
class OwnApps:
    """Everything that would change is the caller's, before and after: an app cannot be taken over by declaring another owner."""

    principal: Principal

    def check(self, change: views.AppChange, owner: str | None) -> None:
        if change.owner is None:
            raise ForbiddenError(f"nobody is said to own {change.app}", hint="ask an admin of the fleet to apply it")
        for team in (change.owner, owner):
            if team is not None:
                self.principal.check(Action.APPLY, team)


def _verb(kind: OperationKind, body: type[views.Request]) -> Callable[..., views.OperationView]:
    def begin(
        app: AppName,
        call: Annotated[Command[Any], Depends(command(body, Action(kind.value)))],
        service: Fleet,
        if_match: IfMatch = None,
    ) -> views.OperationView:
        _check_confirmed(call.body, app)

        def act() -> views.OperationView:
            if if_match is not None:
                check_match(if_match, service.app(app))
            params = call.body.model_dump(mode="json")
            return service.start_operation(kind, app, params, actor=call.actor, intent_id=call.intent_id)

        begun = call.once(act)
        if (begun.app, begun.kind) != (app, kind):
            raise InvalidRequestError(
                "this Idempotency-Key belongs to another operation", hint="use a key of its own for each intent"
            )
        return begun

    begin.__name__ = kind.value
    return begin


for _kind, _body in VERBS.items():
    routes.add_api_route(
        f"/apps/{{app}}/{_kind.value}",
        _verb(_kind, _body),
        methods=["POST"],
        status_code=202,
        openapi_extra=body_schema(_body),
    )


def _check_confirmed(body: views.Request, app: str) -> None:
    """What cannot be undone wants the app's name: nobody types that by mistake."""
    if isinstance(body, views.ResetRequest | views.RetireRequest) and body.confirm != app:
        raise ConfirmationError(
            f"this cannot be undone, and {app} was not confirmed", hint="say its name in `confirm`, or by --confirm"
        )


NoDetails = Annotated[Command[views.Request], Depends(command(views.Request, Action.DECIDE))]
"""Who may is known when the operation is, see `_check_may_decide`."""


@routes.post("/operations/{operation_id}/cancel", openapi_extra=body_schema(views.Request))
def cancel(operation_id: RunId, call: NoDetails, service: Fleet) -> views.OperationView:
    _check_may_decide(call.principal, service, operation_id)
    return call.once(lambda: service.cancel(operation_id, actor=call.actor))


@routes.post("/operations/{operation_id}/approve", openapi_extra=body_schema(views.Request))
def approve(operation_id: RunId, call: NoDetails, service: Fleet) -> views.OperationView:
    _check_may_decide(call.principal, service, operation_id)
    return call.once(lambda: service.approve(operation_id, actor=call.actor))


def _check_may_decide(principal: Principal, service: FleetService, operation_id: str) -> None:
    """Who may begin such an operation on this app may also stop or approve it."""
    operation = service.operation(operation_id)
    principal.check(Action(operation.kind.value), service.owner_of(operation.app))
