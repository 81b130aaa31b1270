"""Every table of the registry. Changed together with a migration (migrations/versions/), never alone.

A Versioned row is written by compare-and-set, whoever changes whatever of it: who looked at an older one has to look again
(database.py). Times are UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect, Index, Text, TypeDecorator
from sqlalchemy.orm import declared_attr
from sqlmodel import Column, Field, SQLModel


class UtcDateTime(TypeDecorator[datetime]):
    """Aware times in, aware times out, on databases that forget the zone too."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _time() -> Any:
    return Field(sa_type=UtcDateTime)


def _time_or_none() -> Any:
    return Field(default=None, sa_type=UtcDateTime, nullable=True)


def _json() -> Any:
    return Field(default_factory=dict, sa_column=Column(JSON, nullable=False))


def _text() -> Any:
    return Field(default="", sa_column=Column(Text, nullable=False))


class Versioned(SQLModel):
    """A row that the mapper writes only as long as its version is the one that was read, and gives the next one."""

    version: int = 0
    """0: not written yet."""

    @declared_attr.directive
    def __mapper_args__(cls) -> dict[str, Any]:  # noqa: N805  (given the class)
        table: Any = cls.__table__  # type: ignore[attr-defined]  # SQLModel's, of a table
        return {"version_id_col": table.c.version}


class App(Versioned, table=True):
    """An app, as it was accepted, and what was seen of it last."""

    __tablename__ = "app"

    name: str = Field(primary_key=True)
    owner: str
    tier: str | None = None
    labels: dict[str, str] = _json()
    cluster: str
    application_id: str = Field(unique=True)
    generation: int
    """Of the state that exists; the definition's may be higher, and then waits for a reset."""
    revision: str
    """What its workers should run."""
    good_revision: str | None = None
    """What ran well last, on the state that exists: what a failed upgrade goes back to."""
    wanted_generation: int
    """What Git says. Higher than `generation`: a reset waits for a sensor or a person."""
    wanted_revision: str
    """What that reset brings."""
    desired: str
    slots: int
    phase: str
    phase_since: datetime = _time()
    reason: str = _text()
    epochs: dict[str, int] = _json()
    """By store: the epoch that a bootstrap has published. Stores that are not here have none."""
    fenced_by: str | None = None
    """The operation or bootstrap that holds the app stopped; nothing is started meanwhile."""
    quarantine: str | None = Field(default=None, sa_column=Column(Text))
    """Why it is kept paused until a person acts: its error budget was spent."""
    retired_until: datetime | None = _time_or_none()
    """The end of a retired app's undo window."""
    observed_at: datetime | None = _time_or_none()
    observed: dict[str, Any] = _json()
    """Numbers of its summary, and drift."""


class Revision(SQLModel, table=True):
    """One app's definition, code and lock at one state of the source. Written once."""

    __tablename__ = "revision"

    app: str = Field(primary_key=True)
    id: str = Field(primary_key=True)
    code_id: str
    """Names the directory of its code."""
    definition_hash: str
    topology_hash: str
    definition: dict[str, Any] = _json()
    """As by its JSON form, with what tier and fleet gave."""
    lock: str = _text()
    """As the lock file."""
    picture: str = _text()
    """The topology as SVG."""
    provenance: list[Any] = Field(default_factory=list, sa_column=Column(JSON, nullable=False))
    cluster_settings: dict[str, Any] = _json()
    """Of the cluster it names, at that time."""
    created_at: datetime = _time()


class FleetState(Versioned, table=True):
    """The fleet's own definition, as it was accepted last: one row."""

    __tablename__ = "fleet_state"

    id: int = Field(default=1, primary_key=True)
    revision: str | None = None
    definition: dict[str, Any] = _json()
    flows: list[Any] = Field(default_factory=list, sa_column=Column(JSON, nullable=False))
    """Lineage: [upstream, downstream, topic]."""
    problems: list[Any] = Field(default_factory=list, sa_column=Column(JSON, nullable=False))
    """Of a newer state that is invalid."""
    followed: dict[str, Any] = _json()
    """The commit that the followed branch was at last, and what was done about it (server/following.py)."""


class Operation(Versioned, table=True):
    """One act on one app."""

    __tablename__ = "operation"
    __table_args__ = (Index("operation_app", "app", "created_at"),)

    id: str = Field(primary_key=True)
    app: str
    kind: str
    state: str
    busy_app: str | None = Field(default=None, unique=True)
    """The app's name while the operation is not over: what makes a second one impossible."""
    intent_id: str = Field(unique=True)
    actor: str
    params: dict[str, Any] = _json()
    result: dict[str, Any] = _json()
    reason: str = _text()
    error: str | None = Field(default=None, sa_column=Column(Text))
    is_rolling_back: bool = False
    created_at: datetime = _time()
    started_at: datetime | None = _time_or_none()
    ended_at: datetime | None = _time_or_none()


class Step(SQLModel, table=True):
    """One step of an operation, in order."""

    __tablename__ = "step"

    operation: str = Field(primary_key=True)
    number: int = Field(primary_key=True)
    name: str
    slot: int | None = None
    """What it is about, of a step that is there once per slot."""
    state: str
    detail: str = _text()
    memory: dict[str, Any] = _json()
    """What it has to know when it is continued by another server."""
    started_at: datetime | None = _time_or_none()
    ended_at: datetime | None = _time_or_none()


class Worker(SQLModel, table=True):
    """A slot that should have a worker, and the last that was seen of it."""

    __tablename__ = "worker"

    app: str = Field(primary_key=True)
    slot: int = Field(primary_key=True)
    revision: str
    """What it should run."""
    state: str = "starting"
    reason: str | None = Field(default=None, sa_column=Column(Text))
    seen: dict[str, Any] = _json()


class InternalTopic(SQLModel, table=True):
    """A topic the platform made for an app's own use. Only what is here, with its id, is ever deleted."""

    __tablename__ = "internal_topic"

    application_id: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    app: str = Field(index=True)
    generation: int
    topic_id: str | None = None
    """Kafka's; None until the creation was confirmed."""
    kind: str
    store: str | None = None
    partitions: int
    configs: dict[str, str] = _json()
    is_orphan: bool = False
    """No revision uses it any more."""
    recorded_at: datetime = _time()


class Observation(SQLModel, table=True):
    """One moment of an app, for plots. Old ones are deleted."""

    __tablename__ = "observation"
    __table_args__ = (Index("observation_app", "app", "at"),)

    id: int | None = Field(default=None, primary_key=True)
    app: str
    at: datetime = _time()
    lag_records: int | None = None
    records_per_second: float | None = None
    slots_ready: int = 0
    restoring_tasks: int = 0
    warming_tasks: int = 0


class PhaseChange(SQLModel, table=True):
    """When an app got into a phase, and why."""

    __tablename__ = "phase_change"
    __table_args__ = (Index("phase_change_app", "app", "id"),)

    id: int | None = Field(default=None, primary_key=True)
    app: str
    phase: str
    since: datetime = _time()
    reason: str = _text()


class ScalingRecord(SQLModel, table=True):
    """The last scaling decision of an app, and what was recommended within its delay."""

    __tablename__ = "scaling_record"

    app: str = Field(primary_key=True)
    decision: dict[str, Any] = _json()
    recommended: list[Any] = Field(default_factory=list, sa_column=Column(JSON, nullable=False))
    """[time, slots], oldest first; only where it changed."""
    attempts: dict[str, Any] = _json()
    """What became of earlier decisions (scaling/attempts.py)."""


class AuditRun(SQLModel, table=True):
    """One audit, as reported."""

    __tablename__ = "audit_run"

    app: str = Field(primary_key=True)
    id: str = Field(primary_key=True)
    engine: str
    started_at: datetime = _time()
    ended_at: datetime = _time()
    verdict: str
    findings: int
    summary: dict[str, Any] = _json()
    report_html: str | None = Field(default=None, sa_column=Column(Text))


class AuditPartition(SQLModel, table=True):
    """What an audit measured of one partition."""

    __tablename__ = "audit_partition"

    app: str = Field(primary_key=True)
    run: str = Field(primary_key=True)
    number: int = Field(primary_key=True)
    measured: dict[str, Any] = _json()


class Finding(SQLModel, table=True):
    """Something wrong, from when an audit first saw it until one no longer does."""

    __tablename__ = "finding"
    __table_args__ = (Index("finding_app", "app", "state"),)

    id: int | None = Field(default=None, primary_key=True)
    app: str
    identity: str
    """Rule, topic, store, partition and setting: the same thing found again."""
    topic: str | None = None
    store: str | None = None
    partition: int | None = None
    rule: str
    severity: str
    summary: str = _text()
    advice: str = _text()
    evidence: dict[str, Any] = _json()
    state: str = "open"
    run: str
    first_seen: datetime = _time()
    last_seen: datetime = _time()


class BootstrapRun(Versioned, table=True):
    """One bootstrap. The token of the newest run of an app is the only one that may move."""

    __tablename__ = "bootstrap_run"

    id: str = Field(primary_key=True)
    app: str = Field(index=True)
    name: str
    state: str
    token: int
    epoch: int
    intent_id: str = Field(unique=True)
    operation: str | None = None
    spec: dict[str, Any] = _json()
    detail: dict[str, Any] = _json()
    created_at: datetime = _time()
    updated_at: datetime = _time()


class Event(SQLModel, table=True):
    """One entry of the log. Only ever added: triggers refuse the rest."""

    __tablename__ = "event"
    __table_args__ = (Index("event_app", "app", "id"),)

    id: int | None = Field(default=None, primary_key=True)
    at: datetime = _time()
    app: str | None = None
    kind: str
    message: str = _text()
    actor: str
    data: dict[str, Any] = _json()


class Intent(SQLModel, table=True):
    """An intent that was answered, with the answer: the same intent again gets it again."""

    __tablename__ = "intent"

    id: str = Field(primary_key=True)
    asked: str
    """What was asked, as a hash: another question under the same id is a mistake."""
    answer: str = _text()
    at: datetime = _time()


class Lease(SQLModel, table=True):
    """Who may act, and until when: one row."""

    __tablename__ = "lease"

    name: str = Field(primary_key=True)
    holder: str
    token: int
    expires_at: datetime = _time()
