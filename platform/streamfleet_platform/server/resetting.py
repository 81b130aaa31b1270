"""Previews of resets, and resets that Git asks for. Called by changing.py and fleet.py.

A preview's id says what would be deleted: topics with their ids, slots, generation, revision. It does not change with every record
that is processed, and does with everything a person would want to be asked about again. A person who asks gets committed offsets of
now; sensors ask every few seconds for as long as a reset waits, and get those of the last minute.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from sqlalchemy.orm import Session

from streamfleet_platform import views
from streamfleet_platform.errors import FleetError, StaleError
from streamfleet_platform.model.app_policies import ResetProtection
from streamfleet_platform.model.fleet_definition import Cluster as ClusterDefinition
from streamfleet_platform.model.operation import OperationKind, OperationState
from streamfleet_platform.model.quantities import bytes_text
from streamfleet_platform.operations.cluster import Cluster
from streamfleet_platform.operations.topics import external_topics
from streamfleet_platform.operations.work import Revisions
from streamfleet_platform.reconcile.decisions import reset_intent
from streamfleet_platform.registry import apps, journal
from streamfleet_platform.registry.database import Database
from streamfleet_platform.registry.tables import App, InternalTopic

log = structlog.get_logger(__name__)

OFFSETS_MAX_AGE = timedelta(minutes=1)
"""In what is told to sensors."""


@dataclass(frozen=True)
class _Offsets:
    """Records behind what an app has committed, by topic; none where the cluster did not say."""

    generation: int
    revision: str
    at: datetime
    records: dict[str, int]

    def are_of(self, app: App) -> bool:
        return (self.generation, self.revision) == (app.generation, app.revision)


class Resetting:
    def __init__(
        self,
        database: Database,
        revisions: Revisions,
        cluster_of: Callable[[ClusterDefinition], Cluster],
        clock: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._revisions = revisions
        self._cluster_of = cluster_of
        self._clock = clock
        self._offsets: dict[str, _Offsets] = {}
        """By app: as they were asked for last."""

    def preview(self, name: str, *, offsets_max_age: timedelta = timedelta(0)) -> views.ResetPreview:
        with self._database.read() as session:
            app = apps.get_app(session, name)
            topics = list(apps.topics_of(session, name))
            slots = len(apps.workers_of(session, name))
            flows = apps.fleet_state(session).flows
        revision = self._revisions.get(name, app.revision)
        offsets = self._committed(app, offsets_max_age)
        downstream = tuple(sorted(_reached(name, flows)))
        stores = tuple(sorted(revision.lock.stores))
        size = _state_bytes(app, stores)
        lines = [
            *(f"input topic {topic}: {count} records will be processed again" for topic, count in offsets.items()),
            *(f"internal topic {row.name}: deleted" for row in topics),
            f"local state of {slots} slots{_as_text(size)}: deleted, with stores {', '.join(stores) or 'none'}",
            f"output topics are not touched; apps that will see records again: {', '.join(downstream) or 'none'}",
        ]
        return views.ResetPreview(
            id=_preview_id(app, topics, slots),
            app=name,
            offsets=offsets,
            topics=tuple(row.name for row in topics),
            bytes=size,
            stores=stores,
            state_directories=slots,
            downstream=downstream,
            lines=tuple(lines),
        )

    def _committed(self, app: App, max_age: timedelta) -> dict[str, int]:
        known, now = self._offsets.get(app.name), self._clock()
        if known is not None and known.are_of(app) and now - known.at < max_age:
            return known.records
        revision = self._revisions.get(app.name, app.revision)
        records: dict[str, int] = {}
        try:
            records = self._cluster_of(revision.cluster).committed(app.application_id, external_topics(revision))
        except FleetError as error:  # a preview without numbers is better than none
            log.warning("committed offsets are not known", app=app.name, error=str(error))
        self._offsets[app.name] = _Offsets(app.generation, app.revision, now, records)
        return records

    def checked(
        self, session: Session, app: App, params: dict[str, Any], intent_id: str
    ) -> tuple[OperationState, dict[str, Any]]:
        """Whether a reset may begin, and what it needs to know. One from Git asks a person unless its definition allows it."""
        shown = params.get("preview")
        topics, slots = list(apps.topics_of(session, app.name)), len(apps.workers_of(session, app.name))
        if shown is not None and shown != _preview_id(app, topics, slots):
            raise StaleError("the preview is of another state of the app", hint="look at a new one, then decide")
        protect = self._protection(app)
        full: dict[str, Any] = {"input_topics": params.get("input_topics", "earliest")}
        is_from_git = intent_id == reset_intent(app)
        if app.wanted_generation > app.generation:
            full |= {"generation": app.wanted_generation, "revision": app.wanted_revision}
        asks = protect.approvals > 0 or (is_from_git and protect.from_git == "ask")
        if asks:
            full["approvals"] = max(1, protect.approvals)
        return (OperationState.ASKING if asks else OperationState.PLANNED), full

    def _protection(self, app: App) -> ResetProtection:
        """Of the definition that the reset would bring."""
        revision = app.wanted_revision if app.wanted_generation > app.generation else app.revision
        return self._revisions.get(app.name, revision).spec.protect.reset

    def decisions(self) -> list[views.ResetDecision]:
        """Generations that were raised in Git."""
        with self._database.read() as session:
            waiting = [row for row in apps.all_apps(session) if row.wanted_generation > row.generation]
            asked = {row.name: journal.by_intent(session, reset_intent(row)) for row in waiting}
        found = []
        for row in waiting:
            operation = asked[row.name]
            found.append(
                views.ResetDecision(
                    app=row.name,
                    intent_id=reset_intent(row),
                    from_generation=row.generation,
                    to_generation=row.wanted_generation,
                    allowed=self._protection(row).from_git == "allow",
                    operation=None
                    if operation is None
                    else views.OperationRef(
                        id=operation.id,
                        app=operation.app,
                        kind=OperationKind(operation.kind),
                        state=OperationState(operation.state),
                        reason=operation.reason,
                        created_at=operation.created_at,
                    ),
                    preview=self.preview(row.name, offsets_max_age=OFFSETS_MAX_AGE),
                )
            )
        return found


def _state_bytes(app: App, stores: Sequence[str]) -> int | None:
    """On the disks of all slots, as it was seen last; None: it was not yet."""
    seen: dict[str, int] = app.observed.get("store_bytes") or {}
    return None if stores and not seen else sum(seen.values())


def _as_text(size: int | None) -> str:
    return ", of a size that is not known," if size is None else f" ({bytes_text(size)})"


def _preview_id(app: App, topics: list[InternalTopic], slots: int) -> str:
    what = [app.name, app.generation, app.wanted_generation, app.revision, slots]
    told = json.dumps([what, sorted((row.name, row.topic_id) for row in topics)])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _reached(app: str, flows: list[Any]) -> set[str]:
    reached: set[str] = set()
    waiting = [app]
    while waiting:
        current = waiting.pop()
        for up, down, _ in flows:
            if up == current and down not in reached:
                reached.add(down)
                waiting.append(down)
    return reached
