"""One app under work: what a step is given. Made by journal.py for every pass.

Whatever changes something outside goes through here, with the leader's fencing token: a server that has lost its lease is refused
by the registry, and by the runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sqlalchemy.orm import Session

from streamfleet_platform.model.app_definition import AppDefinition, AppSpec
from streamfleet_platform.model.fleet_definition import Cluster as ClusterDefinition
from streamfleet_platform.operations.cluster import Cluster
from streamfleet_platform.operations.seen import AppSeen
from streamfleet_platform.registry import apps, history
from streamfleet_platform.registry.database import Database
from streamfleet_platform.registry.lease import Leadership, Leases
from streamfleet_platform.registry.tables import App, Operation, Revision, Step
from streamfleet_platform.runtime.api import Runtime, WorkerSpec, WorkerState
from streamfleet_platform.runtime.specification import worker_spec
from streamfleet_platform.topologies.lock import TopologyLock

T = TypeVar("T")


class Doors(Protocol):
    """Workers' doors, as far as they take orders."""

    def order(self, worker: WorkerState, name: str, details: Mapping[str, Any] | None = None) -> None:
        """TransientError: it does not answer, or cannot obey now."""
        ...

    def client_state(self, worker: WorkerState) -> str | None:
        """The engine's word, asked now; None: it does not answer."""
        ...


@dataclass(frozen=True)
class AppRevision:
    """A Revision row, read."""

    app: str
    id: str
    definition: AppDefinition
    lock: TopologyLock
    code_id: str
    cluster: ClusterDefinition

    @classmethod
    def of(cls, row: Revision) -> AppRevision:
        return cls(
            row.app,
            row.id,
            AppDefinition.model_validate(as_tuples(row.definition)),
            TopologyLock.from_file(row.lock.encode()),
            row.code_id,
            ClusterDefinition.model_validate(as_tuples(row.cluster_settings)),
        )

    @property
    def spec(self) -> AppSpec:
        return self.definition.spec


def as_tuples(value: Any) -> Any:
    """JSON has lists where the strict model wants tuples."""
    if isinstance(value, dict):
        return {key: as_tuples(below) for key, below in value.items()}
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


class Revisions:
    """Revisions, read once each: they never change."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[tuple[str, str], AppRevision] = {}

    def get(self, app: str, revision: str) -> AppRevision:
        return self.load([(app, revision)])[app, revision]

    def load(self, keys: list[tuple[str, str]]) -> dict[tuple[str, str], AppRevision]:
        unknown = [key for key in keys if key not in self._known]
        if unknown:
            with self._database.read() as session:
                rows = apps.revisions_of(session, unknown)
                for key in unknown:
                    row = rows.get(key) or apps.get_revision(session, *key)
                    self._known[key] = AppRevision.of(row)
        return {key: self._known[key] for key in keys}


@dataclass(frozen=True)
class World:
    """Everything outside, behind ports."""

    database: Database
    leases: Leases
    runtime: Runtime
    doors: Doors
    cluster_of: Callable[[ClusterDefinition], Cluster]
    revisions: Revisions
    code: Path
    """The directory that holds the code of revisions."""
    clock: Callable[[], datetime]
    settings: Mapping[str, str] = field(default_factory=dict)
    """The platform's own, for every worker."""
    snapshots: Path | None = None
    """What bootstraps have published, for workers to take over."""


class Work:
    """One step of one operation on one app."""

    def __init__(
        self, world: World, leadership: Leadership, app: App, operation: Operation, step: Step, seen: AppSeen
    ) -> None:
        self.world = world
        self.leadership = leadership
        self.app = app
        self.operation = operation
        self.step = step
        self.seen = seen

    @property
    def token(self) -> int:
        return self.leadership.token

    @property
    def params(self) -> dict[str, Any]:
        return self.operation.params

    @property
    def now(self) -> datetime:
        return self.world.clock()

    @property
    def runtime(self) -> Runtime:
        return self.world.runtime

    @property
    def is_fresh(self) -> bool:
        """Whether what was seen was seen after this step began."""
        return self.step.started_at is not None and self.seen.at > self.step.started_at

    def revision(self, revision: str | None = None) -> AppRevision:
        """None: the one the app is at."""
        return self.world.revisions.get(self.app.name, revision or self.app.revision)

    def target(self) -> AppRevision:
        """What the operation brings, or else what the app is at."""
        return self.revision(self.params.get("revision"))

    @property
    def generation(self) -> int:
        """Of the state that this operation makes, or else of the one there is."""
        return int(self.params.get("generation", self.app.generation))

    def former(self) -> AppRevision:
        """What an upgrade goes back to: what ran well last. Where nothing ever did, on the state there is, what it began with: that
        may be no better, but it has run. So does a stopped app, of which nothing was tried.
        """
        good = None if self.app.desired == "stopped" else self.app.good_revision
        return self.revision(good or str(self.params["from"]))

    def cluster(self) -> Cluster:
        return self.world.cluster_of(self.target().cluster)

    def spec_of(self, slot: int, revision: AppRevision) -> WorkerSpec:
        return spec_of(self.world, revision, slot, self.app.epochs)

    def workers(self) -> dict[int, WorkerState]:
        """Asked now."""
        return {worker.slot: worker for worker in self.runtime.list(self.app.name)}

    def write(self, change: Callable[[Session], T]) -> T:
        """As the leader."""
        return self.world.leases.write(self.leadership, change)

    def change_app(self, **changes: Any) -> None:
        """Values of the app's row, whatever version it has: operations of one app come one after the other."""

        def change(session: Session) -> App:
            row = apps.get_app(session, self.app.name)
            for name, value in changes.items():
                setattr(row, name, value)
            return row

        self.app = self.write(change)

    def tell(self, kind: str, message: str, **data: Any) -> None:
        actor, app = self.operation.actor, self.app.name
        self.write(lambda session: history.add_event(session, self.now, kind, message, actor=actor, app=app, **data))


def spec_of(world: World, revision: AppRevision, slot: int, epochs: Mapping[str, int]) -> WorkerSpec:
    """`epochs` of stores that were bootstrapped."""
    settings = dict(world.settings)
    if epochs:
        settings["store.epochs"] = ",".join(f"{store}:{epoch}" for store, epoch in sorted(epochs.items()))
        settings["state.snapshot.dir"] = str(world.snapshots)
    return worker_spec(
        revision.app,
        revision.spec,
        {revision.spec.cluster: revision.cluster},
        slot=slot,
        revision=revision.id,
        code=world.code / revision.code_id,
        more_settings=settings,
    )
