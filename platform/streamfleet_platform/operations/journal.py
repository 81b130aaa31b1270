"""Carries operations on, step by step: every step is written down before it acts, and again when it is done.

    planned ──plan()──> steps recorded, running
       for each step:   RUNNING written ──> act ──> DONE written          killed in between: found RUNNING, acted again
                        act says Waiting: the next pass acts again
                        act fails for good: FAILED, and back() says what to do about the rest

Called by the reconciler, once per pass and operation. All writes show the leader's token. `failpoint` is called before and after
every one of these moments; tests end the process there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import structlog
from sqlalchemy.orm import Session

from streamfleet_platform.errors import FleetError, PermanentError, StaleError, TransientError
from streamfleet_platform.model.operation import OperationKind, OperationState, StepState
from streamfleet_platform.operations.seen import AppSeen
from streamfleet_platform.operations.steps import Done, OperationType, Outcome, PlannedStep, Waiting
from streamfleet_platform.operations.work import Work, World
from streamfleet_platform.registry import apps, history
from streamfleet_platform.registry import journal as rows
from streamfleet_platform.registry.lease import Leadership, NotLeaderError
from streamfleet_platform.registry.tables import App, Operation, Step

log = structlog.get_logger(__name__)
T = TypeVar("T")

Failpoint = Callable[[str, str, str], None]
"""Given the kind of operation, the step, and the moment: begin, act, done."""
MOMENTS = ("begin", "act", "done")


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
                run.end()
            elif run.is_called_off and (back := run.way_back(step)) is not None:
                run.roll_back(back, f"called off by {run.operation.params['cancelled_by']}")
            elif not self._carry_out(run, step):
                break
        return run.operation

    def _carry_out(self, run: _Run, step: Step) -> bool:
        """Whether to go on with the next one."""
        kind, name = run.operation.kind, step.name
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
        try:
            steps = self._type.plan(
                self._work(Step(operation=self.operation.id, number=0, name="plan", state="running"))
            )
        except TransientError:
            raise
        except FleetError as error:
            self._finish(OperationState.FAILED, str(error), is_begin=True)
            return
        self._add(steps, 1, OperationState.RUNNING)

    def _add(self, steps: list[PlannedStep], first: int, state: OperationState | None, **changes: Any) -> None:
        now = self._world.clock()

        def change(session: Session) -> Operation:
            rows.add_steps(session, self.operation.id, first, [(step.act, step.slot) for step in steps])
            row = rows.get(session, self.operation.id)
            if state is not None:
                self._tell(session, f"{row.kind} begins", steps=len(steps))
                return rows.move(session, row, state, now, **changes)
            for name, value in changes.items():
                setattr(row, name, value)
            row.version += 1
            return row

        self.operation = self._write(change)

    def next_step(self) -> Step | None:
        with self._world.database.read() as session:
            steps = rows.steps_of(session, self.operation.id)
        return next((s for s in steps if s.state in (StepState.PENDING.value, StepState.RUNNING.value)), None)

    @property
    def is_called_off(self) -> bool:
        """Somebody wants it undone."""
        return "cancelled_by" in self.operation.params and not self.operation.is_rolling_back

    def way_back(self, step: Step) -> list[PlannedStep] | None:
        return self._type.back(self._work(step), "called off")

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
                row.version += 1
            return row

        self.operation = self._write(change)

    def fail(self, step: Step, error: Exception) -> None:
        why = str(error) if isinstance(error, FleetError) else f"{type(error).__name__}: {error}"
        self._save(step, state=StepState.FAILED.value, detail=why, ended_at=self._world.clock())
        back = None if self.operation.is_rolling_back else self._type.back(self._work(step), why)
        if back is None:
            self._finish(OperationState.FAILED, why)
        else:
            self.roll_back(back, why)

    def roll_back(self, back: list[PlannedStep], why: str) -> None:
        with self._world.database.read() as session:
            last = len(rows.steps_of(session, self.operation.id))
        self._skip_pending(why)
        self._add(back, last + 1, None, is_rolling_back=True, error=why)

    def end(self) -> None:
        if self.operation.is_rolling_back:
            self._finish(OperationState.ROLLED_BACK, self.operation.error)
        else:
            self._finish(OperationState.SUCCEEDED, None)

    def _finish(self, state: OperationState, error: str | None, *, is_begin: bool = False) -> None:
        now = self._world.clock()

        def change(session: Session) -> Operation:
            row = rows.get(session, self.operation.id)
            if is_begin:
                row = rows.move(session, row, OperationState.RUNNING, now)
            for step in rows.steps_of(session, row.id):
                if step.state == StepState.PENDING:
                    step.state = StepState.SKIPPED.value
            said = f"{row.kind} {state.value.replace('_', ' ')}" + (f": {error}" if error else "")
            self._tell(session, said, error=error)
            return rows.move(session, row, state, now, error=error)

        self.operation = self._write(change)

    def _skip_pending(self, why: str) -> None:
        def change(session: Session) -> None:
            for step in rows.steps_of(session, self.operation.id):
                if step.state in (StepState.PENDING, StepState.RUNNING):
                    step.state, step.detail = StepState.SKIPPED.value, why

        self._write(change)

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
