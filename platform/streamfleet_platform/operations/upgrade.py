"""Upgrade: an app at another revision. The diff of the two locks decides how (topologies/verdicts.py):

    same workers     nothing a worker sees has changed: the revision is taken over, nobody is restarted
    rolling          one slot at a time, each behind the gate; slots without active stateful tasks first, the group's leader last
    restart          drain and stop all, start all when the group is empty: two versions cannot share its plan, and a member that
                     was only stopped is in it until its session ends
    new state        only where somebody accepted the loss: as a reset
    first start      no worker was ever started: as a deployment

A gate that fails brings back what ran well last, unless the definition says to leave it, or its state is gone. That need not be
what the upgrade began with: an app is at a revision that failed if it was left so. Where nothing ever ran well, what was there
before is brought back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.model.phase import Phase
from streamfleet_platform.operations.gates import remember_revision, started_gate, upgraded_gate
from streamfleet_platform.operations.removal import stopping_steps
from streamfleet_platform.operations.reset import RESET_ACTS, reset_steps
from streamfleet_platform.operations.slots import known_slots, refuse_held, replace_slot, restore_slot, stop_slot
from streamfleet_platform.operations.steps import Acts, Done, OperationType, PlannedStep, StepFailedError, per_slot
from streamfleet_platform.operations.topics import create_topics, restore_settings
from streamfleet_platform.operations.work import AppRevision, Work
from streamfleet_platform.registry import apps, journal
from streamfleet_platform.topologies.graph_changes import TOPIC_SETTINGS
from streamfleet_platform.topologies.lock_diff import diff_locks
from streamfleet_platform.topologies.verdicts import LockDiff, Verdict


def same_workers(work: Work, old: AppRevision, new: AppRevision) -> bool:
    """Whether a worker of the one could not be told from a worker of the other."""
    one, other = work.spec_of(0, old), work.spec_of(0, new)
    return old.code_id == new.code_id and replace(one, revision=other.revision, code=other.code) == other


def _planned(work: Work) -> set[str]:
    with work.world.database.read() as session:
        return {step.name for step in journal.steps_of(session, work.operation.id)}


def _running(work: Work) -> list[AppRevision]:
    """What slots run, or ran last: more than one where an upgrade is, or was left, half-way."""
    with work.world.database.read() as session:
        ids = {row.revision for row in apps.workers_of(session, work.app.name)}
    return [work.revision(each) for each in sorted(ids)]


def _order(work: Work, slots: list[int]) -> list[int]:
    """Who can be missed most comes first."""
    if work.target().spec.rollout.order == "ordinal":
        return slots
    stateful = {part["id"] for part in work.target().lock.sub_topologies if part["stores"]}
    holders = {task.slot for task in work.seen.active if task.sub_topology in stateful}
    leaders = {slot for slot, worker in work.seen.workers.items() if worker.is_leader}
    return sorted(slots, key=lambda slot: (slot in leaders, slot in holders, slot))


def switch(work: Work) -> Done:
    """From now on the app is at the new revision, and a worker that dies comes back with it."""
    work.change_app(revision=work.target().id)
    return Done(work.target().id[:20])


def switch_back(work: Work) -> Done:
    work.change_app(revision=work.former().id)
    return Done(work.app.revision[:20])


class Upgrade(OperationType):
    kind = OperationKind.UPGRADE
    phase = Phase.UPGRADING
    acts: ClassVar[Acts] = {
        **RESET_ACTS,
        "create-topics": create_topics,
        "switch": switch,
        "replace-slot": replace_slot,
        "pass-gate": upgraded_gate,
        "stop-slot": stop_slot,
        "restore-slot": restore_slot,
        "wait-until-back": started_gate,
        "switch-back": switch_back,
        "restore-settings": restore_settings,
        "remember-revision": remember_revision,
    }

    def plan(self, work: Work) -> list[PlannedStep]:
        old, new = work.revision(str(work.params["from"])), work.target()
        there = known_slots(work)
        verdict = self._verdict(work, diff_locks(old.lock, new.lock))
        if verdict >= Verdict.MIGRATE:
            return reset_steps(work)
        refuse_held(work)
        if work.app.desired == "stopped":
            return [PlannedStep("create-topics"), PlannedStep("switch"), PlannedStep("remember-revision")]
        if not there:
            return _first_start(work)
        if all(same_workers(work, each, new) for each in (old, *_running(work))):
            is_good = work.app.good_revision == old.id  # it is no better for settings that no worker sees
            return [PlannedStep("switch"), *[PlannedStep("remember-revision")] * is_good]
        if verdict is Verdict.RESTART:
            return [
                PlannedStep("create-topics"),
                *_stop_all(there),
                PlannedStep("switch"),
                *per_slot("start-slot", there),
                PlannedStep("pass-gate"),
                PlannedStep("remember-revision"),
            ]
        order = _order(work, there)
        rolled = [
            step for slot in order for step in (PlannedStep("replace-slot", slot), PlannedStep("pass-gate", slot))
        ]
        return [PlannedStep("create-topics"), *rolled, PlannedStep("switch"), PlannedStep("remember-revision")]

    def _verdict(self, work: Work, diff: LockDiff) -> Verdict:
        if diff.lost_state and not work.params.get("accept_lost_state"):
            raise StepFailedError(
                f"{diff.verdict.name}: the state of {', '.join(diff.lost_state)} would be lost",
                hint="carry it over by a bootstrap, or accept the loss",
            )
        if diff.verdict >= Verdict.MIGRATE and not work.params.get("accept_lost_state"):
            raise StepFailedError(
                f"the change is {diff.verdict.name}", hint="read the plan, then accept the loss of state"
            )
        return diff.verdict

    def back(self, work: Work, why: str) -> list[PlannedStep] | None:
        return None if work.target().spec.rollout.on_gate_fail == "pause" else self.undo(work)

    def undo(self, work: Work) -> list[PlannedStep] | None:
        # As a reset, or a first start: there is nothing yet to undo, or no way back.
        if "check-cluster" in _planned(work):
            return [] if work.step.name == "check-cluster" else None
        if work.app.desired == "stopped" or work.app.fenced_by is not None:
            return _switching_back(work)
        former, there = work.former(), known_slots(work)
        apart = max(diff_locks(former.lock, other.lock).verdict for other in (*_running(work), work.target()))
        if apart >= Verdict.MIGRATE:
            return None  # it cannot use the state there is
        back = per_slot("restore-slot", there)
        if apart is Verdict.RESTART:  # both versions at once are not possible
            back = [*_stop_all(there), *back]
        return [*_switching_back(work), *back, PlannedStep("wait-until-back")]


def _switching_back(work: Work) -> list[PlannedStep]:
    changed = diff_locks(work.former().lock, work.target().lock).changes
    has_altered = any(change.what == TOPIC_SETTINGS for change in changed)
    return [PlannedStep("switch-back")] + [PlannedStep("restore-settings")] * has_altered


def _stop_all(slots: Sequence[int]) -> list[PlannedStep]:
    return [*stopping_steps(slots), PlannedStep("wait-for-empty-group")]


def _first_start(work: Work) -> list[PlannedStep]:
    """Its deployment came to no worker: this revision may be the cure."""
    return [
        PlannedStep("check-cluster"),
        PlannedStep("create-topics"),
        PlannedStep("switch"),
        *per_slot("start-slot", range(work.app.slots)),
        PlannedStep("wait-until-well"),
        PlannedStep("remember-revision"),
    ]
