"""Differences between what should be and what is, in five places: runtime, topics, group, state on disk, topology of each worker.
Found and told in every pass; what the runtime can put right is put right while no operation is under way.

Nothing healthy is ever ended for being unknown: a worker that the registry does not know (it was restored from an older copy) is
taken over if it runs a known revision, and otherwise only told. State that nobody knows is only told, too, and never deleted here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from streamfleet_platform.model.quantities import bytes_text
from streamfleet_platform.operations.seen import AppSeen, WorkerSeen
from streamfleet_platform.operations.work import AppRevision
from streamfleet_platform.registry.tables import App, InternalTopic, Worker
from streamfleet_platform.runtime.api import WorkerPhase, WorkerSpec


@dataclass(frozen=True)
class Correction:
    """One thing to do about a slot."""

    what: str
    """start, stop, adopt, pause, resume."""
    slot: int
    why: str


def differences(
    app: App,
    rows: Sequence[Worker],
    seen: AppSeen,
    revisions: Mapping[str, AppRevision],
    topics: Sequence[InternalTopic],
) -> tuple[str, ...]:
    """In sentences, for people and checks."""
    told = [*_worker_drift(app, rows, seen, revisions), *_state_drift(rows, seen, revisions), *seen.drift]
    told += [f"topic {row.name} is no longer used by the app" for row in topics if row.is_orphan]
    return tuple(told)


def _worker_drift(
    app: App, rows: Sequence[Worker], seen: AppSeen, revisions: Mapping[str, AppRevision]
) -> Iterator[str]:
    known = {row.slot: row for row in rows}
    wants_workers = app.desired in ("running", "paused") and app.fenced_by is None
    for slot, row in known.items():
        worker = seen.workers.get(slot)
        if wants_workers and (worker is None or worker.state.phase in (WorkerPhase.STOPPED, WorkerPhase.LOST)):
            yield f"slot {slot} has no worker"
        elif worker is not None and not wants_workers and worker.state.is_alive:
            yield f"slot {slot} runs, and should not"
        if worker is None:
            continue
        if worker.state.is_alive and worker.state.revision != row.revision:
            yield f"slot {slot} runs revision {worker.state.revision[:12]}, not {row.revision[:12]}"
        expected = revisions[row.revision].lock.hash if row.revision in revisions else None
        if worker.topology_hash is not None and expected is not None and worker.topology_hash != expected:
            yield f"slot {slot} runs topology {worker.topology_hash}, not {expected}"
    for slot, worker in seen.workers.items():
        if slot not in known and worker.state.is_alive:
            yield f"slot {slot} runs and is not recorded"


def _state_drift(rows: Sequence[Worker], seen: AppSeen, revisions: Mapping[str, AppRevision]) -> Iterator[str]:
    """State on slots that the app does not have, and of sub-topologies that it does not have. A worker that runs deletes by itself
    what is none of its tasks' (state.cleanup.delay.ms), so that only state beside which none runs stays for ever.
    """
    recorded = {row.slot for row in rows}
    known = {str(part["content_id"]) for revision in revisions.values() for part in revision.lock.sub_topologies}
    for slot, tasks in sorted(seen.state.items()):
        worker = seen.workers.get(slot)
        if worker is None or worker.state.is_alive:
            continue
        left = {
            task: size for task, size in tasks.items() if slot not in recorded or task.rpartition("_")[0] not in known
        }
        if left:
            why = "which no version of the app has" if slot in recorded else "and is no slot of the app"
            yield f"slot {slot} has {bytes_text(sum(left.values()))} of state of {', '.join(sorted(left))}, {why}"


def corrections(
    app: App, rows: Sequence[Worker], seen: AppSeen, specs: Mapping[int, WorkerSpec]
) -> Iterator[Correction]:
    """What the leader does about it. `specs` is what each recorded slot should run."""
    known = {row.slot for row in rows}
    if app.fenced_by is not None or app.desired in ("stopped", "retired"):
        for slot, worker in seen.workers.items():
            if worker.state.is_alive and worker.state.phase is not WorkerPhase.STOPPING:
                yield Correction("stop", slot, f"the app is {'held' if app.fenced_by else app.desired}")
        return
    for slot in sorted(known):
        yield from _of_slot(slot, seen.workers.get(slot), specs[slot])
    for slot, worker in sorted(seen.workers.items()):
        if slot not in known and worker.state.is_alive:
            yield Correction("adopt", slot, f"it runs revision {worker.state.revision[:12]} and is not recorded")
    yield from _pausing(app, seen)


def _of_slot(slot: int, worker: WorkerSeen | None, spec: WorkerSpec) -> Iterator[Correction]:
    if worker is None or worker.state.phase in (WorkerPhase.STOPPED, WorkerPhase.LOST):
        yield Correction("start", slot, "no worker runs" if worker is None else f"it is {worker.state.phase.value}")
    elif worker.state.digest != spec.digest and worker.state.phase is not WorkerPhase.STOPPING:
        yield Correction("stop", slot, "it runs something else than it should")


def _pausing(app: App, seen: AppSeen) -> Iterator[Correction]:
    for slot, worker in sorted(seen.workers.items()):
        if worker.client_state not in ("running", "rebalancing"):
            continue
        if (app.desired == "paused" or app.quarantine is not None) and not worker.is_paused:
            yield Correction("pause", slot, app.quarantine or "the app is to be paused")
        elif app.desired == "running" and app.quarantine is None and worker.is_paused:
            yield Correction("resume", slot, "the app is to run")
