"""Waiting for an app to be well: the gate of a deployment and of every worker that an upgrade replaces.

A gate is passed when it held for as long as the definition says, on sights that are younger than the step; it fails when its time
is over, or as soon as a worker is in a crash loop.
"""

from __future__ import annotations

from datetime import datetime

from streamfleet_platform.model.app_policies import Gate
from streamfleet_platform.model.quantities import duration_text
from streamfleet_platform.operations.slots import crashed, start_lost
from streamfleet_platform.operations.steps import Done, Outcome, StepFailedError, Waiting
from streamfleet_platform.operations.work import Work
from streamfleet_platform.registry import apps


def started_gate(work: Work) -> Outcome:
    """All slots are up and every task has an owner. What lies before an app that begins is no fault of its."""
    return _gate(work, work.target().spec.rollout.gate, watch_lag=False, hold_ms=0)


def upgraded_gate(work: Work) -> Outcome:
    gate = work.target().spec.rollout.gate
    return _gate(work, gate, watch_lag=True, hold_ms=gate.for_)


def _gate(work: Work, gate: Gate, *, watch_lag: bool, hold_ms: int) -> Outcome:
    if work.app.desired == "stopped":
        return Done("nothing has to run")
    if (why := crashed(work)) is not None:
        raise StepFailedError(why, hint="look at its log")
    start_lost(work)
    if not work.is_fresh:
        return Waiting("looking")
    lacking = what_lacks(work)
    lag = work.seen.lag_records
    if lacking is None and watch_lag and (lag is None or lag > gate.lag_below):
        lacking = "lag is not known" if lag is None else f"{lag} records of lag, more than {gate.lag_below}"
    now = work.now
    if lacking is None:
        since = datetime.fromisoformat(work.step.memory["well_since"]) if "well_since" in work.step.memory else now
        held_ms = (now - since).total_seconds() * 1000
        if held_ms >= hold_ms:
            return Done(f"well for {duration_text(held_ms)}" if hold_ms else "well")
        told = f"well; it has to stay so for {duration_text(hold_ms)}"
        return Waiting(told, {"well_since": since.isoformat()})
    assert work.step.started_at is not None
    if (now - work.step.started_at).total_seconds() * 1000 > gate.restored_within + hold_ms:
        raise StepFailedError(f"not well within {duration_text(gate.restored_within)}: {lacking}")
    return Waiting(lacking, {})


def remember_revision(work: Work) -> Done:
    """It ran well: what to go back to. A stopped app has not shown that yet."""
    revision = work.target()
    good = work.app.good_revision if work.app.desired == "stopped" else revision.id
    work.change_app(revision=revision.id, good_revision=good)
    return Done(revision.id[:20])


def what_lacks(work: Work) -> str | None:
    """Why the app is not well; None: all its slots are up, at what they should run, and nothing restores."""
    seen = work.seen
    with work.world.database.read() as session:
        wanted = {row.slot: row.revision for row in apps.workers_of(session, work.app.name)}
    for slot, revision in wanted.items():
        worker = seen.workers.get(slot)
        if worker is None or not worker.is_up:
            state = "away" if worker is None else worker.client_state or worker.state.phase.value
            return f"slot {slot} is {state}"
        expected = work.revision(revision).lock.hash
        if worker.topology_hash != expected:
            return f"slot {slot} runs topology {worker.topology_hash}, not {expected}"
    if seen.restoring:
        return f"{len(seen.restoring)} tasks restore"
    return None
