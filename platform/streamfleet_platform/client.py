"""The API from the outside: what the CLI, Dagster and tests use. Answers are views, errors are FleetErrors again.

A call that changes something carries an Idempotency-Key: the caller's intent id, or one made for this call, so that a repeated
request (a lost answer, a sensor's second tick) does nothing twice.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx
from pydantic import TypeAdapter, ValidationError

from streamfleet_platform import views
from streamfleet_platform.errors import (
    ConfirmationError,
    ConflictError,
    FleetError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    SlowDownError,
    StaleError,
    TransientError,
    UnauthorizedError,
)
from streamfleet_platform.model.operation import OperationState

T = TypeVar("T")

_ERRORS: Mapping[int, type[FleetError]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    412: StaleError,
    428: ConfirmationError,
}
DEFAULT_URL = "http://127.0.0.1:8400"
PATIENCE_SECONDS = 30.0
"""For a server that is being restarted while an operation is followed."""


class FleetClient:
    """One server. Close it, or use it as a context manager."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        token: str | None = None,
        timeout: float = 30.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        # trust_env off: a proxy of the environment has no business between us and the server, least of all on loopback
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, transport=transport, trust_env=False)
        self.url = url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # --- looking ----------------------------------------------------------------------------------------------------

    def fleet(self) -> views.FleetView:
        return self._get("/v1/fleet", views.FleetView)

    def apps(self) -> list[views.AppSummary]:
        return self._get("/v1/apps", list[views.AppSummary])

    def app(self, app: str) -> views.AppDetail:
        return self._get(f"/v1/apps/{app}", views.AppDetail)

    def provenance(self, app: str) -> list[tuple[str, str, str]]:
        return self._get(f"/v1/apps/{app}/provenance", list[tuple[str, str, str]])

    def topology_svg(self, app: str) -> str:
        return self._request("GET", f"/v1/apps/{app}/topology.svg").text

    def phases(self, app: str, limit: int = 50) -> list[views.PhaseChange]:
        return self._get(f"/v1/apps/{app}/phases", list[views.PhaseChange], limit=limit)

    def observations(self, app: str, limit: int = 200) -> list[views.ObservationPoint]:
        return self._get(f"/v1/apps/{app}/observations", list[views.ObservationPoint], limit=limit)

    def logs(self, app: str, slot: int, lines: int = 200) -> str:
        return self._request("GET", f"/v1/apps/{app}/workers/{slot}/logs", params={"lines": lines}).text

    def events(self, app: str | None = None, after: int = 0, limit: int = 100) -> list[views.EventView]:
        named = {} if app is None else {"app": app}
        return self._get("/v1/events", list[views.EventView], after=after, limit=limit, **named)

    def decisions(self) -> views.Decisions:
        return self._get("/v1/decisions", views.Decisions)

    def query(self, app: str, store: str, key: str, **options: Any) -> dict[str, Any]:
        """One key, wherever it is. Options as of the worker's /query pages."""
        return self._get(
            f"/v1/apps/{app}/stores/{_segment(store)}/keys/{_segment(key)}",
            dict[str, Any],
            **{k: str(v) for k, v in options.items()},
        )

    # --- changing ---------------------------------------------------------------------------------------------------

    def plan(self, ref: str | None = None) -> views.PlanView:
        return self._post("/v1/plans", views.PlanView, {"ref": ref})

    def apply(
        self,
        ref: str | None = None,
        *,
        apps: tuple[str, ...] = (),
        accept_lost_state: tuple[str, ...] = (),
        intent_id: str | None = None,
    ) -> views.ApplyResult:
        body = {"ref": ref, "apps": list(apps), "accept_lost_state": list(accept_lost_state)}
        return self._post("/v1/apply", views.ApplyResult, body, intent_id)

    def scale(
        self, app: str, slots: int, *, reason: str = "", from_slots: int | None = None, intent_id: str | None = None
    ) -> views.OperationView:
        return self._operate(app, "scale", {"slots": slots, "reason": reason, "from_slots": from_slots}, intent_id)

    def probe(self, app: str, *, intent_id: str | None = None) -> views.OperationView:
        return self._operate(app, "probe", {}, intent_id)

    def reset_preview(self, app: str) -> views.ResetPreview:
        return self._get(f"/v1/apps/{app}/reset-preview", views.ResetPreview)

    def reset(
        self,
        app: str,
        *,
        confirm: str | None,
        preview: str | None = None,
        input_topics: str = "earliest",
        intent_id: str | None = None,
    ) -> views.OperationView:
        body = {"confirm": confirm, "preview": preview, "input_topics": input_topics}
        return self._operate(app, "reset", body, intent_id)

    def upgrade(
        self, app: str, *, ref: str | None = None, accept_lost_state: bool = False, intent_id: str | None = None
    ) -> views.OperationView:
        return self._operate(app, "upgrade", {"ref": ref, "accept_lost_state": accept_lost_state}, intent_id)

    def start(self, app: str, *, intent_id: str | None = None) -> views.OperationView:
        return self._operate(app, "start", {}, intent_id)

    def stop(self, app: str, *, intent_id: str | None = None) -> views.OperationView:
        return self._operate(app, "stop", {}, intent_id)

    def retire(
        self, app: str, *, confirm: str | None, undo_window_seconds: int | None = None, intent_id: str | None = None
    ) -> views.OperationView:
        body = {"confirm": confirm, "undo_window_seconds": undo_window_seconds}
        return self._operate(app, "retire", body, intent_id)

    # --- operations -------------------------------------------------------------------------------------------------

    def operation(self, operation_id: str) -> views.OperationView:
        return self._get(f"/v1/operations/{operation_id}", views.OperationView)

    def operations(self, app: str | None = None, limit: int = 50) -> list[views.OperationRef]:
        named = {} if app is None else {"app": app}
        return self._get("/v1/operations", list[views.OperationRef], limit=limit, **named)

    def cancel(self, operation_id: str) -> views.OperationView:
        return self._post(f"/v1/operations/{operation_id}/cancel", views.OperationView, {})

    def approve(self, operation_id: str) -> views.OperationView:
        return self._post(f"/v1/operations/{operation_id}/approve", views.OperationView, {})

    def follow(
        self, operation_id: str, *, every: float = 0.5, timeout: float | None = None
    ) -> Iterator[views.OperationView]:
        """The operation whenever it has changed, until it is over or asks for a person. TransientError when time is up; a server
        that is away for a moment (a restart) is waited for as long.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        patience = _Patience(PATIENCE_SECONDS)
        last: views.OperationView | None = None
        while True:
            try:
                current = self.operation(operation_id)
            except TransientError as error:
                patience.lost(error)
            else:
                patience.found()
                if current != last:
                    yield current
                    last = current
                if current.state.is_over or current.state is OperationState.ASKING:
                    return
            if deadline is not None and time.monotonic() > deadline:
                raise TransientError(
                    f"operation {operation_id} is not over after {timeout:g} s",
                    hint="it goes on; look again with `status`",
                )
            time.sleep(every)

    def wait(self, operation_id: str, *, timeout: float = 300.0) -> views.OperationView:
        """Until it is over, or asks for a person. TransientError when time is up: the operation itself goes on."""
        *_, last = self.follow(operation_id, timeout=timeout)
        return last

    # --- audits and bootstraps --------------------------------------------------------------------------------------

    def audit_spec(self, app: str) -> dict[str, Any]:
        return self._get(f"/v1/apps/{app}/audit-spec", views.AuditSpecView).spec

    def record_audit(self, app: str, report: Mapping[str, Any]) -> views.AuditRunView:
        return self._post(f"/v1/apps/{app}/audits", views.AuditRunView, dict(report), str(report.get("run_id")))

    def audits(self, app: str, limit: int = 20) -> list[views.AuditRunView]:
        return self._get(f"/v1/apps/{app}/audits", list[views.AuditRunView], limit=limit)

    def audit_html(self, app: str, run_id: str) -> str:
        return self._request("GET", f"/v1/apps/{app}/audits/{run_id}/report").text

    def findings(self, app: str | None = None, state: str | None = "open") -> list[views.FindingView]:
        given = {name: value for name, value in (("app", app), ("state", state)) if value is not None}
        return self._get("/v1/findings", list[views.FindingView], **given)

    def start_bootstrap(
        self,
        app: str,
        name: str,
        *,
        engine: str = "spark-local",
        start: bool = False,
        abort: bool = False,
        intent_id: str | None = None,
    ) -> views.BootstrapRunView:
        """A new run, or a new attempt of the one under way, whose spec is the job's to work on."""
        body = {"name": name, "engine": engine, "start": start, "abort": abort}
        return self._post(f"/v1/apps/{app}/bootstraps", views.BootstrapRunView, body, intent_id)

    def move_bootstrap(
        self, app: str, run_id: str, token: int, state: str, detail: Mapping[str, Any] | None = None
    ) -> views.BootstrapRunView:
        body = {"token": token, "state": state, "detail": dict(detail or {})}
        return self._post(
            f"/v1/apps/{app}/bootstraps/{run_id}", views.BootstrapRunView, body, f"{run_id}:{token}:{state}"
        )

    def bootstraps(self, app: str) -> list[views.BootstrapRunView]:
        return self._get(f"/v1/apps/{app}/bootstraps", list[views.BootstrapRunView])

    # --- plumbing ---------------------------------------------------------------------------------------------------

    def _operate(self, app: str, verb: str, body: Mapping[str, Any], intent_id: str | None) -> views.OperationView:
        return self._post(f"/v1/apps/{app}/{verb}", views.OperationView, body, intent_id)

    def _get(self, path: str, kind: type[T], **params: Any) -> T:
        return _decoded(self._request("GET", path, params=params), kind)

    def _post(self, path: str, kind: type[T], body: Mapping[str, Any], intent_id: str | None = None) -> T:
        key = {"Idempotency-Key": intent_id or uuid.uuid4().hex}
        return _decoded(self._request("POST", path, json=body, headers=key), kind)

    def _request(self, method: str, path: str, **given: Any) -> httpx.Response:
        try:
            response = self._http.request(method, path, **given)
        except httpx.TransportError as error:
            raise TransientError(
                f"the server at {self.url} does not answer: {error}",
                hint="start it with `streamfleet server`, or name another with --server",
            ) from error
        if response.status_code >= 400:
            raise _error_of(response)
        return response


class _Patience:
    """How long a server may be away while something is followed."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: float | None = None

    def lost(self, error: TransientError) -> None:
        now = time.monotonic()
        self._until = self._until or now + self._seconds
        if now > self._until:
            raise error

    def found(self) -> None:
        self._until = None


def _decoded(response: httpx.Response, kind: type[T]) -> T:
    try:
        return TypeAdapter(kind).validate_json(response.content)
    except ValidationError as error:
        raise InvalidRequestError(
            f"what answers at {response.url.netloc.decode()} speaks another API",
            hint="check --server, and that client and server have the same version",
        ) from error


def _error_of(response: httpx.Response) -> FleetError:
    try:
        problem = views.ProblemView.model_validate_json(response.content)
        fact, hint = problem.detail, problem.hint
        fact = "\n".join([fact, *problem.problems])
    except ValueError:
        fact, hint = f"the server answered {response.status_code}", None
    if response.status_code in (429, 502, 503, 504):
        kind = SlowDownError if response.status_code == 429 else TransientError
        return kind(fact, hint=hint, retry_after=_seconds(response.headers.get("Retry-After", "")))
    return _ERRORS.get(response.status_code, InvalidRequestError)(fact, hint=hint)


def _seconds(text: str) -> float:
    """Of Retry-After; its other form, a date, is none of ours."""
    return float(text) if text.isdecimal() else 1.0


def _segment(text: str) -> str:
    """Text as one segment of a path, whatever it has in it."""
    return quote(text, safe="")
