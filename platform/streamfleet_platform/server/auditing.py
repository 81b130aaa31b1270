"""Audits, as far as the registry has to do with them: what a job has to know, and what it reports. For fleet.py."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from streamfleet_platform import views
from streamfleet_platform.errors import InvalidRequestError, NotFoundError
from streamfleet_platform.operations.work import Revisions
from streamfleet_platform.registry import apps, audits, history
from streamfleet_platform.registry.database import Database
from streamfleet_platform.registry.tables import AuditRun
from streamfleet_platform.server.audit_spec import audit_spec


class Auditing:
    def __init__(self, database: Database, revisions: Revisions, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._revisions = revisions
        self._clock = clock

    def audit_spec(self, name: str) -> dict[str, Any]:
        """Everything about the app that an audit cannot find out by itself."""
        with self._database.read() as session:
            app = apps.get_app(session, name)
            topics = list(apps.topics_of(session, name))
        return audit_spec(app, topics, self._revisions.get(name, app.revision))

    def record_audit(self, name: str, report: views.AuditReport, *, actor: str) -> views.AuditRunView:
        now = self._clock()

        def change(session: Session) -> AuditRun:
            apps.get_app(session, name)
            run = AuditRun(
                app=name,
                id=report.run_id,
                engine=report.engine,
                started_at=audits.parse_time(report.started_at, now),
                ended_at=audits.parse_time(report.ended_at, now),
                verdict=report.verdict,
                findings=len(report.findings),
                summary=report.summary,
                report_html=report.report_html,
            )
            for found in report.findings:
                if "rule" not in found or found.get("severity") not in ("info", "warning", "error"):
                    raise InvalidRequestError("a finding has no rule, or no severity", hint="send what the job wrote")
            recorded = audits.record_run(session, run, report.partitions, report.findings)
            told = f"audit {report.verdict}: {len(report.findings)} findings"
            history.add_event(session, now, "audit", told, actor=actor, app=name, run=report.run_id)
            return recorded

        return _run_view(self._database.write(change))

    def audits(self, app: str, limit: int) -> list[views.AuditRunView]:
        with self._database.read() as session:
            apps.get_app(session, app)
            return [_run_view(row) for row in audits.runs_of(session, app, limit)]

    def audit_html(self, app: str, run_id: str) -> str:
        with self._database.read() as session:
            html = audits.get_run(session, app, run_id).report_html
        if html is None:
            raise NotFoundError(f"audit {run_id} of app {app} came without a page")
        return html


def _run_view(row: AuditRun) -> views.AuditRunView:
    return views.AuditRunView.model_validate(row.model_dump(exclude={"report_html"}))
