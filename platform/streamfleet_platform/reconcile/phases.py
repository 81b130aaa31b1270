"""One word for what an app is doing, and why in a sentence. Pure; called by reconciler.py with what was recorded and what was seen.

The first rule that applies wins; what people did (stopped, paused, held) comes before what is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamfleet_platform.model.phase import Phase
from streamfleet_platform.operations.seen import AppSeen
from streamfleet_platform.registry.tables import App, Operation
from streamfleet_platform.runtime.api import WorkerPhase


@dataclass(frozen=True)
class Situation:
    """What a phase is derived from."""

    app: App
    seen: AppSeen
    wanted_slots: Sequence[int]
    """Slots that have a row."""
    operation: Operation | None
    operation_phase: Phase | None
    step: str | None
    failed: str | None
    """Why the last operation left the app to a person."""
    ailments: tuple[str, ...] = ()
    """What health.py says."""


def phase_of(now: Situation) -> tuple[Phase, str]:
    for rule in (_held, _operated, _commanded, _crashed, _waiting, _workers, _tasks, _health):
        found = rule(now)
        if found is not None:
            return found
    return Phase.RUNNING, ""


Found = tuple[Phase, str] | None


def _held(now: Situation) -> Found:
    fence = now.app.fenced_by
    if fence is None or (now.operation is not None and fence == now.operation.id and now.operation_phase is not None):
        return None
    return Phase.FENCED, f"held by {fence}"


def _operated(now: Situation) -> Found:
    if now.operation is None:
        return None
    if now.operation.started_at is None:
        return (Phase.PENDING, "its operation has not begun") if now.app.phase == Phase.PENDING else None
    if now.operation_phase is None:
        return None
    return now.operation_phase, f"{now.operation.kind}: {now.step or 'begins'}"


def _commanded(now: Situation) -> Found:
    if now.app.desired in ("stopped", "retired"):
        alive = [slot for slot, worker in now.seen.workers.items() if worker.state.is_alive]
        if alive:
            return Phase.STOPPING, f"{len(alive)} workers have not ended"
        return Phase.STOPPED, "as wanted" if now.app.desired == "stopped" else "retired"
    if now.failed is not None and not now.wanted_slots:
        return Phase.FAILED, now.failed
    return None


def _crashed(now: Situation) -> Found:
    for slot, worker in sorted(now.seen.workers.items()):
        if worker.state.phase is WorkerPhase.CRASH_LOOP:
            return Phase.CRASH_LOOP, f"slot {slot}: {worker.state.reason or 'ends again and again'}"
    return None


def _waiting(now: Situation) -> Found:
    if now.seen.cluster_problem is not None:
        return Phase.WAITING, now.seen.cluster_problem
    if now.seen.missing:
        return Phase.WAITING, f"input topics are missing: {', '.join(now.seen.missing)}"
    return None


def _workers(now: Situation) -> Found:
    if not now.wanted_slots:
        return Phase.STARTING, "no worker was started yet"
    up = [slot for slot in now.wanted_slots if slot in now.seen.workers and now.seen.workers[slot].client_state]
    if not up:
        return Phase.STARTING, f"{len(now.wanted_slots)} workers start"
    down = sorted(set(now.wanted_slots) - set(up))
    if down:
        was_up = now.app.phase not in (Phase.PENDING, Phase.STARTING, Phase.STOPPED)
        worker = now.seen.workers.get(down[0])
        why = f"slot {down[0]} is {worker.state.phase.value if worker is not None else 'away'}"
        return (
            Phase.DEGRADED if was_up else Phase.STARTING
        ), f"{why}; {len(up)} of {len(now.wanted_slots)} workers are there"
    return None


def _tasks(now: Situation) -> Found:
    seen = now.seen
    if now.app.quarantine is not None:
        return Phase.QUARANTINED, f"{now.app.quarantine}; start it again when that is solved"
    if any(worker.is_paused for worker in seen.workers.values()) or now.app.desired == "paused":
        return Phase.PAUSED, "as wanted" if now.app.desired == "paused" else "paused at its door"
    if now.ailments and seen.restoring:  # one that lasts too long is no longer only that
        return _health(now)
    if seen.restoring:
        left = sum(task.restore_remaining or 0 for task in seen.restoring)
        return Phase.RESTORING, f"{len(seen.restoring)} tasks restore, {left} records to go"
    unready = [slot for slot, worker in seen.workers.items() if slot in now.wanted_slots and not worker.is_ready]
    if unready:
        state = seen.workers[min(unready)].client_state
        return Phase.REBALANCING, f"slot {min(unready)} is {state}"
    if seen.warming:
        return Phase.WARMING, f"{len(seen.warming)} warm-ups catch up"
    return None


def _health(now: Situation) -> Found:
    if not now.ailments:
        return None
    more = f"; and {len(now.ailments) - 1} more" if len(now.ailments) > 1 else ""
    return Phase.DEGRADED, f"{now.ailments[0]}{more}"
