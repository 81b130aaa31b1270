"""Audits and bootstraps, as far as the registry has to do with them: what a job has to know, and what it reports. For fleet.py.

A bootstrap holds its app: it is fenced with the run's id, so that nobody starts it, and every report shows the run's token.
Publishing is one transaction: the store's epoch, the run's state and the fence change together.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from streamfleet_platform import views
from streamfleet_platform.errors import ConflictError, InvalidRequestError, NotFoundError, StaleError
from streamfleet_platform.model.fleet_definition import Cluster as ClusterDefinition
from streamfleet_platform.operations.cluster import Cluster
from streamfleet_platform.operations.topics import external_topics
from streamfleet_platform.operations.work import Revisions
from streamfleet_platform.registry import apps, audits, history
from streamfleet_platform.registry.database import Database, touch
from streamfleet_platform.registry.tables import App, AuditRun, BootstrapRun, InternalTopic
from streamfleet_platform.server.audit_spec import audit_spec
from streamfleet_platform.server.bootstrap_spec import bootstrap_spec

ORDER = ("planned", "fenced", "computed", "staged", "changelog_written", "verified", "published", "adopted")


class Jobs:
    def __init__(
        self,
        database: Database,
        revisions: Revisions,
        cluster_of: Callable[[ClusterDefinition], Cluster],
        clock: Callable[[], datetime],
        *,
        runs: Path,
        snapshots: Path,
    ) -> None:
        self._database = database
        self._revisions = revisions
        self._cluster_of = cluster_of
        self._clock = clock
        self._runs = runs
        self._snapshots = snapshots

    # audits

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

    # bootstraps

    def bootstraps(self, app: str) -> list[views.BootstrapRunView]:
        with self._database.read() as session:
            apps.get_app(session, app)
            return [_bootstrap_view(row) for row in audits.bootstraps_of(session, app)]

    def start_bootstrap(
        self, name: str, request: views.BootstrapStart, *, actor: str, intent_id: str
    ) -> views.BootstrapRunView:
        """A new run, or a new attempt of the one that is under way: with a token that fences the former."""
        with self._database.read() as session:
            app = apps.get_app(session, name)
        revision = self._revisions.get(name, app.revision)
        declared = revision.spec.state.bootstraps.get(request.name)
        if declared is None:
            raise NotFoundError(f"app {name} declares no bootstrap {request.name}", hint="see state.bootstraps")
        cluster = self._cluster_of(revision.cluster)
        widths = {topic: facts.partitions for topic, facts in cluster.topics(external_topics(revision)).items()}
        group = cluster.group(app.application_id)
        now = self._clock()

        def change(session: Session) -> BootstrapRun:
            row = apps.get_app(session, name)
            runs = audits.bootstraps_of(session, name)
            same = next((run for run in runs if run.intent_id == intent_id), None)
            if same is not None:
                return same
            open_run = next((run for run in runs if run.state not in ("published", "adopted", "aborted")), None)
            token = audits.newest_token(session, name) + 1
            if open_run is not None:
                if open_run.name != request.name:
                    raise ConflictError(
                        f"bootstrap {open_run.id} of app {name} is {open_run.state}", hint="abort it first"
                    )
                spec = {**open_run.spec, "token": token}
                return touch(session, open_run, token=token, spec=spec, intent_id=intent_id, updated_at=now)
            _check_stopped(row, group.is_empty, group.state)
            run_id = f"bootstrap-{uuid.uuid4().hex[:12]}"
            spec = bootstrap_spec(
                revision,
                request.name,
                run_id=run_id,
                token=token,
                epochs=row.epochs,
                inputs=widths,
                directory=self._runs / run_id,
                snapshots=self._snapshots,
            )
            run = BootstrapRun(
                id=run_id,
                app=name,
                name=request.name,
                state="fenced",
                token=token,
                epoch=spec["epoch"],
                intent_id=intent_id,
                spec=spec,
                created_at=now,
                updated_at=now,
            )
            session.add(run)
            row.fenced_by, row.version = run_id, row.version + 1
            told = f"bootstrap {request.name} holds the app"
            history.add_event(session, now, "bootstrap", told, actor=actor, app=name, run=run_id)
            return run

        return _bootstrap_view(self._database.write(change))

    def move_bootstrap(
        self, name: str, run_id: str, move: views.BootstrapMove, *, actor: str
    ) -> views.BootstrapRunView:
        now = self._clock()

        def change(session: Session) -> BootstrapRun:
            app, run = apps.get_app(session, name), audits.get_bootstrap(session, name, run_id)
            if run.state == move.state and run.token == move.token:
                return run
            if move.token != run.token or run.token != audits.newest_token(session, name):
                raise StaleError(f"token {move.token} is not the newest of app {name}", hint="another attempt goes on")
            _check_move(run, move.state)
            if app.fenced_by != run.id:
                raise ConflictError(f"app {name} is no longer held by {run.id}", hint="start the bootstrap again")
            if move.state in ("published", "aborted"):
                self._end(session, app, run, move.state)
            history.add_event(session, now, "bootstrap", f"{run.name}: {move.state}", actor=actor, app=name, run=run_id)
            detail = {**run.detail, move.state: move.detail}
            return touch(session, run, state=move.state, detail=detail, updated_at=now)

        return _bootstrap_view(self._database.write(change))

    def _end(self, session: Session, app: App, run: BootstrapRun, state: str) -> None:
        """The app is free again; published: with the new epoch, whose changelog is recorded as its own."""
        app.fenced_by, app.version = None, app.version + 1
        if state != "published":
            return
        store = run.spec["store"]["name"]
        app.epochs = {**app.epochs, store: run.epoch}
        revision = self._revisions.get(app.name, app.revision)
        name = f"{app.application_id}-{store}-e{run.epoch}-changelog"
        facts = self._cluster_of(revision.cluster).topics([name]).get(name)
        if facts is None:
            raise ConflictError(f"topic {name} is not there", hint="write the changelog again")
        for row in apps.topics_of(session, app.name):
            if row.store == store:
                row.is_orphan = True
        session.add(
            InternalTopic(
                application_id=app.application_id,
                name=name,
                app=app.name,
                generation=app.generation,
                topic_id=facts.topic_id,
                kind="changelog",
                store=store,
                partitions=facts.partitions,
                configs=run.spec["store"].get("changelog_configs", {}),
                recorded_at=self._clock(),
            )
        )


def _check_stopped(app: App, is_empty: bool, state: str) -> None:
    if app.desired != "stopped" or not is_empty:
        raise ConflictError(
            f"app {app.name} is {app.desired}, its group {state}", hint="stop it: a bootstrap needs it to itself"
        )
    if app.fenced_by is not None:
        raise ConflictError(f"app {app.name} is held by {app.fenced_by}", hint="wait for it, or abort it")


def _check_move(run: BootstrapRun, state: str) -> None:
    if run.state in ("published", "adopted", "aborted"):
        raise ConflictError(f"bootstrap {run.id} is {run.state}", hint="start another one")
    if state != "aborted" and ORDER.index(state) < ORDER.index(run.state):
        raise ConflictError(f"bootstrap {run.id} is {run.state} and cannot become {state}")


def _run_view(row: AuditRun) -> views.AuditRunView:
    return views.AuditRunView.model_validate(row.model_dump(exclude={"report_html"}))


def _bootstrap_view(row: BootstrapRun) -> views.BootstrapRunView:
    return views.BootstrapRunView.model_validate(row.model_dump())
