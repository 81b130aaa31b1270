"""Carries operations on, step by step: every step is written down before it acts, and again when it is done.

    planned ──plan()──> steps recorded, running
       for each step:   RUNNING written ──> act ──> DONE written          killed in between: found RUNNING, acted again
                        act says Waiting: the next pass acts again
                        act fails for good: FAILED, with the steps that back() says about the rest, in one transaction
       called off:      the steps that undo() says, if it can still be undone

Called by the reconciler, once per pass and operation. All writes show the leader's token. `failpoint` is called before and after
every one of these moments; tests end the process there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

import structlog
from sqlalchemy.orm import Session

from streamfleet_platform.errors import FleetError, PermanentError, StaleError, TransientError
from streamfleet_platform.model.operation import OperationKind, OperationState, StepState
from streamfleet_platform.operations.seen import AppSeen
from streamfleet_platform.operations.steps import Done, Final, OperationType, Outcome, PlannedStep, Waiting
from streamfleet_platform.operations.work import Work, World
from streamfleet_platform.registry import apps, history
from streamfleet_platform.registry import journal as rows
from streamfleet_platform.registry.lease import Leadership, NotLeaderError
from streamfleet_platform.registry.tables import App, Operation, Step

log = structlog.get_logger(__name__)
T = TypeVar("T")

Failpoint = Callable[[str, str, str], None]
"""Given the kind of operation, the step with its slot (`start-slot 1`), and the moment, in the order of MOMENTS."""
MOMENTS = ("begin", "act", "done")
"""Before a step is written down, before it acts, and before it is written down that it has. The end of an operation is a step
called `end`, that only begins.
"""


def no_failpoint(_kind: str, _step: str, _moment: str) -> None:
    """Nothing fails."""


class Journal:
    """`types` are the operations there are."""

    def __init__(
        self, world: World, types: Mapping[OperationKind, OperationType], failpoint: Failpoint = no_failpoint
    ) -> None:
        self._world = world
        self._types = types
        self._failpoint = failpoint

    def advance(self, leadership: Leadership, operation: Operation, app: App, seen: AppSeen) -> Operation:
        """As far as it goes now."""
        run = _Run(self._world, leadership, self._types[OperationKind(operation.kind)], operation, app, seen)
        if operation.state == OperationState.ASKING:
            return operation
        if operation.state == OperationState.PLANNED:
            run.begin()
        while not OperationState(run.operation.state).is_over:
            step = run.next_step()
            if step is None:
                self._failpoint(run.operation.kind, "end", "begin")
                run.end()
            elif run.is_called_off:
                run.call_off(step)
            elif not self._carry_out(run, step):
                break
        return run.operation

    def _carry_out(self, run: _Run, step: Step) -> bool:
        """Whether to go on with the next one."""
        kind, name = run.operation.kind, step.name if step.slot is None else f"{step.name} {step.slot}"
        self._failpoint(kind, name, "begin")
        step = run.mark_running(step)
        self._failpoint(kind, name, "act")
        try:
            outcome: Outcome = run.act(step)
        except (NotLeaderError, StaleError):
            raise  # we lead no longer: nothing more is written
        except TransientError as error:
            outcome = Waiting(str(error))
        except Exception as error:
            if not isinstance(error, PermanentError):
                log.exception("step raised", operation=run.operation.id, step=name)
            self._failpoint(kind, name, "done")
            run.fail(step, error)
            return True
        self._failpoint(kind, name, "done")
        run.mark(step, outcome)
        return isinstance(outcome, Done)


class _Run:
    def __init__(
        self,
        world: World,
        leadership: Leadership,
        kind: OperationType,
        operation: Operation,
        app: App,
        seen: AppSeen,
    ) -> None:
        self._world = world
        self._leadership = leadership
        self._type = kind
        self._seen = seen
        self.operation = operation
        self._app = app

    def begin(self) -> None:
        """Plan and record the steps. An operation that cannot be planned has failed."""
        now = self._world.clock()
        try:
            steps = self._type.plan(
                self._work(Step(operation=self.operation.id, number=0, name="plan", state="running"))
            )
        except TransientError:
            raise
        except FleetError as error:
            why = str(error)
            self.operation = self._write(lambda session: self._refused(session, why, now))
            return

        def change(session: Session) -> Operation:
            row = rows.get(session, self.operation.id)
            rows.add_steps(session, row.id, 1, [(step.act, step.slot) for step in steps])
            self._tell(session, f"{row.kind} begins", steps=len(steps))
            return rows.move(session, row, OperationState.RUNNING, now)

        self.operation = self._write(change)

    def _refused(self, session: Session, why: str, now: datetime) -> Operation:
        row = rows.move(session, rows.get(session, self.operation.id), OperationState.RUNNING, now)
        return self._over(session, row, OperationState.FAILED, why)

    def next_step(self) -> Step | None:
        with self._world.database.read() as session:
            steps = rows.steps_of(session, self.operation.id)
        return next((s for s in steps if s.state in (StepState.PENDING.value, StepState.RUNNING.value)), None)

    @property
    def is_called_off(self) -> bool:
        """Somebody wants it undone."""
        return "cancelled_by" in self.operation.params and not self.operation.is_rolling_back

    def call_off(self, step: Step) -> None:
        by = str(self.operation.params["cancelled_by"])
        back = self._type.undo(self._work(step))

        def change(session: Session) -> Operation:
            if back is not None:
                return self._turned_back(session, back, f"called off by {by}")
            row = rows.get(session, self.operation.id)
            row.params = {name: value for name, value in row.params.items() if name != "cancelled_by"}
            self._tell(session, f"{row.kind} cannot be undone any more", step=step.name)
            return row

        self.operation = self._write(change)

    def mark_running(self, step: Step) -> Step:
        """Before it acts."""
        if step.state == StepState.RUNNING:
            return step
        return self._save(step, state=StepState.RUNNING.value, started_at=self._world.clock())

    def act(self, step: Step) -> Outcome:
        work = self._work(step)
        outcome = self._type.acts[step.name](work)
        self._app = work.app
        return outcome

    def mark(self, step: Step, outcome: Outcome) -> None:
        """After it acted."""
        if isinstance(outcome, Waiting):
            memory = step.memory if outcome.memory is None else dict(outcome.memory)
            if (outcome.reason, memory) != (step.detail, step.memory):
                self._save(step, detail=outcome.reason, memory=memory)
            return
        now = self._world.clock()

        def change(session: Session) -> Operation:
            _set(session, step, state=StepState.DONE.value, detail=outcome.detail, ended_at=now)
            row = rows.get(session, self.operation.id)
            if outcome.result:
                row.result = {**row.result, **outcome.result}
            if not isinstance(outcome, Final):
                return row
            outcome.write(session)
            session.flush()
            return self._over(session, row, self._good_end, row.error)

        self.operation = self._write(change)

    def fail(self, step: Step, error: Exception) -> None:
        """With what becomes of the rest, in one transaction: a step that has failed is never passed over."""
        why = str(error) if isinstance(error, FleetError) else f"{type(error).__name__}: {error}"
        back = None if self.operation.is_rolling_back else self._type.back(self._work(step), why)
        now = self._world.clock()

        def change(session: Session) -> Operation:
            _set(session, step, state=StepState.FAILED.value, detail=why, ended_at=now)
            if back is not None:
                return self._turned_back(session, back, why)
            return self._over(session, rows.get(session, self.operation.id), OperationState.FAILED, why)

        self.operation = self._write(change)

    def _turned_back(self, session: Session, back: list[PlannedStep], why: str) -> Operation:
        """From here on it undoes what it has done."""
        steps = rows.steps_of(session, self.operation.id)
        for step in steps:
            if step.state in (StepState.PENDING, StepState.RUNNING):
                step.state, step.detail = StepState.SKIPPED.value, why
        rows.add_steps(session, self.operation.id, len(steps) + 1, [(step.act, step.slot) for step in back])
        row = rows.get(session, self.operation.id)
        row.is_rolling_back, row.error = True, why
        self._tell(session, f"{row.kind} is undone: {why}", steps=len(back))
        return row

    def end(self) -> None:
        def change(session: Session) -> Operation:
            row = rows.get(session, self.operation.id)
            return self._over(session, row, self._good_end, row.error)

        self.operation = self._write(change)

    @property
    def _good_end(self) -> OperationState:
        return OperationState.ROLLED_BACK if self.operation.is_rolling_back else OperationState.SUCCEEDED

    def _over(self, session: Session, row: Operation, state: OperationState, error: str | None) -> Operation:
        for step in rows.steps_of(session, row.id):
            if step.state == StepState.PENDING:
                step.state = StepState.SKIPPED.value
        said = f"{row.kind} {state.value.replace('_', ' ')}" + (f": {error}" if error else "")
        self._tell(session, said, error=error)
        return rows.move(session, row, state, self._world.clock(), error=error)

    def _tell(self, session: Session, message: str, **data: Any) -> None:
        operation = self.operation
        history.add_event(
            session,
            self._world.clock(),
            "operation",
            message,
            actor=operation.actor,
            app=operation.app,
            operation=operation.id,
            **data,
        )

    def _save(self, step: Step, **changes: Any) -> Step:
        return self._write(lambda session: _set(session, step, **changes))

    def _write(self, change: Callable[[Session], T]) -> T:
        return self._world.leases.write(self._leadership, change)

    def _work(self, step: Step) -> Work:
        with self._world.database.read() as session:
            self._app = apps.get_app(session, self._app.name)
        return Work(self._world, self._leadership, self._app, self.operation, step, self._seen)


def _set(session: Session, step: Step, **changes: Any) -> Step:
    row = session.get(Step, (step.operation, step.number))
    assert row is not None
    for name, value in changes.items():
        setattr(row, name, value)
    return row
