"""Rows become views. Called by fleet.py; reads the registry only, so it answers whatever the rest of the world does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from streamfleet_platform import views
from streamfleet_platform.model.operation import OperationKind, OperationState, StepState
from streamfleet_platform.model.phase import Phase
from streamfleet_platform.operations.topics import real_name, real_names
from streamfleet_platform.operations.work import AppRevision, Revisions
from streamfleet_platform.registry import apps, audits, history, journal
from streamfleet_platform.registry.database import Database
from streamfleet_platform.registry.tables import App, InternalTopic, Operation, Step


class Looking:
    def __init__(self, database: Database, revisions: Revisions) -> None:
        self._database = database
        self._revisions = revisions

    def apps(self) -> list[views.AppSummary]:
        with self._database.read() as session:
            rows = apps.all_apps(session)
            busy = {row.app: row for row in journal.busy(session)}
            steps = journal.steps_under_way(session, [row.id for row in busy.values()])
        revisions = self._revisions.load([(row.name, row.revision) for row in rows])
        return [
            views.AppSummary(**_summary(row, revisions[row.name, row.revision], _ref(busy.get(row.name), steps)))
            for row in rows
        ]

    def app(self, name: str) -> views.AppDetail:
        with self._database.read() as session:
            row = apps.get_app(session, name)
            flows = apps.fleet_state(session).flows
            topics = apps.topics_of(session, name)
            scaling = history.scaling_records(session, [name]).get(name)
            busy = {op.app: op for op in journal.busy(session) if op.app == name}
            steps = journal.steps_under_way(session, [op.id for op in busy.values()])
        revision = self._revisions.get(name, row.revision)
        seen = row.observed
        return views.AppDetail(
            **_summary(row, revision, _ref(busy.get(name), steps)),
            upstream=tuple(sorted({up for up, down, _ in flows if down == name})),
            downstream=tuple(sorted({down for up, down, _ in flows if up == name})),
            topology_hash=revision.lock.hash,
            sub_topologies=tuple(_sub_topologies(revision)),
            stores=tuple(_stores(row, revision)),
            topics=tuple(_topics(row, revision, topics, flows)),
            workers=tuple(views.WorkerView.model_validate(worker) for worker in seen.get("workers", ())),
            placement=tuple(views.TaskView.model_validate(task) for task in seen.get("placement", ())),
            drift_details=tuple(seen.get("drift", ())),
            scaling=None if scaling is None else views.ScalingDecision.model_validate(scaling.decision),
            audit_schedule=revision.spec.state.audit.schedule,
            bootstraps=tuple(sorted(revision.spec.state.bootstraps)),
        )

    def operation(self, operation_id: str) -> views.OperationView:
        with self._database.read() as session:
            return operation_view(session, journal.get(session, operation_id))

    def operations(self, app: str | None, limit: int) -> list[views.OperationRef]:
        with self._database.read() as session:
            rows = journal.latest(session, app, limit)
            steps = journal.steps_under_way(session, [row.id for row in rows])
        return [ref for row in rows if (ref := _ref(row, steps)) is not None]

    def phases(self, app: str, limit: int) -> list[views.PhaseChange]:
        with self._database.read() as session:
            apps.get_app(session, app)
            rows = history.phases_of(session, app, limit)
        return [views.PhaseChange(phase=Phase(row.phase), since=row.since, reason=row.reason) for row in rows]

    def observations(self, app: str, limit: int) -> list[views.ObservationPoint]:
        with self._database.read() as session:
            apps.get_app(session, app)
            rows = history.observations_of(session, app, limit)
        return [views.ObservationPoint.model_validate(row.model_dump(exclude={"id", "app"})) for row in rows]

    def events(self, app: str | None, after: int, limit: int) -> list[views.EventView]:
        with self._database.read() as session:
            rows = history.events_after(session, app, after, limit)
        return [views.EventView.model_validate(row.model_dump()) for row in rows]

    def provenance(self, app: str) -> list[tuple[str, str, str]]:
        with self._database.read() as session:
            row = apps.get_app(session, app)
            written = apps.get_revision(session, app, row.revision).provenance
        return [(path, value, place) for path, value, place in written]

    def findings(self, app: str | None, state: str | None) -> list[views.FindingView]:
        with self._database.read() as session:
            rows = audits.findings(session, app, state)
        return [views.FindingView.model_validate(row.model_dump()) for row in rows]


def operation_view(session: Session, row: Operation) -> views.OperationView:
    steps = journal.steps_of(session, row.id)
    running = next((step for step in steps if step.state == StepState.RUNNING), None)
    return views.OperationView(
        id=row.id,
        app=row.app,
        kind=OperationKind(row.kind),
        state=OperationState(row.state),
        step=None if running is None else _told(running),
        reason=row.reason,
        created_at=row.created_at,
        intent_id=row.intent_id,
        actor=row.actor,
        params=row.params,
        started_at=row.started_at,
        ended_at=row.ended_at,
        error=row.error,
        steps=tuple(
            views.StepView(
                name=step.name if step.slot is None else f"{step.name} {step.slot}",
                state=StepState(step.state),
                detail=step.detail,
                started_at=step.started_at,
                ended_at=step.ended_at,
            )
            for step in steps
        ),
        result=row.result,
    )


def _told(step: Step) -> str:
    name = step.name if step.slot is None else f"{step.name} {step.slot}"
    return f"{name}: {step.detail}" if step.detail else name


def _ref(row: Operation | None, steps: Mapping[str, Step]) -> views.OperationRef | None:
    if row is None:
        return None
    step = steps.get(row.id)
    return views.OperationRef(
        id=row.id,
        app=row.app,
        kind=OperationKind(row.kind),
        state=OperationState(row.state),
        step=None if step is None else _told(step),
        reason=row.reason,
        created_at=row.created_at,
    )


def _summary(row: App, revision: AppRevision, operation: views.OperationRef | None) -> dict[str, Any]:
    seen, scale = row.observed, revision.spec.scale
    return {
        "name": row.name,
        "owner": row.owner,
        "tier": row.tier,
        "labels": row.labels,
        "cluster": row.cluster,
        "application_id": row.application_id,
        "generation": row.generation,
        "revision": row.revision,
        "desired": row.desired,
        "phase": row.phase,
        "phase_since": row.phase_since,
        "reason": row.reason,
        "slots": row.slots,
        "slots_ready": seen.get("slots_ready", 0),
        "min_slots": scale.min,
        "max_slots": scale.max,
        "tasks": seen.get("tasks", 0),
        "lag_records": seen.get("lag_records"),
        "records_per_second": seen.get("records_per_second"),
        "max_latency_seconds": scale.slo.max_latency / 1000,
        "restoring_tasks": seen.get("restoring_tasks", 0),
        "warming_tasks": seen.get("warming_tasks", 0),
        "drift": len(seen.get("drift", ())),
        "operation": operation,
        "observed_at": row.observed_at,
    }


def _sub_topologies(revision: AppRevision) -> list[views.SubTopologyView]:
    lock, application_id = revision.lock, revision.spec.application_id
    found = []
    for part in lock.sub_topologies:
        sources = {topic for node in part["nodes"] if node["kind"] == "source" for topic in node["topics"]}
        sinks = {node["topic"] for node in part["nodes"] if node["kind"] == "sink" and "topic" in node}
        found.append(
            views.SubTopologyView(
                id=part["id"],
                content_id=part["content_id"],
                sources=tuple(sorted(real_name(application_id, lock, topic) for topic in sources)),
                sinks=tuple(sorted(real_name(application_id, lock, topic) for topic in sinks)),
                stores=tuple(sorted(part["stores"])),
            )
        )
    return found


def _stores(row: App, revision: AppRevision) -> list[views.StoreView]:
    lock = revision.lock
    sizes = row.observed.get("store_bytes") or {}
    named = real_names(revision, row.epochs)
    found = []
    for name, store in sorted(lock.stores.items()):
        part = lock.part_of_store(name)
        if part is None:
            continue
        changelog = store["changelog"]
        found.append(
            views.StoreView(
                name=name,
                kind=store["kind"],
                changelog=None if changelog is None else named[changelog],
                sub_topology=part["id"],
                epoch=row.epochs.get(name, 0),
                bytes=sizes.get(name),
            )
        )
    return found


def _topics(
    row: App, revision: AppRevision, internal: Sequence[InternalTopic], flows: Sequence[Sequence[str]]
) -> list[views.TopicView]:
    spec, told = revision.spec, {str(t["name"]): t for t in row.observed.get("topics", ())}
    writers = {topic: up for up, down, topic in flows if down == row.name}

    def view(name: str, role: Any, **more: Any) -> views.TopicView:
        seen = told.get(name, {})
        facts = {key: seen.get(key) for key in ("partitions", "end_offsets", "bytes")} | more
        return views.TopicView(name=name, role=role, drift=tuple(seen.get("drift", ())), **facts)

    inputs = sorted(topic for topic in revision.lock.sources() if not topic.startswith("pattern:"))
    found = [view(topic, "input", app=writers.get(topic)) for topic in inputs]
    found += [view(topic, "output") for topic in sorted({output.topic for output in spec.outputs.values()})]
    if spec.errors.dead_letter_topic is not None:
        found.append(view(spec.errors.dead_letter_topic, "dead_letter"))
    found += [view(t.name, t.kind, store=t.store, partitions=t.partitions) for t in internal]
    return found
