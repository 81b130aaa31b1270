"""A plan becomes revisions and operations, all in one transaction: what is accepted is accepted as a whole. Called by server/."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from streamfleet_platform.definitions.fleet import App as DeclaredApp
from streamfleet_platform.definitions.yaml_nodes import plain
from streamfleet_platform.errors import ConflictError, ForbiddenError
from streamfleet_platform.model.operation import OperationKind, OperationState
from streamfleet_platform.model.phase import Phase
from streamfleet_platform.reconcile.decisions import reset_intent
from streamfleet_platform.reconcile.fleet_state import definition_of
from streamfleet_platform.reconcile.planner import Planned
from streamfleet_platform.registry import apps, history, journal
from streamfleet_platform.registry.tables import App, Operation, Revision
from streamfleet_platform.scaling.budget import over_budget
from streamfleet_platform.service import Limits
from streamfleet_platform.views import AppChange

TAKEN = ("create", "upgrade", "update", "reset")
"""What a change does that is written down."""


class Applying:
    """One plan, one caller."""

    def __init__(
        self,
        planned: Planned,
        *,
        actor: str,
        intent_id: str,
        clock: Callable[[], datetime],
        accept_lost_state: Collection[str] = (),
        limits: Limits | None = None,
        takes_fleet: bool = True,
    ) -> None:
        """`takes_fleet`: the fleet's own settings come into force too, for all apps; not by who may only change some of them."""
        self._planned = planned
        self._actor = actor
        self._intent_id = intent_id
        self._clock = clock
        self._accepted = frozenset(accept_lost_state)
        self._limits = limits
        self._takes_fleet = takes_fleet and limits is None

    def write(self, session: Session) -> tuple[list[AppChange], list[Operation]]:
        """The changes as they were taken, with what stopped the others, and the operations that were begun."""
        assert self._planned.fleet is not None
        taken: list[AppChange] = []
        begun: list[Operation] = []
        for change in self._planned.view.changes:
            told, operation = self._one(session, change)
            taken.append(told)
            if operation is not None:
                begun.append(operation)
        if self._takes_fleet:
            self._fleet(session)
        else:
            self._flows(session, {told.app for told in taken if told.blocked is None and told.action in TAKEN})
        return taken, begun

    def _one(self, session: Session, change: AppChange) -> tuple[AppChange, Operation | None]:
        if change.action == "none" and self._is_theirs(session, change):
            self._withdraw_reset(session, change.app)
        if change.action not in TAKEN:
            return change, None
        self._check_limits(session, change)
        if change.blocked is not None and not self._is_accepted(change):
            return change, None
        revision = self._planned.revisions[change.app]
        assert self._planned.fleet is not None
        declared = self._planned.fleet.apps[change.app]
        try:
            with session.begin_nested():
                operation = self._accept(session, change, declared, revision)
        except ConflictError as error:
            return change.model_copy(update={"blocked": str(error)}), None
        return change.model_copy(update={"blocked": None}), operation

    def _check_limits(self, session: Session, change: AppChange) -> None:
        """Of the plan that is written, in the transaction that writes it: what was shown before may have been another one."""
        if self._limits is not None:
            row = session.get(App, change.app)
            self._limits.check(change, None if row is None else row.owner)
        if not self._takes_fleet and change.app in self._planned.revisions:
            self._check_cluster(session, change.app)

    def _is_theirs(self, session: Session, change: AppChange) -> bool:
        try:
            self._check_limits(session, change)
        except ForbiddenError:
            return False
        return True

    def _check_cluster(self, session: Session, app: str) -> None:
        """Whoever names a branch could name a cluster of their own by it."""
        assert self._planned.fleet is not None
        name = self._planned.fleet.apps[app].spec.cluster
        accepted = definition_of(apps.fleet_state(session))
        if accepted is None or accepted.spec.clusters.get(name) != self._planned.fleet.definition.spec.clusters[name]:
            raise ForbiddenError(
                f"app {app} wants cluster {name} as the fleet does not have it",
                hint="who may change the fleet applies its fleet.yaml first, as a whole",
            )

    def _is_accepted(self, change: AppChange) -> bool:
        return change.can_accept and change.app in self._accepted

    def _accept(
        self, session: Session, change: AppChange, declared: DeclaredApp, revision: Revision
    ) -> Operation | None:
        apps.put_revision(session, Revision.model_validate(revision.model_dump()))
        if change.action == "create":
            self._check_budget(session, declared)
            session.add(_new_app(declared, revision.id, self._clock()))
            session.flush()
            return self._begin(session, OperationKind.DEPLOY, change.app, {"revision": revision.id})
        row = apps.get_app(session, change.app)
        before = apps.get_revision(session, change.app, row.revision)
        _describe(row, declared)
        if change.action == "reset":
            if row.wanted_revision != revision.id:
                self._withdraw_reset(session, row.name)
            row.wanted_generation, row.wanted_revision = declared.spec.generation, revision.id
            told = f"generation {declared.spec.generation} is wanted, the state is of generation {row.generation}"
            history.add_event(session, self._clock(), "reset-wanted", told, actor=self._actor, app=row.name)
            return None
        kind, is_accepted = _kind_of(before.definition, declared), change.app in self._accepted
        if kind is not OperationKind.STOP and not is_accepted:  # without its state it begins anew, as a reset does
            refuse_held(row)
        self._withdraw_reset(session, row.name)
        row.quarantine = None  # what comes now may be the cure
        params = {"revision": revision.id, "from": row.revision, "accept_lost_state": is_accepted}
        return self._begin(session, kind, change.app, params)

    def _check_budget(self, session: Session, declared: DeclaredApp) -> None:
        """Definitions that want more than the budget are invalid; but others may have been scaled since."""
        assert self._planned.fleet is not None
        budget = self._planned.fleet.definition.spec.budgets.slots
        slots = {row.name: row.slots for row in apps.all_apps(session)}
        why = over_budget(budget, slots, declared.name, declared.spec.scale.min)
        if why is not None:
            raise ConflictError(why, hint="raise budgets.slots, or scale another app down")

    def _withdraw_reset(self, session: Session, app: str) -> None:
        """Git wants no other generation any more: what was asked for because of it is not done."""
        row = apps.get_app(session, app)
        if row.wanted_generation == row.generation:
            return
        asked = journal.by_intent(session, reset_intent(row))
        if asked is not None and asked.state in (OperationState.ASKING, OperationState.PLANNED):
            withdrawn = f"{asked.intent_id}-withdrawn-{asked.id}"  # raised once more, it is an intent of its own
            journal.move(session, asked, OperationState.CANCELLED, self._clock(), intent_id=withdrawn)
        told = f"generation {row.wanted_generation} is no longer wanted"
        row.wanted_generation, row.wanted_revision = row.generation, row.revision
        history.add_event(session, self._clock(), "reset-withdrawn", told, actor=self._actor, app=app)

    def _begin(self, session: Session, kind: OperationKind, app: str, params: dict[str, Any]) -> Operation:
        intent = f"{self._intent_id}:{app}"
        return journal.begin(session, new_operation(kind, app, params, self._actor, intent, self._clock()))

    def _flows(self, session: Session, taken: Collection[str]) -> None:
        """What these apps read is theirs to say; the rest of the fleet is as it was."""
        assert self._planned.fleet is not None
        row = apps.fleet_state(session)
        found = [[flow.upstream, flow.downstream, flow.topic] for flow in self._planned.fleet.lineage.flows]
        flows = [flow for flow in row.flows if flow[1] not in taken] + [flow for flow in found if flow[1] in taken]
        if sorted(flows) != sorted(row.flows):
            row.flows = flows
            session.add(row)

    def _fleet(self, session: Session) -> None:
        fleet = self._planned.fleet
        assert fleet is not None
        row = apps.fleet_state(session)
        row.revision = self._planned.view.revision
        row.definition = {} if fleet.document is None else plain(fleet.document)
        row.flows = [[flow.upstream, flow.downstream, flow.topic] for flow in fleet.lineage.flows]
        row.problems = []
        session.add(row)


def refuse_held(app: App) -> None:
    """What would start workers is not even begun: an app that is half reset, or that a bootstrap holds, must not run."""
    if app.fenced_by is not None:
        raise ConflictError(
            f"app {app.name} is held by {app.fenced_by}",
            hint="wait for it, or abort it; a reset that failed is done again",
        )


def new_operation(
    kind: OperationKind, app: str, params: dict[str, Any], actor: str, intent_id: str, now: datetime, reason: str = ""
) -> Operation:
    return Operation(
        id=f"{kind.value}-{uuid.uuid4().hex[:12]}",
        app=app,
        kind=kind.value,
        state=OperationState.PLANNED.value,
        intent_id=intent_id,
        actor=actor,
        params=params,
        reason=reason,
        created_at=now,
    )


def _kind_of(before: dict[str, Any], declared: DeclaredApp) -> OperationKind:
    """Whether the definition starts or stops the app; what a person did by hand stays as it is."""
    was = before["spec"].get("run", {}).get("desired", "running")
    now = declared.spec.run.desired
    if was != now and now == "stopped":
        return OperationKind.STOP
    if was == "stopped" and now != "stopped":
        return OperationKind.START
    return OperationKind.UPGRADE


def _new_app(declared: DeclaredApp, revision: str, now: datetime) -> App:
    spec = declared.spec
    row = App(
        name=declared.name,
        owner=declared.definition.metadata.owner,
        cluster=spec.cluster,
        application_id=spec.application_id,
        generation=spec.generation,
        wanted_generation=spec.generation,
        revision=revision,
        wanted_revision=revision,
        desired=spec.run.desired,
        slots=spec.scale.min,
        phase=Phase.PENDING.value,
        phase_since=now,
    )
    _describe(row, declared)
    return row


def _describe(row: App, declared: DeclaredApp) -> None:
    """What only people read; taken over at once."""
    metadata = declared.definition.metadata
    row.owner, row.tier, row.labels = metadata.owner, metadata.tier, dict(metadata.labels)
    if row.desired in ("running", "paused") and declared.spec.run.desired in ("running", "paused"):
        row.desired = declared.spec.run.desired
