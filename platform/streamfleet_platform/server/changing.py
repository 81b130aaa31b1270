"""What callers ask for becomes rows, once per intent. Called by fleet.py; the loop carries it out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy.orm import Session

from streamfleet_platform import views
from streamfleet_platform.errors import (
    ConfirmationError,
    ConflictError,
    InvalidDefinitionError,
    InvalidRequestError,
    Place,
    Problem,
    StaleError,
)
from streamfleet_platform.model.operation import OperationKind, OperationState
from streamfleet_platform.operations.code_directories import being_recorded
from streamfleet_platform.operations.work import Revisions
from streamfleet_platform.reconcile.applying import Applying, new_operation, refuse_held
from streamfleet_platform.reconcile.planner import Planned, Planner
from streamfleet_platform.registry import apps, history, journal
from streamfleet_platform.registry.database import Database
from streamfleet_platform.registry.tables import App, Operation
from streamfleet_platform.server.looking import operation_view
from streamfleet_platform.server.pruning import Pruning
from streamfleet_platform.server.resetting import Resetting
from streamfleet_platform.service import Limits

log = structlog.get_logger(__name__)

UNDOABLE = frozenset(
    {OperationKind.DEPLOY, OperationKind.SCALE, OperationKind.UPGRADE, OperationKind.START, OperationKind.RETIRE}
)
"""Operations that can be called off while they run."""


class Changing:
    def __init__(
        self,
        database: Database,
        planner: Planner,
        revisions: Revisions,
        resetting: Resetting,
        clock: Callable[[], datetime],
        pruning: Pruning,
        *,
        code: Path,
    ) -> None:
        """`code` is where revisions' code is exported to; `pruning` keeps it small."""
        self._database = database
        self._code = code
        self._planner = planner
        self._revisions = revisions
        self._resetting = resetting
        self._clock = clock
        self._pruning = pruning

    def plan(self, ref: str | None) -> views.PlanView:
        with being_recorded(self._code):
            planned = self._planner.plan(ref)
        self._pruning.after_plan()
        return planned.view

    def apply(
        self, request: views.ApplyRequest, *, actor: str, intent_id: str, limits: Limits | None = None
    ) -> views.ApplyResult:
        return self._apply(request, actor=actor, intent_id=intent_id, limits=limits, takes_fleet=limits is None)

    def _apply(
        self,
        request: views.ApplyRequest,
        *,
        actor: str,
        intent_id: str,
        limits: Limits | None,
        takes_fleet: bool,
        check: Callable[[Session, views.ApplyResult], None] = lambda _session, _result: None,
    ) -> views.ApplyResult:
        """`check` is given what was written, in its transaction: where it raises, nothing was, and the intent is still free."""
        asked = "apply " + request.model_dump_json()
        with self._database.read() as session:
            first = history.answer_of(session, intent_id, asked)
        if first is not None:
            return views.ApplyResult.model_validate_json(first)
        with being_recorded(self._code):
            planned = self._planner.plan(request.ref, only=frozenset(request.apps) or None)
            self._refuse_problems(planned, tells_fleet=takes_fleet)
            self._refuse_unknown(planned, request)
            applying = Applying(
                planned,
                actor=actor,
                intent_id=intent_id,
                clock=self._clock,
                accept_lost_state=request.accept_lost_state,
                limits=limits,
                takes_fleet=takes_fleet,
            )
            result = self._recorded(applying, planned, asked, check, actor=actor, intent_id=intent_id)
        self._pruning.after_apply()
        return result

    def _recorded(
        self,
        applying: Applying,
        planned: Planned,
        asked: str,
        check: Callable[[Session, views.ApplyResult], None],
        *,
        actor: str,
        intent_id: str,
    ) -> views.ApplyResult:
        def change(session: Session) -> views.ApplyResult:
            again = history.answer_of(session, intent_id, asked)
            if again is not None:
                return views.ApplyResult.model_validate_json(again)
            changes, begun = applying.write(session)
            plan = planned.view.model_copy(update={"changes": tuple(changes)})
            result = views.ApplyResult(plan=plan, operations=tuple(_as_ref(row) for row in begun))
            check(session, result)
            told = f"applied {planned.view.revision[:20]}: {len(begun)} operations"
            history.add_event(session, self._clock(), "apply", told, actor=actor, revision=planned.view.revision)
            history.remember_answer(session, intent_id, asked, result.model_dump_json(), self._clock())
            return result

        return self._database.write(change)

    def _refuse_problems(self, planned: Planned, *, tells_fleet: bool) -> None:
        """Invalid definitions change nothing; they are told wherever the fleet is looked at."""
        if not planned.view.problems:
            return
        problems = list(planned.view.problems)

        def change(session: Session) -> None:
            row = apps.fleet_state(session)
            row.problems = problems
            session.add(row)

        if tells_fleet:
            self._database.write(change)
        raise InvalidDefinitionError([Problem(Place(*_place(text)), _fact(text)) for text in problems])

    def _refuse_unknown(self, planned: Planned, request: views.ApplyRequest) -> None:
        named = {change.app for change in planned.view.changes}
        unknown = sorted((set(request.apps) | set(request.accept_lost_state)) - named) if request.apps else []
        if unknown:
            raise InvalidRequestError(f"there is no app {', '.join(unknown)} in the definitions")

    # single operations

    def start_operation(
        self, kind: OperationKind, app: str, params: dict[str, Any], *, actor: str, intent_id: str
    ) -> views.OperationView:
        with self._database.read() as session:
            first = journal.by_intent(session, intent_id)
            if first is not None:
                return operation_view(session, first)
        if kind is OperationKind.UPGRADE:
            return self._upgrade(app, params, actor=actor, intent_id=intent_id)
        if kind in (OperationKind.DEPLOY, OperationKind.BOOTSTRAP):
            raise InvalidRequestError(f"{kind.value} is not started by itself", hint="apply definitions")

        def change(session: Session) -> views.OperationView:
            again = journal.by_intent(session, intent_id)
            if again is not None:
                return operation_view(session, again)
            row = apps.get_app(session, app)
            state, full = self._checked(session, kind, row, params, intent_id)
            if kind in (OperationKind.START, OperationKind.RESET):
                row.quarantine = None  # a person's word: it may try again
            operation = new_operation(kind, app, full, actor, intent_id, self._clock(), str(params.get("reason") or ""))
            journal.begin(session, operation)
            if state is OperationState.ASKING:
                operation = journal.move(session, operation, state, self._clock())
            told = f"{kind.value} was asked for"
            history.add_event(session, self._clock(), "operation", told, actor=actor, app=app, operation=operation.id)
            session.flush()
            return operation_view(session, operation)

        return self._database.write(change)

    def _checked(
        self, session: Session, kind: OperationKind, app: App, params: dict[str, Any], intent_id: str
    ) -> tuple[OperationState, dict[str, Any]]:
        """Whether it may be asked for now, and everything it has to know."""
        if app.desired == "retired" and kind is not OperationKind.RETIRE:
            raise ConflictError(f"app {app.name} is being retired", hint="cancel that first")
        if kind in (OperationKind.START, OperationKind.SCALE, OperationKind.PROBE):
            refuse_held(app)
        if kind is OperationKind.SCALE:
            self._check_scale(app, params)
            return OperationState.PLANNED, {**params, "before": app.slots}
        if kind in (OperationKind.RESET, OperationKind.RETIRE) and params.get("confirm") != app.name:
            raise ConfirmationError(f"{kind.value} of {app.name} was not confirmed", hint="say the app's name")
        if kind is OperationKind.RESET:
            return self._resetting.checked(session, app, params, intent_id)
        return OperationState.PLANNED, dict(params)

    def _check_scale(self, app: App, params: dict[str, Any]) -> None:
        scale = self._revisions.get(app.name, app.revision).spec.scale
        if not scale.min <= int(params["slots"]) <= scale.max:
            raise InvalidRequestError(
                f"app {app.name} may have {scale.min} to {scale.max} slots, not {params['slots']}",
                hint="change scale in its definition",
            )
        decided_at = params.get("from_slots")
        if decided_at is not None and int(decided_at) != app.slots:
            raise StaleError(
                f"app {app.name} has {app.slots} slots by now, and had {decided_at} when this was decided",
                hint="wait for the next decision",
            )

    def _upgrade(self, app: str, params: dict[str, Any], *, actor: str, intent_id: str) -> views.OperationView:
        accepted = (app,) if params.get("accept_lost_state") else ()
        with self._database.read() as session:
            apps.get_app(session, app)
        request = views.ApplyRequest(ref=params.get("ref"), apps=(app,), accept_lost_state=accepted)
        intent = f"{intent_id}:upgrade"

        def adopt(session: Session, result: views.ApplyResult) -> None:
            change = result.plan.changes[0]
            if change.blocked is not None:
                raise ConflictError(f"app {app}: {change.blocked}")
            if not result.operations:
                raise ConflictError(
                    f"nothing is to be upgraded: the plan says {change.action}", hint="look at the plan"
                )
            journal.get(session, result.operations[0].id).intent_id = intent_id

        result = self._apply(  # of one app
            request, actor=actor, intent_id=intent, limits=None, takes_fleet=False, check=adopt
        )
        with self._database.read() as session:
            return operation_view(session, journal.get(session, result.operations[0].id))

    def approve(self, operation_id: str, *, actor: str) -> views.OperationView:
        def change(session: Session) -> views.OperationView:
            row = journal.get(session, operation_id)
            if row.state != OperationState.ASKING:
                raise ConflictError(f"operation {operation_id} is {row.state} and asks for nothing")
            if actor == row.actor:  # however few approvals it needs: each is another person's
                raise ConflictError("who asked for it cannot approve it too", hint="ask somebody else")
            given = sorted({*row.params.get("approved_by", ()), actor})
            row.params = {**row.params, "approved_by": given}
            session.flush()
            history.add_event(session, self._clock(), "approval", f"{row.kind} approved", actor=actor, app=row.app)
            if len(given) >= int(row.params.get("approvals", 1)):
                row = journal.move(session, row, OperationState.PLANNED, self._clock(), params=row.params)
            return operation_view(session, row)

        return self._database.write(change)

    def cancel(self, operation_id: str, *, actor: str) -> views.OperationView:
        """One that has not begun; or one under way, where its kind can be undone: the loop takes it back, or it is too late."""

        def change(session: Session) -> views.OperationView:
            row = journal.get(session, operation_id)
            told = f"{row.kind} cancelled"
            if row.state == OperationState.RUNNING and row.kind in UNDOABLE and not row.is_rolling_back:
                row.params = {**row.params, "cancelled_by": actor}
                told = f"{row.kind} is to be undone"
            elif row.state in (OperationState.PLANNED, OperationState.ASKING):
                row = journal.move(session, row, OperationState.CANCELLED, self._clock())
            else:
                raise ConflictError(f"operation {operation_id} is {row.state}", hint="it cannot be cancelled any more")
            history.add_event(session, self._clock(), "operation", told, actor=actor, app=row.app)
            session.flush()
            return operation_view(session, row)

        return self._database.write(change)


def _as_ref(row: Operation) -> views.OperationRef:
    return views.OperationRef(
        id=row.id,
        app=row.app,
        kind=OperationKind(row.kind),
        state=OperationState(row.state),
        reason=row.reason,
        created_at=row.created_at,
    )


def _place(text: str) -> tuple[str, int, int]:
    parts = text.split(": ", 1)[0].split(":")
    if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit():
        return parts[0], int(parts[1]), int(parts[2])
    return parts[0], 0, 0


def _fact(text: str) -> str:
    return text.split(": ", 1)[-1]
