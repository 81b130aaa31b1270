"""One pass over all apps: look, carry operations on, correct drift, decide, write down. Called by server/ again and again, by the
leader only.

The world is read afresh each time; nothing is remembered between passes but what is cheap to find out again. A problem with one app
never keeps the others from their turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import structlog
from sqlalchemy.orm import Session

from streamfleet_platform.definitions.fleet import priority_of_tier
from streamfleet_platform.errors import StaleError, TransientError
from streamfleet_platform.model.fleet_definition import FleetDefinition
from streamfleet_platform.model.operation import OperationKind, OperationState
from streamfleet_platform.operations.journal import Journal
from streamfleet_platform.operations.seen import AppSeen, WorkerSeen
from streamfleet_platform.operations.steps import OperationType
from streamfleet_platform.operations.work import AppRevision, World, spec_of
from streamfleet_platform.reconcile.claims import slots_of
from streamfleet_platform.reconcile.drift import Correction, corrections
from streamfleet_platform.reconcile.fleet_state import definition_of
from streamfleet_platform.reconcile.observing import AppToSee, Observer
from streamfleet_platform.reconcile.recording import Recorded, Recorder, Revisions, Written
from streamfleet_platform.reconcile.restore_budget import Restorer, rates
from streamfleet_platform.registry import apps, history, journal
from streamfleet_platform.registry.lease import Leadership, NotLeaderError
from streamfleet_platform.registry.tables import App, FleetState, Operation
from streamfleet_platform.runtime.api import WorkerState
from streamfleet_platform.scaling.budget import over_budget

log = structlog.get_logger(__name__)

MAX_STARTS = 20
"""Workers that one pass starts beside its operations: after a machine comes back they come up in turns."""


class Reconciler:
    def __init__(
        self, world: World, steps: Journal, types: Mapping[OperationKind, OperationType], observer: Observer
    ) -> None:
        self._world = world
        self._journal = steps
        self._observer = observer
        self._recorder = Recorder(world, types)
        self._fleet: tuple[int, FleetDefinition | None] = (-1, None)
        self._told: frozenset[tuple[str, str, str]] = frozenset()

    def pass_once(self, leadership: Leadership) -> bool:
        """Whether an operation is under way, so that the next pass should come soon."""
        recorded = self._read()
        if not recorded.apps:
            return False
        written, starts = Written(), MAX_STARTS
        revisions = self._revisions(recorded)
        recorded = replace(recorded, apps=[app for app in recorded.apps if app.revision in revisions[app.name]])
        seen = self._look(recorded, revisions)
        slots = slots_of(recorded.apps, recorded.operations)
        for app in recorded.apps:
            operation = recorded.operations.get(app.name)
            with self._apart(app, written):
                if operation is not None and (why := _over_budget(recorded, slots, app, operation)) is not None:
                    self._refuse(leadership, operation, why)
                elif operation is not None:
                    self._journal.advance(leadership, operation, app, seen[app.name])
                else:
                    starts -= self._correct(leadership, app, recorded, revisions, seen[app.name], written, starts)
        self._share_restores(recorded, revisions, seen)
        written.events = self._news(written.events)
        self._recorder.conclude(recorded, revisions, seen, written)
        self._recorder.write(leadership, written)
        return any(operation.state != OperationState.ASKING for operation in recorded.operations.values())

    def _refuse(self, leadership: Leadership, operation: Operation, why: str) -> None:
        """It was asked for when there was room, and others were faster; or by somebody who did not know."""
        now = self._world.clock()

        def change(session: Session) -> None:
            row = journal.get(session, operation.id)
            journal.move(session, row, OperationState.CANCELLED, now, error=why)
            told = f"{row.kind} is not begun: {why}"
            history.add_event(session, now, "operation", told, actor=row.actor, app=row.app, operation=row.id)

        self._world.leases.write(leadership, change)

    @contextmanager
    def _apart(self, app: App, written: Written) -> Iterator[None]:
        """What goes wrong within is that app's trouble alone, unless it is our leadership."""
        try:
            yield
        except (NotLeaderError, StaleError):
            raise
        except Exception as error:
            log.warning("app could not be reconciled", app=app.name, error=str(error))
            written.troubles[app.name] = str(error)
            written.events.append((app.name, "trouble", str(error)))

    def _news(self, events: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
        """What every pass meets again is told once: the log is never shortened."""
        news = [event for event in events if event not in self._told]
        self._told = frozenset(events)
        return news

    def _read(self) -> Recorded:
        with self._world.database.read() as session:
            operations = {row.app: row for row in journal.busy(session)}
            scaling = history.scaling_records(session)
            intents = [row.decision.get("intent_id", "") for row in scaling.values()]
            fleet = apps.fleet_state(session)
            return Recorded(
                apps=apps.all_apps(session),
                workers=apps.all_workers(session),
                operations=operations,
                topics=apps.all_topics(session),
                scaling=scaling,
                ended=journal.ended(session, intents),
                fleet=self._definition(fleet),
            )

    def _definition(self, state: FleetState) -> FleetDefinition | None:
        """As it was accepted last, read once."""
        if state.version != self._fleet[0]:
            self._fleet = (state.version, definition_of(state))
        return self._fleet[1]

    def _revisions(self, recorded: Recorded) -> dict[str, dict[str, AppRevision]]:
        keys = {(app.name, app.revision) for app in recorded.apps}
        keys |= {(row.app, row.revision) for rows in recorded.workers.values() for row in rows}
        found: dict[str, dict[str, AppRevision]] = {app.name: {} for app in recorded.apps}
        for (app, revision), value in self._readable(sorted(keys)).items():
            found.setdefault(app, {})[revision] = value
        return found

    def _readable(self, keys: list[tuple[str, str]]) -> dict[tuple[str, str], AppRevision]:
        """A row that this version cannot read, of one app, is left out; the others are not kept waiting for it."""
        try:
            return self._world.revisions.load(keys)
        except TransientError:
            raise
        except Exception:
            found: dict[tuple[str, str], AppRevision] = {}
            for key in keys:
                try:
                    found |= self._world.revisions.load([key])
                except Exception as error:
                    log.warning("revision cannot be read", app=key[0], revision=key[1], error=str(error))
            return found

    def _look(self, recorded: Recorded, revisions: Revisions) -> dict[str, AppSeen]:
        workers: dict[str, list[WorkerState]] = {}
        for state in self._world.runtime.list():
            workers.setdefault(state.app, []).append(state)
        asked = [
            AppToSee(
                app, revisions[app.name][app.revision], workers.get(app.name, ()), recorded.topics.get(app.name, ())
            )
            for app in recorded.apps
        ]
        seen = dict(self._observer.observe(asked))
        for each in asked:
            if each.app.name not in seen:
                blind = {state.slot: WorkerSeen(state) for state in each.workers}
                seen[each.app.name] = AppSeen(at=self._world.clock(), workers=blind)
        return seen

    # drift

    def _correct(
        self,
        leadership: Leadership,
        app: App,
        recorded: Recorded,
        revisions: Revisions,
        seen: AppSeen,
        written: Written,
        starts: int,
    ) -> int:
        rows = recorded.workers.get(app.name, [])
        rows = [row for row in rows if row.revision in revisions[app.name]]
        specs = {
            row.slot: spec_of(self._world, revisions[app.name][row.revision], row.slot, app.epochs) for row in rows
        }
        started = 0
        for correction in corrections(app, rows, seen, specs):
            if correction.what == "start":
                if started >= starts:
                    continue
                started += 1
            with self._apart(app, written):  # one slot that cannot start keeps no other from it
                self._carry_out(leadership, app, correction, seen, specs)
                told = f"{correction.what} slot {correction.slot}: {correction.why}"
                written.events.append((app.name, "drift", told))
        return started

    def _carry_out(
        self, leadership: Leadership, app: App, correction: Correction, seen: AppSeen, specs: Mapping[int, Any]
    ) -> None:
        slot, runtime = correction.slot, self._world.runtime
        self._world.leases.write(leadership, lambda _: None)  # an act of its own: is this still ours to do?
        if correction.what == "start":
            runtime.start(specs[slot], token=leadership.token)
        elif correction.what == "stop":
            runtime.stop(app.name, slot, token=leadership.token)
        elif correction.what == "adopt":
            revision = seen.workers[slot].state.revision
            self._world.revisions.get(app.name, revision)  # NotFoundError: unknown, so it is only told
            self._world.leases.write(leadership, lambda s: apps.put_worker(s, app.name, slot, revision))
        else:
            self._world.doors.order(seen.workers[slot].state, correction.what)

    # the restore budget

    def _share_restores(self, recorded: Recorded, revisions: Revisions, seen: Mapping[str, AppSeen]) -> None:
        """Tell workers how fast they may restore. One that does not answer keeps its rate, and is told in the next pass."""
        if recorded.fleet is None:
            return
        for workers in self._restorers(recorded, revisions, seen).values():
            for (app, slot), rate in rates(workers, recorded.fleet.spec.budgets.restore).items():
                try:
                    self._world.doors.order(seen[app].workers[slot].state, "restore-rate", {"bytes_per_second": rate})
                except TransientError as error:
                    log.info("worker was not told its restore rate", app=app, slot=slot, error=str(error))

    def _restorers(
        self, recorded: Recorded, revisions: Revisions, seen: Mapping[str, AppSeen]
    ) -> dict[str, list[Restorer]]:
        """By cluster: what is restored from one is no load on another."""
        assert recorded.fleet is not None
        found: dict[str, list[Restorer]] = {}
        for app in recorded.apps:
            sight = seen[app.name]
            busy = {task.slot for task in (*sight.restoring, *sight.warming) if task.state != "caught_up"}
            priority = priority_of_tier(recorded.fleet, app.tier)
            found.setdefault(app.cluster, []).extend(
                Restorer(app.name, slot, priority, slot in busy, worker.restore_rate)
                for slot, worker in sorted(sight.workers.items())
                if worker.client_state in ("running", "rebalancing")
            )
        return found


def _over_budget(recorded: Recorded, slots: dict[str, int], app: App, operation: Operation) -> str | None:
    """Why the fleet's budget has no room for a scale operation that is to begin; if it has, the slots are its own from here on."""
    if operation.kind != OperationKind.SCALE or operation.state != OperationState.PLANNED or recorded.fleet is None:
        return None
    wanted = int(operation.params["slots"])
    why = over_budget(recorded.fleet.spec.budgets.slots, slots, app.name, wanted)
    if why is None:
        slots[app.name] = max(slots.get(app.name, 0), wanted)
    return why
