"""Bootstrap: a store begins with state that was computed from data at rest. The app is stopped, and held as long as it lasts.

    fence ──> nobody in the group ──> computed ──> staged ──> changelog written ──> verified     told by the job, who is elsewhere
          ──> publish ──> (if asked for) start ──> wait until well ──> note what was adopted ──> delete what was computed

The steps in the middle wait for what the job reports (server/bootstrapping.py); a job that died is begun again by whoever drives
it, and goes on. Publishing is one transaction: the store's epoch, the run's state and the fence change together. A job that was
aborted has put the group's offsets back; the operation then lets go of the app, and nothing has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy.orm import Session

from streamfleet_platform.errors import TransientError
from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.operations.bootstrap_adoption import move_run, note_adopted
from streamfleet_platform.operations.bootstrap_runs import changelog_of, delete_dead_files, fence_attempts
from streamfleet_platform.operations.gates import started_gate
from streamfleet_platform.operations.reset import fence, wait_for_empty_group
from streamfleet_platform.operations.slots import start_slot
from streamfleet_platform.operations.start_stop import want_running
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
from streamfleet_platform.operations.work import Work
from streamfleet_platform.registry import apps, audits
from streamfleet_platform.registry.tables import App, BootstrapRun, InternalTopic

ABORTING = "aborting"
"""Its job puts offsets back: nothing is published any more."""
REPORTED = ("fenced", "computed", "staged", "changelog_written", "verified")
"""What a job says, in that order; the first is where it begins."""
ENDED = ("published", "adopted", "aborted")


def changelog_row(app: App, spec: Mapping[str, Any], now: datetime) -> InternalTopic:
    """Written before the job makes the topic: one without a row is never ours. Nothing uses it until it is published."""
    return InternalTopic(
        application_id=app.application_id,
        name=changelog_of(spec),
        app=app.name,
        generation=app.generation,
        kind="changelog",
        store=spec["store"]["name"],
        partitions=spec["store"]["partitions"],
        configs=spec["store"]["changelog_configs"],
        is_orphan=True,
        recorded_at=now,
    )


def _run_of(work: Work) -> BootstrapRun:
    with work.world.database.read() as session:
        return audits.get_bootstrap(session, work.app.name, str(work.params["run"]))


def _reported(state: str) -> Act:
    def wait(work: Work) -> Outcome:
        run = _run_of(work)
        if run.state == "aborted":
            raise StepFailedError("it was aborted")
        if run.state == ABORTING:
            return Waiting(f"attempt {run.token} aborts it")
        if run.state in ENDED or REPORTED.index(run.state) >= REPORTED.index(state):
            return Done(_told(run.detail.get(state, {})))
        return Waiting(
            f"attempt {run.token} is {run.state}; if its job has ended, `streamfleet bootstrap {run.app} {run.name}` goes on"
        )

    return wait


def _told(detail: Mapping[str, Any]) -> str:
    records, seconds = detail.get("records"), detail.get("seconds")
    parts = [f"{records:,} records" if records is not None else "", f"{seconds:.1f} s" if seconds is not None else ""]
    return ", ".join(part for part in parts if part)


def publish(work: Work) -> Outcome:
    """From now on the app has the new epoch, and is free again."""
    run = _run_of(work)
    if run.state in ("published", "adopted"):
        return Done(f"epoch {run.epoch}")
    if run.state != "verified":
        return _reported("verified")(work)
    cluster, name = work.cluster(), changelog_of(run.spec)
    group = cluster.group(work.app.application_id)
    if not group.is_empty:
        raise TransientError(f"the group is {group.state}", hint="who started a worker by hand?")
    facts = cluster.topics([name]).get(name)
    proven = run.detail.get("verified", {}).get("changelog_topic_id")
    if facts is None or facts.topic_id != proven:
        raise StepFailedError(
            f"topic {name} is not the one that was verified", hint="abort the bootstrap, and begin anew"
        )
    if not fence_attempts(run):
        return Waiting("another attempt begins")
    work.app = work.write(lambda session: _published(session, work, run, facts.topic_id))
    return Done(f"epoch {run.epoch}", {"epoch": run.epoch, "store": run.spec["store"]["name"]})


def _published(session: Session, work: Work, run: BootstrapRun, topic_id: str) -> App:
    app, name, store = apps.get_app(session, work.app.name), changelog_of(run.spec), run.spec["store"]["name"]
    if audits.get_bootstrap(session, app.name, run.id).state != "verified":
        raise TransientError("it was aborted meanwhile")
    for row in apps.topics_of(session, app.name):
        if row.store == store:
            row.is_orphan = row.name != name
        if row.name == name:
            row.topic_id = topic_id
    app.epochs = {**app.epochs, store: run.epoch}
    app.fenced_by = None
    move_run(session, work, run, "published")
    return app


def let_go(work: Work) -> Done:
    """Aborted: the app is as it was."""
    run = _run_of(work)
    if run.state not in ENDED:
        work.write(lambda session: move_run(session, work, run, "aborted", told=str(work.operation.error)))
    if work.app.fenced_by == work.operation.id:
        work.change_app(fenced_by=None)
    return Done("the app is free again")


class Bootstrap(OperationType):
    kind = OperationKind.BOOTSTRAP
    acts: ClassVar[Acts] = {
        "fence": fence,
        "wait-for-empty-group": wait_for_empty_group,
        "wait-for-computed": _reported("computed"),
        "wait-for-staged": _reported("staged"),
        "wait-for-changelog": _reported("changelog_written"),
        "wait-for-verified": _reported("verified"),
        "publish": publish,
        "want-running": want_running,
        "start-slot": start_slot,
        "wait-until-well": started_gate,
        "note-adopted": note_adopted,
        "let-go": let_go,
        "delete-dead-files": delete_dead_files,
    }

    def plan(self, work: Work) -> list[PlannedStep]:
        before = ["fence", "wait-for-empty-group"]
        job = ["wait-for-computed", "wait-for-staged", "wait-for-changelog", "wait-for-verified"]
        steps = [PlannedStep(name) for name in (*before, *job, "publish")]
        if work.params.get("start"):
            slots = per_slot("start-slot", range(work.app.slots))
            after = [PlannedStep(name) for name in ("wait-until-well", "note-adopted", "delete-dead-files")]
            steps += [PlannedStep("want-running"), *slots, *after]
        return steps

    def back(self, work: Work, why: str) -> list[PlannedStep] | None:
        """Once it was aborted, or while the job cannot have set anything. Otherwise it is left to a person, who may abort."""
        is_early = work.step.name in ("fence", "wait-for-empty-group")
        if not is_early and _run_of(work).state != "aborted":
            return None
        return [PlannedStep("let-go"), PlannedStep("delete-dead-files")]
