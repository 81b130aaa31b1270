"""Every error of the API, in one place: FleetErrors and what the framework raises become application/problem+json (RFC 9457).

An answer never repeats what a caller sent: it could be a secret, and the text could be read by somebody else.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from streamfleet_platform import views
from streamfleet_platform.errors import (
    CompileError,
    ConfirmationError,
    ConflictError,
    FleetError,
    ForbiddenError,
    InvalidDefinitionError,
    InvalidLockError,
    InvalidRequestError,
    NotFoundError,
    PermanentError,
    SlowDownError,
    StaleError,
    TransientError,
    UnauthorizedError,
)

log = structlog.get_logger(__name__)

PROBLEM_JSON = "application/problem+json"

STATUSES: Mapping[type[FleetError], HTTPStatus] = {
    InvalidDefinitionError: HTTPStatus.UNPROCESSABLE_ENTITY,
    InvalidLockError: HTTPStatus.UNPROCESSABLE_ENTITY,
    CompileError: HTTPStatus.UNPROCESSABLE_ENTITY,
    InvalidRequestError: HTTPStatus.UNPROCESSABLE_ENTITY,
    NotFoundError: HTTPStatus.NOT_FOUND,
    ConflictError: HTTPStatus.CONFLICT,
    StaleError: HTTPStatus.PRECONDITION_FAILED,
    ConfirmationError: HTTPStatus.PRECONDITION_REQUIRED,
    UnauthorizedError: HTTPStatus.UNAUTHORIZED,
    ForbiddenError: HTTPStatus.FORBIDDEN,
    SlowDownError: HTTPStatus.TOO_MANY_REQUESTS,
    TransientError: HTTPStatus.SERVICE_UNAVAILABLE,
    PermanentError: HTTPStatus.CONFLICT,
    FleetError: HTTPStatus.INTERNAL_SERVER_ERROR,
}
"""By class; a class that is not here has its nearest parent's."""


class RefusedRequestError(InvalidRequestError):
    """Wrong as HTTP, before anybody looks at what it asks for."""

    def __init__(self, status: HTTPStatus, fact: str, *, hint: str | None = None) -> None:
        super().__init__(fact, hint=hint)
        self.status = status


def problem_response(error: FleetError) -> Response:
    status = _status_of(error)
    headers: dict[str, str] = {}
    if isinstance(error, TransientError):
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    if status is HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'Bearer realm="streamfleet"'
    fact = "the definitions are not right" if isinstance(error, InvalidDefinitionError) else error.fact
    return _response(status, fact, hint=error.hint, problems=_details_of(error), headers=headers)


def body_problem(error: ValidationError) -> InvalidRequestError:
    """What pydantic says of a body, without the values."""
    return InvalidRequestError("; ".join(["the body is not right", *_places(error.errors(include_input=False))]))


def install(app: FastAPI) -> None:
    app.add_exception_handler(FleetError, _on_fleet_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(Exception, _on_defect)


def _on_fleet_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, FleetError)
    return problem_response(error)


def _on_validation_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return _response(
        HTTPStatus.UNPROCESSABLE_ENTITY, "path or parameters are not right", problems=_places(error.errors())
    )


def _on_http_exception(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    facts = {
        HTTPStatus.NOT_FOUND: "there is nothing at this address",
        HTTPStatus.METHOD_NOT_ALLOWED: "this address knows other methods",
    }
    return _response(status, facts.get(status, status.phrase.lower()), headers=error.headers or {})


def _on_defect(request: Request, error: Exception) -> Response:
    # as text: a renderer that is handed the exception may show local variables, and with them tokens
    trace = "".join(traceback.format_exception(error))
    log.error("a request met a defect", path=request.url.path, method=request.method, trace=trace)
    return _response(HTTPStatus.INTERNAL_SERVER_ERROR, "the server has a defect", hint="its log says more")


def _status_of(error: FleetError) -> HTTPStatus:
    if isinstance(error, RefusedRequestError):
        return error.status
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def _details_of(error: FleetError) -> tuple[str, ...]:
    if isinstance(error, InvalidDefinitionError):
        return tuple(map(str, error.problems))
    return tuple(error.traceback_tail.splitlines()) if isinstance(error, CompileError) else ()


def _places(errors: Iterable[Any]) -> tuple[str, ...]:
    return tuple(f"{'.'.join(map(str, found['loc'])) or 'body'}: {found['msg'].lower()}" for found in errors)


def _response(
    status: HTTPStatus,
    detail: str,
    *,
    hint: str | None = None,
    problems: tuple[str, ...] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    view = views.ProblemView(title=status.phrase, status=status, detail=detail, hint=hint, problems=problems)
    return Response(view.model_dump_json(), status, headers, media_type=PROBLEM_JSON)
