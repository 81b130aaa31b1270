"""What one app's new definition and lock mean, compared with what it is at. Pure; called by planner.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from streamfleet_platform.definitions.fleet import App as DeclaredApp
from streamfleet_platform.model.app_definition import AppSpec
from streamfleet_platform.model.fleet_definition import Cluster, FleetSpec
from streamfleet_platform.operations.work import AppRevision
from streamfleet_platform.reconcile.input_counts import Resized
from streamfleet_platform.reconcile.measured import upgrade_facts
from streamfleet_platform.registry.tables import App, Revision
from streamfleet_platform.runtime.api import WorkerSpec
from streamfleet_platform.runtime.specification import worker_spec
from streamfleet_platform.topologies.build_settings import build_settings
from streamfleet_platform.topologies.lock import TopologyLock
from streamfleet_platform.topologies.lock_diff import diff_locks
from streamfleet_platform.topologies.partition_changes import INPUT_RESIZED
from streamfleet_platform.topologies.plan_cost import UpgradeFacts, plan_cost
from streamfleet_platform.topologies.verdicts import LockDiff, Verdict
from streamfleet_platform.views import AppChange

Action = Literal["create", "update", "upgrade", "reset", "none", "absent"]


@dataclass(frozen=True)
class Known:
    """What the registry has of an app."""

    app: App
    revision: Revision
    restart_seconds: float | None = None
    """As it took last; None: no operation has started a worker that is remembered."""

    @cached_property
    def lock(self) -> TopologyLock:
        return TopologyLock.from_file(self.revision.lock.encode())

    def has_same_code(self, code_id: str, app: DeclaredApp, settings: Mapping[str, Any]) -> bool:
        """Whether compiling would give what it gave before. `settings` are those that the topology is built with."""
        old: Any = self.revision.definition["spec"]
        before = build_settings(old.get("run", {}).get("config", {}), self.revision.cluster_settings.get("config", {}))
        return (
            self.revision.code_id == code_id
            and old["code"]["entrypoint"] == app.spec.code.entrypoint
            and old.get("topology", {}).get("requireNames", True) == app.spec.topology.require_names
            and before == settings
        )


def unchanged(app: DeclaredApp, known: Known | None = None, resized: Resized | None = None) -> AppChange:
    """Of an app that is declared as it is: nothing is to be done, but the world around it may have changed."""
    diff = LockDiff(()) if known is None else _diff(known.lock, known.lock, resized)
    is_stuck = diff.verdict is Verdict.INCOMPATIBLE
    return AppChange(
        app=app.name,
        owner=app.definition.metadata.owner,
        action="none",
        verdict=diff.verdict.name if is_stuck else Verdict.UNCHANGED.name,
        changes=tuple(map(str, diff.changes)) if is_stuck else (),
        lost_state=diff.lost_state,
        blocked=_stuck(diff),
    )


def change_of(
    app: DeclaredApp,
    lock: TopologyLock,
    known: Known | None,
    downstream: frozenset[str],
    fleet: FleetSpec,
    *,
    is_same_code: bool,
    resized: Resized | None = None,
) -> AppChange:
    application_id, owner = app.spec.application_id, app.definition.metadata.owner
    if known is None:
        created = tuple(f"{application_id}-{topic}" for topic in sorted(lock.internal_topics))
        return AppChange(
            app=app.name,
            owner=owner,
            action="create",
            topics_created=created,
            downstream=tuple(sorted(downstream)),
        )
    diff = _diff(known.lock, lock, resized)
    action = _action(app, known, diff, is_same_code=is_same_code)
    moved = _settings_changed(known, app)
    weight = _weight(known, app, fleet, diff, action, is_same_code=is_same_code)
    facts = _facts(known, app, fleet, downstream)
    lost = tuple(sorted(lock.stores)) if action == "reset" else diff.lost_state
    refused = _refused(app, known) or (None if action == "reset" else _stuck(diff))
    loss = None if action == "reset" else _loss(diff)
    return AppChange(
        app=app.name,
        owner=owner,
        action=action,
        verdict=diff.verdict.name,
        changes=(*map(str, diff.changes), *moved),
        cost=() if weight is Verdict.UNCHANGED else tuple(plan_cost(diff, weight, facts).lines()),
        lost_state=lost,
        topics_created=tuple(f"{application_id}-{topic}" for topic in diff.topics_created),
        topics_orphaned=tuple(f"{application_id}-{topic}" for topic in diff.topics_orphaned),
        downstream=tuple(sorted(downstream)),
        blocked=refused or loss,
        can_accept=refused is None and loss is not None,
    )


def _diff(old: TopologyLock, new: TopologyLock, resized: Resized | None) -> LockDiff:
    if resized is None:
        return diff_locks(old, new)
    return diff_locks(old, new, old_partitions=resized.before, new_partitions=resized.after)


def _stuck(diff: LockDiff) -> str | None:
    """Internal topics do not grow with an input: no upgrade helps, only new ones."""
    topics = [
        change.subject
        for change in diff.changes
        if change.what == INPUT_RESIZED and change.verdict is Verdict.INCOMPATIBLE
    ]
    if not topics:
        return None
    return f"INCOMPATIBLE: {', '.join(topics)} was resized, its keys belong to other tasks; reset the app, or raise its generation"


def _action(app: DeclaredApp, known: Known, diff: LockDiff, *, is_same_code: bool) -> Action:
    if app.spec.generation > known.app.generation:
        return "reset"
    return "upgrade" if diff.changes or not is_same_code else "update"


def _settings_changed(known: Known, app: DeclaredApp) -> tuple[str, ...]:
    before = {path: value for path, value, _ in known.revision.provenance}
    after = {".".join(value.path): str(value.value) for value in app.values()}
    return tuple(
        f"{path}: {before.get(path, 'not set')} -> {after.get(path, 'not set')}"
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    )


def _refused(app: DeclaredApp, known: Known) -> str | None:
    """What no acceptance helps against."""
    row, spec = known.app, app.spec
    if row.desired == "retired":
        return "the app is being retired; cancel that first"
    if spec.application_id != row.application_id:
        return f"applicationId {row.application_id} names its state; retire the app, and declare another one"
    if spec.cluster != row.cluster:
        return f"its state is on cluster {row.cluster}; retire the app, and declare another one"
    if spec.generation < row.generation:
        return f"generation {spec.generation} is below {row.generation}: state does not come back; raise it"
    return None


def _loss(diff: LockDiff) -> str | None:
    if diff.verdict < Verdict.MIGRATE and not diff.lost_state:
        return None
    lost = ", ".join(diff.lost_state) or "its stores"
    return (
        f"{diff.verdict.name}: the state of {lost} would be lost; raise the generation, or accept the loss: "
        "it is built anew from the inputs then, or by a bootstrap"
    )


def _weight(
    known: Known, app: DeclaredApp, fleet: FleetSpec, diff: LockDiff, action: Action, *, is_same_code: bool
) -> Verdict:
    """What has to be done to bring it out: whatever a worker sees of a change, it sees by being restarted."""
    if action == "reset":
        return Verdict.MIGRATE
    old = AppRevision.of(known.revision)
    before, after = (
        _as_a_worker_sees(app.name, old.spec, old.cluster),
        _as_a_worker_sees(app.name, app.spec, fleet.clusters[app.spec.cluster]),
    )
    return max(diff.verdict, Verdict.UNCHANGED if is_same_code and before == after else Verdict.ROLLING)


def _as_a_worker_sees(app: str, spec: AppSpec, cluster: Cluster) -> WorkerSpec:
    return worker_spec(app, spec, {spec.cluster: cluster}, slot=0, revision="", code=Path())


def _facts(known: Known, app: DeclaredApp, fleet: FleetSpec, downstream: frozenset[str]) -> UpgradeFacts:
    return upgrade_facts(
        known.app,
        known.lock,
        known.restart_seconds,
        restore_limit=fleet.budgets.restore.bytes_per_second,
        static_members=app.spec.run.config.get("group.protocol") != "streams",
        downstream=downstream,
    )
