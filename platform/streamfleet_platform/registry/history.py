"""What was: events, phases, observations, scaling decisions, answered intents. All functions work in a caller's session."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session
from sqlmodel import col

from streamfleet_platform.errors import ConflictError
from streamfleet_platform.registry.tables import Event, Intent, Observation, PhaseChange, ScalingRecord

KEEP_OBSERVATIONS = timedelta(hours=6)


def add_event(
    session: Session,
    at: datetime,
    kind: str,
    message: str,
    *,
    actor: str = "server",
    app: str | None = None,
    **data: Any,
) -> None:
    session.add(Event(at=at, app=app, kind=kind, message=message, actor=actor, data=data))


def events_after(session: Session, app: str | None, after: int, limit: int) -> Sequence[Event]:
    """Oldest first. `after` 0: the newest ones."""
    query = select(Event) if app is None else select(Event).where(col(Event.app) == app)
    if after > 0:
        return session.scalars(query.where(col(Event.id) > after).order_by(col(Event.id)).limit(limit)).all()
    newest = session.scalars(query.order_by(col(Event.id).desc()).limit(limit)).all()
    return newest[::-1]


def phases_of(session: Session, app: str, limit: int) -> Sequence[PhaseChange]:
    """Newest first."""
    return session.scalars(
        select(PhaseChange).where(col(PhaseChange.app) == app).order_by(col(PhaseChange.id).desc()).limit(limit)
    ).all()


def observations_of(session: Session, app: str, limit: int) -> Sequence[Observation]:
    """Oldest first, the newest `limit`."""
    newest = session.scalars(
        select(Observation).where(col(Observation.app) == app).order_by(col(Observation.at).desc()).limit(limit)
    ).all()
    return newest[::-1]


def forget_old_observations(session: Session, now: datetime) -> None:
    session.execute(delete(Observation).where(col(Observation.at) < now - KEEP_OBSERVATIONS))


def scaling_records(session: Session, apps: Iterable[str] | None = None) -> dict[str, ScalingRecord]:
    query = select(ScalingRecord)
    if apps is not None:
        query = query.where(col(ScalingRecord.app).in_(list(apps)))
    return {row.app: row for row in session.scalars(query)}


def put_scaling_records(session: Session, rows: Sequence[Mapping[str, Any]]) -> None:
    """All at once: there is one per app."""
    known = set(session.scalars(select(col(ScalingRecord.app))))
    old, new = [row for row in rows if row["app"] in known], [row for row in rows if row["app"] not in known]
    if old:
        session.execute(update(ScalingRecord), old)
    if new:
        session.execute(insert(ScalingRecord), new)


def answer_of(session: Session, intent_id: str, asked: str) -> str | None:
    """The first answer to this intent. ConflictError if it was another question."""
    row = session.get(Intent, intent_id)
    if row is None:
        return None
    if row.asked != fingerprint(asked):
        raise ConflictError(f"intent {intent_id} was another request", hint="use an id of its own for every intent")
    return row.answer


def remember_answer(session: Session, intent_id: str, asked: str, answer: str, now: datetime) -> None:
    session.add(Intent(id=intent_id, asked=fingerprint(asked), answer=answer, at=now))


def fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
