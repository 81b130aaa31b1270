"""Apps with their revisions, workers and topics: what is read and written about them. All functions work in a caller's session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.orm import Session
from sqlmodel import col

from streamfleet_platform.errors import NotFoundError
from streamfleet_platform.registry.tables import (
    App,
    FleetState,
    InternalTopic,
    Observation,
    PhaseChange,
    Revision,
    ScalingRecord,
    Worker,
)


def app_names(session: Session) -> list[str]:
    return list(session.scalars(select(col(App.name)).order_by(col(App.name))))


def all_apps(session: Session) -> Sequence[App]:
    return session.scalars(select(App).order_by(col(App.name))).all()


def get_app(session: Session, name: str) -> App:
    row = session.get(App, name)
    if row is None:
        raise NotFoundError(f"there is no app {name}", hint="`streamfleet status` lists those there are")
    return row


def get_revision(session: Session, app: str, revision: str) -> Revision:
    row = session.get(Revision, (app, revision))
    if row is None:
        raise NotFoundError(f"app {app} has no revision {revision}", hint="apply it first")
    return row


def revisions_of(session: Session, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Revision]:
    wanted = set(keys)
    rows = session.scalars(select(Revision).where(col(Revision.app).in_({app for app, _ in wanted})))
    return {(row.app, row.id): row for row in rows if (row.app, row.id) in wanted}


def revision_hashes(session: Session, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, str]]:
    """Code and definition of each, by their hashes: enough to see that nothing has changed, and read without what is large."""
    wanted = set(keys)
    columns = (col(Revision.app), col(Revision.id), col(Revision.code_id), col(Revision.definition_hash))
    rows = session.execute(select(*columns).where(col(Revision.app).in_({app for app, _ in wanted})))
    return {(app, id_): (code, definition) for app, id_, code, definition in rows if (app, id_) in wanted}


def put_revision(session: Session, revision: Revision) -> None:
    """Once: the same id has the same content."""
    if session.get(Revision, (revision.app, revision.id)) is None:
        session.add(revision)


def code_ids(session: Session, *, but_of: str) -> set[str]:
    """Code that some revision of another app names."""
    return set(session.scalars(select(col(Revision.code_id)).where(col(Revision.app) != but_of).distinct()))


def workers_of(session: Session, app: str) -> Sequence[Worker]:
    return session.scalars(select(Worker).where(col(Worker.app) == app).order_by(col(Worker.slot))).all()


def all_workers(session: Session) -> dict[str, list[Worker]]:
    found: dict[str, list[Worker]] = {}
    for row in session.scalars(select(Worker).order_by(col(Worker.app), col(Worker.slot))):
        found.setdefault(row.app, []).append(row)
    return found


def put_worker(session: Session, app: str, slot: int, revision: str) -> None:
    row = session.get(Worker, (app, slot))
    if row is None:
        session.add(Worker(app=app, slot=slot, revision=revision))
    else:
        row.revision = revision


def drop_worker(session: Session, app: str, slot: int) -> None:
    session.execute(delete(Worker).where(col(Worker.app) == app, col(Worker.slot) == slot))


def topics_of(session: Session, app: str) -> Sequence[InternalTopic]:
    return session.scalars(
        select(InternalTopic).where(col(InternalTopic.app) == app).order_by(col(InternalTopic.name))
    ).all()


def all_topics(session: Session) -> dict[str, list[InternalTopic]]:
    found: dict[str, list[InternalTopic]] = {}
    for row in session.scalars(select(InternalTopic).order_by(col(InternalTopic.name))):
        found.setdefault(row.app, []).append(row)
    return found


def put_topic(session: Session, topic: InternalTopic) -> None:
    """What is known of it already is kept, unless it is a new generation's."""
    session.merge(topic)


def drop_topics(session: Session, application_id: str, names: Iterable[str]) -> None:
    session.execute(
        delete(InternalTopic).where(
            col(InternalTopic.application_id) == application_id, col(InternalTopic.name).in_(list(names))
        )
    )


def drop_app(session: Session, name: str) -> None:
    """A retired app leaves its events, audits and operations; nothing that could be acted on."""
    for table in (Worker, InternalTopic, Revision, Observation, PhaseChange, ScalingRecord):
        columns: Any = table
        session.execute(delete(table).where(columns.app == name))
    session.execute(delete(App).where(col(App.name) == name))


def put_sights(session: Session, rows: Sequence[Mapping[str, Any]]) -> None:
    """What was seen of apps, by their names and all with the same columns. No version is raised: nobody decides on these columns by
    compare-and-set.
    """
    if rows:
        table: Any = App.__table__  # type: ignore[attr-defined]  # SQLModel's, of a table
        named = [{"of": row["name"]} | {name: value for name, value in row.items() if name != "name"} for row in rows]
        session.execute(update(table).where(table.c.name == bindparam("of")), named)


def fleet_state(session: Session) -> FleetState:
    """As it was accepted last. Who changes it adds it to the session: there may be none yet."""
    return session.get(FleetState, 1) or FleetState(id=1)


def set_phase(session: Session, app: str, phase: str, now: datetime, reason: str) -> None:
    session.add(PhaseChange(app=app, phase=phase, since=now, reason=reason))
