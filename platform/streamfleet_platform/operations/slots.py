"""Steps about one slot's worker: start it, have it leave its group, stop it, put another revision into it, forget it.

A slot that should have a worker has a row (registry), written before its worker is started and removed before it is forgotten: what
should be is known whatever becomes of the server in between.
"""

from __future__ import annotations

from streamfleet_platform.errors import ConflictError, TransientError
from streamfleet_platform.operations.steps import Done, Outcome, StepFailedError, Waiting
from streamfleet_platform.operations.work import AppRevision, Work
from streamfleet_platform.registry import apps
from streamfleet_platform.runtime.api import WorkerPhase, WorkerState

DRAIN_SECONDS = 30.0
"""How long a worker may take to leave its group before it is stopped all the same."""
DRAINED = ("not_running", "error", "pending_error")


def start_slot(work: Work) -> Outcome:
    """With the operation's revision."""
    return _started(work, work.target())


def refuse_held(work: Work) -> None:
    """For plans of what starts workers: an app that is half reset, or that a bootstrap holds, must not run."""
    if work.app.fenced_by is not None:
        raise StepFailedError(
            f"the app is held by {work.app.fenced_by}",
            hint="wait for it, or abort it; a reset that failed is done again",
        )


def _started(work: Work, revision: AppRevision) -> Outcome:
    refuse_held(work)  # whatever was planned, and whoever undoes what
    slot = _slot(work)
    spec = work.spec_of(slot, revision)
    former = work.workers().get(slot)
    if former is not None and former.digest != spec.digest and former.is_alive:
        return _stopped(work, former)
    if former is not None and former.has_given_up:
        work.runtime.stop(work.app.name, slot, token=work.token)  # whatever it ran before: this is a new attempt
        return Waiting(f"slot {slot} is cleared after a crash loop")
    work.write(lambda session: apps.put_worker(session, work.app.name, slot, revision.id))
    try:
        state = work.runtime.start(spec, token=work.token)
    except ConflictError as error:
        raise TransientError(error.fact, hint=error.hint) from error
    return Done(f"pid {state.pid}" if state.pid else "")


def start_lost(work: Work) -> None:
    """Those that should run and whose machine was restarted: while an operation is under way, nobody else looks after them."""
    if work.app.desired not in ("running", "paused") or work.app.fenced_by is not None:
        return
    with work.world.database.read() as session:
        rows = apps.workers_of(session, work.app.name)
    there = work.workers()
    for row in rows:
        if row.slot in there and there[row.slot].phase is WorkerPhase.LOST:
            work.runtime.start(work.spec_of(row.slot, work.revision(row.revision)), token=work.token)


def replace_slot(work: Work) -> Outcome:
    """Stop what runs there, without leaving the group: the slot's tasks wait for it. Then start the new revision."""
    return _started(work, work.target())


def restore_slot(work: Work) -> Outcome:
    """With what is gone back to."""
    return _started(work, work.former())


def drain_slot(work: Work) -> Outcome:
    """Commit, close, leave the group for good, so that others take over at once. One that cannot is stopped by the next step."""
    slot = _slot(work)
    worker = work.workers().get(slot)
    if worker is None or worker.phase is not WorkerPhase.RUNNING:
        return Done("no worker runs")
    state = work.world.doors.client_state(worker)
    if state in DRAINED:
        return Done(f"left the group, {state}")
    began = work.step.started_at
    if began is not None and (work.now - began).total_seconds() > DRAIN_SECONDS:
        return Done(f"still {state or 'silent'} after {DRAIN_SECONDS:.0f} s; it is stopped as it is")
    if state != "pending_shutdown":
        try:
            work.world.doors.order(worker, "drain")
        except TransientError as error:
            return Waiting(f"slot {slot} cannot drain yet: {error.fact}")
    return Waiting(f"slot {slot} drains")


def stop_slot(work: Work) -> Outcome:
    slot = _slot(work)
    worker = work.workers().get(slot)
    if worker is None:
        return Done("no worker was there")
    return _stopped(work, worker) if worker.is_alive or worker.phase is WorkerPhase.LOST else Done("stopped")


def _stopped(work: Work, worker: WorkerState) -> Outcome:
    if worker.phase is not WorkerPhase.STOPPING:
        worker = work.runtime.stop(worker.app, worker.slot, token=work.token)
    if worker.is_alive:
        return Waiting(f"slot {worker.slot} is stopping")
    return Waiting(f"slot {worker.slot} has stopped")  # looked at once more, from the start


def remove_slot(work: Work) -> Outcome:
    """It is stopped: forget it, with its state. Others have its tasks."""
    slot = _slot(work)
    outcome = stop_slot(work)
    if isinstance(outcome, Waiting):
        return outcome
    work.write(lambda session: apps.drop_worker(session, work.app.name, slot))
    if slot in work.workers():
        work.runtime.forget(work.app.name, slot, token=work.token)
    return Done("forgotten")


def known_slots(work: Work) -> list[int]:
    """Slots that have a row or a worker: what was started by a server that forgot it is among them."""
    with work.world.database.read() as session:
        rows = {worker.slot for worker in apps.workers_of(session, work.app.name)}
    return sorted(rows | work.workers().keys())


def crashed(work: Work) -> str | None:
    """Why some worker will not come up by itself."""
    for worker in work.workers().values():
        if worker.phase is WorkerPhase.CRASH_LOOP:
            return f"slot {worker.slot} crashes again and again: {worker.reason or 'no last words'}"
    return None


def _slot(work: Work) -> int:
    if work.step.slot is None:
        raise StepFailedError(f"step {work.step.name} has no slot")
    return work.step.slot
