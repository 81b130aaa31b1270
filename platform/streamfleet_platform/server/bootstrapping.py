"""Bootstraps as the API has them: begun, gone on with, reported by their jobs, aborted. For fleet.py.

A bootstrap is an operation (operations/bootstrap.py) and a run. The operation holds the app and publishes; the run is what the job
works on: its spec, its state, and the token that fences all attempts but the newest. Begin writes both in one transaction, with
the app's fence and the row of the topic that the job will make, so that whatever ends first, nothing is left unowned.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from streamfleet_platform import views
from streamfleet_platform.errors import ConflictError, NotFoundError, StaleError, TransientError
from streamfleet_platform.model.fleet_definition import Cluster as ClusterDefinition
from streamfleet_platform.model.operation import OperationKind, OperationState
from streamfleet_platform.operations.bootstrap import ABORTING, ENDED, REPORTED, changelog_row
from streamfleet_platform.operations.bootstrap_runs import changelog_of, fence_attempts
from streamfleet_platform.operations.cluster import Cluster, GroupFacts
from streamfleet_platform.operations.topics import external_topics
from streamfleet_platform.operations.work import Revisions
from streamfleet_platform.reconcile.applying import new_operation
from streamfleet_platform.registry import apps, audits, history, journal
from streamfleet_platform.registry.database import Database, touch
from streamfleet_platform.registry.tables import App, BootstrapRun
from streamfleet_platform.server.bootstrap_spec import bootstrap_spec


class Bootstrapping:
    def __init__(
        self,
        database: Database,
        revisions: Revisions,
        cluster_of: Callable[[ClusterDefinition], Cluster],
        clock: Callable[[], datetime],
        *,
        runs: Path,
        snapshots: Path,
        code: Path,
    ) -> None:
        self._database = database
        self._revisions = revisions
        self._cluster_of = cluster_of
        self._clock = clock
        self._runs = runs
        self._snapshots = snapshots
        self._code = code

    def bootstraps(self, app: str) -> list[views.BootstrapRunView]:
        with self._database.read() as session:
            apps.get_app(session, app)
            return [_view(row) for row in audits.bootstraps_of(session, app)]

    def start(self, name: str, request: views.BootstrapStart, *, actor: str, intent_id: str) -> views.BootstrapRunView:
        """A new run, or a new attempt of the one that is under way: with a token that fences the former."""
        with self._database.read() as session:
            app = apps.get_app(session, name)
            known = audits.bootstraps_of(session, name)
        revision = self._revisions.get(name, app.revision)
        if request.name not in revision.spec.state.bootstraps:
            raise NotFoundError(f"app {name} declares no bootstrap {request.name}", hint="see state.bootstraps")
        cluster = self._cluster_of(revision.cluster)
        widths = {topic: facts.partitions for topic, facts in cluster.topics(external_topics(revision)).items()}
        group = cluster.group(app.application_id)
        run_id = f"bootstrap-{uuid.uuid4().hex[:12]}"
        spec = bootstrap_spec(
            revision,
            request.name,
            run_id=run_id,
            epochs=app.epochs,
            used_epochs=[run.epoch for run in known],
            inputs=widths,
            directory=self._runs / run_id,
            snapshots=self._snapshots,
            code=self._code,
        )
        there = cluster.topics([changelog_of(spec)])

        def change(session: Session) -> BootstrapRun:
            row, runs = apps.get_app(session, name), audits.bootstraps_of(session, name)
            same = next((run for run in runs if run.intent_id == intent_id), None)
            if same is not None:
                return same
            token = audits.newest_token(session, name) + 1
            under_way = next((run for run in runs if run.state not in ENDED), None)
            if under_way is not None and _holds(row, under_way):
                return self._go_on(session, under_way, request, token, actor=actor, intent_id=intent_id)
            if request.abort:
                _refuse_abort(row, under_way)
            if under_way is not None:
                self._end(session, under_way, actor=actor)
            _check_stopped(row, group)
            if there or any(run.epoch >= spec["epoch"] for run in runs):
                raise ConflictError(f"epoch {spec['epoch']} is taken", hint="ask again")
            return self._begin(session, row, request, {**spec, "token": token}, actor=actor, intent_id=intent_id)

        return _view(self._database.write(change))

    def _begin(
        self,
        session: Session,
        app: App,
        request: views.BootstrapStart,
        spec: dict[str, Any],
        *,
        actor: str,
        intent_id: str,
    ) -> BootstrapRun:
        now = self._clock()
        params = {"run": spec["run_id"], "start": request.start}
        reason = f"bootstrap {request.name} of store {spec['store']['name']}"
        operation = new_operation(OperationKind.BOOTSTRAP, app.name, params, actor, intent_id, now, reason)
        journal.begin(session, operation)
        run = BootstrapRun(
            id=spec["run_id"],
            app=app.name,
            name=request.name,
            state="fenced",
            token=spec["token"],
            epoch=spec["epoch"],
            intent_id=intent_id,
            operation=operation.id,
            spec=spec,
            created_at=now,
            updated_at=now,
        )
        session.add(run)
        session.add(changelog_row(app, spec, now))
        app.fenced_by = operation.id
        told = f"{request.name} holds the app"
        history.add_event(session, now, "bootstrap", told, actor=actor, app=app.name, run=run.id)
        return run

    def _go_on(
        self,
        session: Session,
        run: BootstrapRun,
        request: views.BootstrapStart,
        token: int,
        *,
        actor: str,
        intent_id: str,
    ) -> BootstrapRun:
        if run.name != request.name:
            raise ConflictError(f"bootstrap {run.name} ({run.id}) is {run.state}", hint="abort it first")
        if not request.abort and (run.state == ABORTING or _is_over(session, run)):
            raise ConflictError(f"bootstrap {run.id} is {run.state} and cannot go on", hint="abort it, then begin anew")
        now, spec = self._clock(), {**run.spec, "token": token}
        told = f"{run.name}: attempt {token}" + (" aborts it" if request.abort else "")
        history.add_event(session, now, "bootstrap", told, actor=actor, app=run.app, run=run.id)
        state = ABORTING if request.abort else run.state
        return touch(session, run, state=state, token=token, spec=spec, intent_id=intent_id, updated_at=now)

    def _end(self, session: Session, run: BootstrapRun, *, actor: str) -> None:
        """It lost the app to something else, and nothing of it may go on."""
        if not fence_attempts(run):
            raise TransientError(f"an attempt of bootstrap {run.id} begins in this moment", hint="ask again")
        now, told = self._clock(), "the app was no longer held by it"
        history.add_event(
            session, now, "bootstrap", f"{run.name}: aborted, {told}", actor=actor, app=run.app, run=run.id
        )
        touch(session, run, state="aborted", detail={**run.detail, "aborted": {"told": told}}, updated_at=now)

    def move(self, name: str, run_id: str, move: views.BootstrapMove, *, actor: str) -> views.BootstrapRunView:
        """The job has reached a state. What it means for the app is the operation's to decide."""
        now = self._clock()

        def change(session: Session) -> BootstrapRun:
            app, run = apps.get_app(session, name), audits.get_bootstrap(session, name, run_id)
            if run.state == move.state and run.token == move.token:
                return run
            if move.token != run.token or run.token != audits.newest_token(session, name):
                raise StaleError(f"token {move.token} is not the newest of app {name}", hint="another attempt goes on")
            if run.state in ENDED:
                raise ConflictError(f"bootstrap {run.id} is {run.state}", hint="start another one")
            if app.fenced_by != run.operation:
                raise ConflictError(f"app {name} is no longer held by {run.operation}", hint="abort, and begin anew")
            detail = {**run.detail, move.state: move.detail}
            if (move.state == "aborted") != (run.state == ABORTING):
                raise ConflictError(f"bootstrap {run.id} is {run.state} and cannot become {move.state}")
            if move.state == "aborted":
                if _is_over(session, run):  # nobody else lets go of the app
                    app.fenced_by = None
            elif REPORTED.index(move.state) < REPORTED.index(run.state):
                return touch(session, run, detail=detail, updated_at=now)  # proven again by a later attempt
            history.add_event(session, now, "bootstrap", f"{run.name}: {move.state}", actor=actor, app=name, run=run_id)
            return touch(session, run, state=move.state, detail=detail, updated_at=now)

        return _view(self._database.write(change))


def _check_stopped(app: App, group: GroupFacts) -> None:
    if app.desired != "stopped" or not group.is_empty:
        raise ConflictError(
            f"app {app.name} is {app.desired}, its group {group.state}", hint="stop it: a bootstrap needs it to itself"
        )
    if app.fenced_by is not None:
        raise ConflictError(f"app {app.name} is held by {app.fenced_by}", hint="wait for it, or abort it")


def _holds(app: App, run: BootstrapRun) -> bool:
    """As it has to for every step of its own, the way back included: offsets that it puts back are those of the state it found."""
    return run.operation is not None and app.fenced_by == run.operation


def _refuse_abort(app: App, run: BootstrapRun | None) -> None:
    if run is None:
        raise ConflictError(f"app {app.name} has no bootstrap under way", hint="there is nothing to abort")
    raise ConflictError(
        f"bootstrap {run.id} no longer holds app {app.name}, and must not put offsets back",
        hint="there is nothing to abort; the next bootstrap ends it",
    )


def _is_over(session: Session, run: BootstrapRun) -> bool:
    return run.operation is None or OperationState(journal.get(session, run.operation).state).is_over


def _view(row: BootstrapRun) -> views.BootstrapRunView:
    return views.BootstrapRunView.model_validate(row.model_dump())
