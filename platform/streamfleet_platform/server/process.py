"""run_server: registry, runtime, loop and API in one process, until a signal ends it. Called by `streamfleet server`.

    migrate ──> loop (lease, passes) ──> API ── SIGTERM, SIGINT ──> API closed, loop stopped, lease released

Workers are not touched by any of it: they go on when the server ends, and are found by the next one.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import uvicorn

from streamfleet_platform.api.app import create_app
from streamfleet_platform.api.token_file import TokenFile
from streamfleet_platform.definitions.source import Source
from streamfleet_platform.errors import TransientError
from streamfleet_platform.model.fleet_definition import Cluster as ClusterDefinition
from streamfleet_platform.operations.catalogue import OPERATIONS
from streamfleet_platform.operations.cluster import Cluster
from streamfleet_platform.operations.journal import Failpoint, Journal, no_failpoint
from streamfleet_platform.operations.kafka_cluster import KafkaCluster
from streamfleet_platform.operations.work import Doors, Revisions, World
from streamfleet_platform.reconcile.cluster_watch import ClusterWatch
from streamfleet_platform.reconcile.door_observer import DoorObserver
from streamfleet_platform.reconcile.doors import HttpDoors
from streamfleet_platform.reconcile.input_counts import CountingInputs
from streamfleet_platform.reconcile.observing import Observer
from streamfleet_platform.reconcile.planner import Planner
from streamfleet_platform.reconcile.reconciler import Reconciler
from streamfleet_platform.reconcile.state_watch import StateWatch
from streamfleet_platform.registry.database import Database
from streamfleet_platform.registry.lease import Leases
from streamfleet_platform.registry.migrations import migrate
from streamfleet_platform.runtime.api import Runtime
from streamfleet_platform.runtime.local import LocalRuntime, LocalSettings
from streamfleet_platform.runtime.secrets import SecretSource
from streamfleet_platform.runtime.specification import REFERENCE
from streamfleet_platform.server.failpoints import failpoint_of
from streamfleet_platform.server.fleet import Fleet
from streamfleet_platform.server.following import Following
from streamfleet_platform.server.logs import configure_logs, known_secrets
from streamfleet_platform.server.loop import Loop
from streamfleet_platform.server.secret_variables import SecretVariables
from streamfleet_platform.server.settings import ServerSettings, make_data_directory

STREAMS_END_SECONDS = 2
"""How long calls under way may take to end when the server stops. Streams of events never end by themselves."""

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Outside:
    """What a server is put together with; tests give simulated ones."""

    runtime: Runtime
    doors: Doors
    observer: Observer
    cluster_of: Callable[[ClusterDefinition], Cluster]


def registry_of(settings: ServerSettings) -> Database:
    """As this version wants it. Close it."""
    make_data_directory(settings.data)
    database = Database(settings.registry_url)
    migrate(database)
    return database


class Server:
    """All parts of one server, not yet serving. Close it."""

    def __init__(
        self,
        settings: ServerSettings,
        outside: Outside,
        *,
        clock: Clock = utc_now,
        failpoint: Failpoint = no_failpoint,
        holder: str | None = None,
        **planner: Any,
    ) -> None:
        self.database = registry_of(settings)
        leases = Leases(self.database, clock, settings.lease_seconds, outside.runtime.newest_token)
        self.world = World(
            database=self.database,
            leases=leases,
            runtime=outside.runtime,
            doors=outside.doors,
            cluster_of=outside.cluster_of,
            revisions=Revisions(self.database),
            code=settings.code,
            clock=clock,
            snapshots=settings.snapshots,
        )
        reconciler = Reconciler(self.world, Journal(self.world, OPERATIONS, failpoint), OPERATIONS, outside.observer)
        self.loop = Loop(
            reconciler,
            leases,
            holder or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}",
            idle_seconds=settings.idle_seconds,
            busy_seconds=settings.busy_seconds,
        )
        source = Source(settings.source, settings.fleet)
        inputs = CountingInputs(self.database, self.world.revisions, outside.cluster_of)
        self.fleet = Fleet(
            self.world,
            Planner(source, self.database, settings.code, clock, inputs, **planner),
            is_leader=lambda: self.loop.is_leader,
            wake=self.loop.wake,
            runs=settings.runs,
            snapshots=settings.snapshots,
            links=settings.links,
            stuck=lambda: self.loop.problem,
            troubles=lambda: [] if self.following.problem is None else [self.following.problem],
        )
        self.following = Following(
            self.database, leases, source, self.fleet, clock, leadership=lambda: self.loop.leadership
        )

    def start(self) -> None:
        self.loop.start()
        self.following.start()

    def close(self) -> None:
        self.following.stop()
        self.loop.stop()
        self.database.close()


def real_outside(settings: ServerSettings, database: Database, clock: Clock = utc_now) -> Outside:
    """Processes of this machine, and Kafka. The registry says which secrets there are."""

    def mask(names: frozenset[str]) -> None:
        configure_logs(known_secrets(os.environ, names, settings.secrets))

    variables = SecretVariables(database, mask)
    variables()  # those of before are masked from the first line on
    secret_source = SecretSource(os.environ, variables, settings.secrets)
    runtime = LocalRuntime(
        LocalSettings(settings.workers, secret_directory=settings.secrets, secret_variables=variables)
    )
    doors = HttpDoors()
    cluster_of = Clusters(secret_source).get
    observer = DoorObserver(doors, clock, ClusterWatch(cluster_of, clock), StateWatch(runtime))
    return Outside(runtime, doors, observer, cluster_of)


class Clusters:
    """One admin client per cluster, made when it is first needed. Any thread."""

    def __init__(self, secret_source: SecretSource) -> None:
        self._secrets = secret_source
        self._known: dict[str, Cluster] = {}
        self._lock = threading.Lock()

    def get(self, cluster: ClusterDefinition) -> Cluster:
        key = cluster.model_dump_json()
        with self._lock:
            if key not in self._known:
                self._known[key] = KafkaCluster(self._settings(cluster))
            return self._known[key]

    def _settings(self, cluster: ClusterDefinition) -> dict[str, Any]:
        settings: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap}
        for name, value in cluster.config.items():
            settings[name] = (
                REFERENCE.sub(lambda m: self._value(m[1], cluster), value) if isinstance(value, str) else value
            )
        return settings

    def _value(self, name: str, cluster: ClusterDefinition) -> str:
        return self._secrets.value(name, cluster.secrets[name])


def run_server(settings: ServerSettings) -> None:
    """Until a signal. Workers are left as they are."""
    signal.signal(signal.SIGTERM, _end)
    configure_logs()
    database = registry_of(settings)
    server = Server(settings, real_outside(settings, database), failpoint=failpoint_of(os.environ))
    app = create_app(server.fleet, TokenFile(settings.token_file), hosts=settings.hosts)
    server.start()
    try:
        uvicorn.run(
            app,
            host=settings.host,
            port=settings.port,
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=STREAMS_END_SECONDS,
        )
    except SystemExit as ended:
        if not ended.code:
            raise
        raise TransientError(
            f"the API cannot be served at {settings.host}:{settings.port}",
            hint="the line above says why; choose another --host or --port",
        ) from ended
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends already
        server.close()
        database.close()


def _end(*_: object) -> None:
    """What serves the API ends by the signal and raises it once more then. With the system's own handler the process would be gone
    before the lease is released, and the next server would wait for it to run out.
    """
    raise SystemExit(0)
