"""Operations and their steps as rows: begun, moved on, ended. operations/journal.py decides; here is only what is written.

One operation per app at a time is held by the table itself (`busy_app` is unique), and so is one per intent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session
from sqlalchemy.orm.exc import StaleDataError
from sqlmodel import col

from streamfleet_platform.errors import ConflictError, NotFoundError
from streamfleet_platform.model.operation import MOVES, OperationState, StepState
from streamfleet_platform.registry.database import touch
from streamfleet_platform.registry.tables import Operation, Step


def begin(session: Session, operation: Operation) -> Operation:
    """Write it down; ConflictError while another one is not over. One of the same intent was written by another caller since this
    transaction has looked: then all of it is done again, and finds that one.
    """
    busy = session.scalar(select(Operation).where(col(Operation.busy_app) == operation.app))
    if busy is not None and busy.intent_id == operation.intent_id:
        raise StaleDataError(f"intent {operation.intent_id} was written meanwhile")
    if busy is not None:
        raise ConflictError(
            f"{busy.kind} {busy.id} of app {operation.app} is {busy.state}", hint="wait for it, or cancel it"
        )
    operation.busy_app = operation.app
    session.add(operation)
    session.flush()
    return operation


def by_intent(session: Session, intent_id: str) -> Operation | None:
    return session.scalar(select(Operation).where(col(Operation.intent_id) == intent_id))


def get(session: Session, operation_id: str) -> Operation:
    row = session.get(Operation, operation_id)
    if row is None:
        raise NotFoundError(
            f"there is no operation {operation_id}", hint="`streamfleet describe APP` lists those of an app"
        )
    return row


def busy(session: Session) -> Sequence[Operation]:
    """All that are not over, in the order they were asked for."""
    return session.scalars(
        select(Operation).where(col(Operation.busy_app).is_not(None)).order_by(col(Operation.created_at))
    ).all()


def latest(session: Session, app: str | None, limit: int) -> Sequence[Operation]:
    query = select(Operation).order_by(col(Operation.created_at).desc(), col(Operation.id)).limit(limit)
    return session.scalars(query if app is None else query.where(col(Operation.app) == app)).all()


def steps_of(session: Session, operation_id: str) -> Sequence[Step]:
    return session.scalars(select(Step).where(col(Step.operation) == operation_id).order_by(col(Step.number))).all()


def steps_under_way(session: Session, operation_ids: Iterable[str]) -> dict[str, Step]:
    rows = session.scalars(
        select(Step).where(col(Step.operation).in_(list(operation_ids)), col(Step.state) == StepState.RUNNING.value)
    )
    return {row.operation: row for row in rows}


def add_steps(session: Session, operation_id: str, first: int, steps: Iterable[tuple[str, int | None]]) -> None:
    for number, (name, slot) in enumerate(steps, start=first):
        session.add(Step(operation=operation_id, number=number, name=name, slot=slot, state=StepState.PENDING.value))


def move(session: Session, row: Operation, state: OperationState, now: datetime, **changes: object) -> Operation:
    """To another state, as operation.MOVES allows; over: the app is free again."""
    if state not in MOVES[OperationState(row.state)]:
        raise ConflictError(f"operation {row.id} is {row.state} and cannot become {state.value}")
    if state is OperationState.RUNNING:
        changes["started_at"] = now
    if state.is_over:
        changes |= {"ended_at": now, "busy_app": None}
    return touch(session, row, state=state.value, **changes)


@dataclass(frozen=True)
class Ended:
    """How an operation ended."""

    state: OperationState
    error: str | None

    @property
    def failure(self) -> str | None:
        """Why it did not do what it was begun for; None: it did."""
        if self.state is OperationState.SUCCEEDED:
            return None
        return self.error or f"it was {self.state.value}".replace("_", " ")


def ended(session: Session, intents: Iterable[str]) -> dict[str, Ended]:
    """Of those of these whose operation is over."""
    columns = (col(Operation.intent_id), col(Operation.state), col(Operation.error))
    rows = session.execute(
        select(*columns).where(
            col(Operation.intent_id).in_([intent for intent in intents if intent]), col(Operation.busy_app).is_(None)
        )
    )
    return {intent: Ended(OperationState(state), error) for intent, state, error in rows}


def last_failures(session: Session) -> dict[str, str]:
    """Of apps whose last operation failed: why."""
    latest_of = (
        select(col(Operation.app).label("app"), func.max(Operation.created_at).label("at"))
        .group_by(col(Operation.app))
        .subquery()
    )
    rows = session.scalars(
        select(Operation)
        .join(latest_of, (col(Operation.app) == latest_of.c.app) & (col(Operation.created_at) == latest_of.c.at))
        .where(col(Operation.state) == OperationState.FAILED.value)
    )
    return {row.app: f"{row.kind} failed: {row.error or ''}" for row in rows}
