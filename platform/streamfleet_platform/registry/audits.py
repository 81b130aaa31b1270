"""What audits report and how far bootstraps are, as rows. All functions work in a caller's session."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session
from sqlmodel import col

from streamfleet_platform.errors import NotFoundError
from streamfleet_platform.registry.tables import AuditPartition, AuditRun, BootstrapRun, Finding


def record_run(
    session: Session, run: AuditRun, partitions: Sequence[Mapping[str, Any]], findings: Sequence[Mapping[str, Any]]
) -> AuditRun:
    """Once per run id. Findings seen again stay open, new ones are opened; those that a good audit no longer sees are gone."""
    known = session.get(AuditRun, (run.app, run.id))
    if known is not None:
        return known
    session.add(run)
    for number, measured in enumerate(partitions):
        session.add(AuditPartition(app=run.app, run=run.id, number=number, measured=dict(measured)))
    open_ones: dict[str, Finding] = {}
    for row in session.scalars(_open_findings(run.app)):
        if row.identity in open_ones:  # one thing is open once
            row.state = "gone"
        else:
            open_ones[row.identity] = row
    for identity, found in _identified(findings):
        row = open_ones.pop(identity, None)
        if row is None:
            session.add(_finding(run, identity, found))
        else:
            row.last_seen, row.run = run.ended_at, run.id
            row.summary, row.severity = str(found.get("summary", "")), str(found["severity"])
            row.evidence = dict(found.get("evidence") or {})
    if run.verdict != "unknown":  # an audit that could not look everywhere proves nothing gone
        for row in open_ones.values():
            row.state = "gone"
    session.flush()
    return run


def _open_findings(app: str) -> Select[Any]:
    return select(Finding).where(col(Finding.app) == app, col(Finding.state) != "gone").order_by(col(Finding.id))


def _identified(findings: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Two that a report cannot tell apart are the first and the second of their kind: each is found again, neither grows."""
    counts: Counter[str] = Counter()
    for found in findings:
        identity = identity_of(found)
        counts[identity] += 1
        yield identity if counts[identity] == 1 else f"{identity} {counts[identity]}", found


def identity_of(found: Mapping[str, Any]) -> str:
    """What makes it the same thing when it is found again. A topic can drift in several settings: each is a finding."""
    about = [found.get("rule"), found.get("topic"), found.get("store"), found.get("partition")]
    setting = (found.get("evidence") or {}).get("config")
    return json.dumps(about if setting is None else [*about, setting])


def _finding(run: AuditRun, identity: str, found: Mapping[str, Any]) -> Finding:
    return Finding(
        app=run.app,
        identity=identity,
        topic=found.get("topic"),
        store=found.get("store"),
        partition=found.get("partition"),
        rule=str(found["rule"]),
        severity=str(found["severity"]),
        summary=str(found.get("summary", "")),
        advice=str(found.get("advice", "")),
        evidence=dict(found.get("evidence") or {}),
        run=run.id,
        first_seen=run.ended_at,
        last_seen=run.ended_at,
    )


def runs_of(session: Session, app: str, limit: int) -> Sequence[AuditRun]:
    """Newest first."""
    return session.scalars(
        select(AuditRun).where(col(AuditRun.app) == app).order_by(col(AuditRun.ended_at).desc()).limit(limit)
    ).all()


def get_run(session: Session, app: str, run_id: str) -> AuditRun:
    row = session.get(AuditRun, (app, run_id))
    if row is None:
        raise NotFoundError(f"app {app} has no audit {run_id}", hint="list its audits")
    return row


def findings(session: Session, app: str | None, state: str | None) -> Sequence[Finding]:
    query = select(Finding).order_by(col(Finding.id))
    if app is not None:
        query = query.where(col(Finding.app) == app)
    return session.scalars(query if state is None else query.where(col(Finding.state) == state)).all()


def bootstraps_of(session: Session, app: str) -> Sequence[BootstrapRun]:
    """Newest first."""
    return session.scalars(
        select(BootstrapRun).where(col(BootstrapRun.app) == app).order_by(col(BootstrapRun.token).desc())
    ).all()


def get_bootstrap(session: Session, app: str, run_id: str) -> BootstrapRun:
    row = session.get(BootstrapRun, run_id)
    if row is None or row.app != app:
        raise NotFoundError(f"app {app} has no bootstrap {run_id}", hint="list its bootstraps")
    return row


def newest_token(session: Session, app: str) -> int:
    return session.scalar(select(func.max(BootstrapRun.token)).where(col(BootstrapRun.app) == app)) or 0


def parse_time(text: str, fallback: datetime) -> datetime:
    """As jobs write it; one that cannot be read is the time of the report."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return fallback
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=fallback.tzinfo)
