"""Reset: an app forgets everything it has made of its inputs, and begins again. Only what is recorded is deleted.

    fence ──> drain and stop all slots ──> group empty ──> offsets ──> topics ──> local state ──> bootstraps' files ──> verify
          ──> offsets set ──> topics made ──> unfence ──> start ──> wait until well

While it is fenced nothing starts the app, whoever asks; a reset that was cut short leaves it so. Bootstraps that were under way are
over: what they would publish, or put back, belongs to the state that is deleted. The same steps bring an upgrade out whose state
cannot be carried over, and a raised generation.
"""

from __future__ import annotations

from typing import ClassVar

from streamfleet_platform.errors import ConflictError, TransientError
from streamfleet_platform.model.operation import OperationKind, OperationState
from streamfleet_platform.model.phase import Phase
from streamfleet_platform.operations.bootstrap_runs import delete_bootstrap_files, end_runs
from streamfleet_platform.operations.cluster import StartAt
from streamfleet_platform.operations.gates import remember_revision, started_gate
from streamfleet_platform.operations.slots import drain_slot, known_slots, start_slot, stop_slot
from streamfleet_platform.operations.steps import (
    Act,
    Acts,
    Done,
    OperationType,
    Outcome,
    PlannedStep,
    StepFailedError,
    Waiting,
    per_slot,
)
from streamfleet_platform.operations.topics import (
    check_cluster,
    create_topics,
    delete_topics,
    external_topics,
    recorded_ids,
)
from streamfleet_platform.operations.work import Work
from streamfleet_platform.registry.tables import Operation


def reset_steps(work: Work) -> list[PlannedStep]:
    """Also what an upgrade without its state consists of."""
    there = known_slots(work)
    slots = range(work.app.slots) if work.app.desired != "stopped" else ()
    return [
        PlannedStep("check-cluster"),
        PlannedStep("fence"),
        *per_slot("drain-slot", there),
        *per_slot("stop-slot", there),
        PlannedStep("wait-for-empty-group"),
        PlannedStep("delete-offsets"),
        PlannedStep("delete-topics"),
        *per_slot("delete-state", there),
        PlannedStep("delete-bootstrap-files"),
        PlannedStep("verify-empty"),
        PlannedStep("set-offsets"),
        PlannedStep("create-topics"),
        PlannedStep("unfence"),
        *per_slot("start-slot", slots),
        PlannedStep("wait-until-well"),
        PlannedStep("remember-revision"),
    ]


def fence(work: Work) -> Done:
    holder = work.app.fenced_by
    if holder not in (None, work.operation.id) and not _is_over(work, holder):
        raise StepFailedError(f"the app is held by {holder}", hint="wait for it, or abort it")
    work.change_app(fenced_by=work.operation.id)
    return Done("no worker may start")


def _is_over(work: Work, holder: str | None) -> bool:
    """An operation that failed leaves its app held, for the next one that begins anew: a reset, or the app's end."""
    with work.world.database.read() as session:
        row = session.get(Operation, holder)
        return row is not None and OperationState(row.state).is_over


def fence_from_all(work: Work) -> Outcome:
    """From bootstraps too, whether or not their operation has left the app to a person."""
    done = fence(work)
    ended = end_runs(work)
    return ended if isinstance(ended, Waiting) else done


def unfence(work: Work) -> Done:
    """The new start: generation and revision are those that were asked for. Another revision that ran well did so on state that
    is gone: nothing goes back to it.
    """
    revision = work.target().id
    good = revision if work.app.good_revision == revision else None
    work.change_app(fenced_by=None, generation=work.generation, revision=revision, good_revision=good)
    return Done(f"generation {work.generation}")


def wait_for_empty_group(work: Work) -> Outcome:
    alive = [worker.slot for worker in work.workers().values() if worker.is_alive]
    if alive:
        return Waiting(f"slots {alive} have not ended")
    group = work.cluster().group(work.app.application_id)
    if not group.is_empty:
        return Waiting(f"the group is {group.state}, with {', '.join(group.members) or 'members'}")
    return Done(group.state)


def delete_offsets(work: Work) -> Done:
    """Refused by the broker if somebody has come back: then nothing was deleted yet."""
    try:
        work.cluster().delete_group(work.app.application_id)
    except ConflictError as error:
        raise TransientError(error.fact, hint=error.hint) from error
    return Done("group deleted, with all its offsets")


def delete_state(work: Work) -> Done:
    slot = work.step.slot
    assert slot is not None
    work.runtime.remove_state(work.app.name, slot, token=work.token)
    return Done("local state deleted")


def verify_empty(work: Work) -> Done:
    """All of it again, by looking."""
    cluster = work.cluster()
    group = cluster.group(work.app.application_id)
    if not group.is_empty:
        raise TransientError(f"the group is {group.state} again", hint="who started a worker by hand?")
    left = sorted(cluster.topics(recorded_ids(work)))
    if left:
        raise TransientError(f"topics are still there: {', '.join(left)}")
    for slot in work.workers():
        size = work.runtime.state_bytes(work.app.name, slot)
        if size:
            raise TransientError(f"slot {slot} still has {size} bytes of state")
    work.change_app(epochs={})  # what was bootstrapped is gone with the rest
    return Done("group, topics and local state are gone")


def set_offsets(work: Work) -> Done:
    start_at: StartAt = "latest" if work.params.get("input_topics") == "latest" else "earliest"
    done = work.cluster().set_offsets(work.app.application_id, external_topics(work.target()), start_at)
    return Done(f"{sum(done.values())} input partitions begin at {start_at}")


RESET_ACTS: dict[str, Act] = {
    "check-cluster": check_cluster,
    "fence": fence_from_all,
    "drain-slot": drain_slot,
    "stop-slot": stop_slot,
    "wait-for-empty-group": wait_for_empty_group,
    "delete-offsets": delete_offsets,
    "delete-topics": delete_topics,
    "delete-state": delete_state,
    "delete-bootstrap-files": delete_bootstrap_files,
    "verify-empty": verify_empty,
    "set-offsets": set_offsets,
    "create-topics": create_topics,
    "unfence": unfence,
    "start-slot": start_slot,
    "wait-until-well": started_gate,
    "remember-revision": remember_revision,
}


class Reset(OperationType):
    kind = OperationKind.RESET
    phase = Phase.RESETTING
    acts: ClassVar[Acts] = RESET_ACTS

    def plan(self, work: Work) -> list[PlannedStep]:
        return reset_steps(work)
