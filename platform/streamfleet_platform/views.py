"""What the API answers and takes, as typed values: the one vocabulary of server, client, CLI, Dagster and console.

Bodies that come in refuse unknown fields. Times are UTC, in RFC 3339. An id of a revision is a commit or `sha256-...`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from streamfleet_platform.model.operation import OperationKind, OperationState, StepState
from streamfleet_platform.model.phase import Phase


class View(BaseModel):
    """An answer."""

    model_config = ConfigDict(frozen=True)


class Request(BaseModel):
    """A body: nothing unknown, nothing converted."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


# --- apps -----------------------------------------------------------------------------------------------------------


class TaskView(View):
    """One task at one place."""

    id: str
    """`0_3`."""
    sub_topology: int
    partition: int
    role: Literal["active", "standby", "warmup"]
    slot: int
    state: str
    """Of an active task: the engine's word (running, restoring, ...). Of a copy: caught_up or catching_up."""
    lag_records: int | None = None
    """Of an active task: input not processed. Of a copy: changelog not read."""
    restore_remaining: int | None = None
    eta_seconds: float | None = None


class WorkerView(View):
    """One slot's worker."""

    slot: int
    state: Literal["starting", "running", "stopping", "stopped", "back_off", "crash_loop", "lost"]
    reason: str | None = None
    pid: int | None = None
    url: str | None = None
    """Its door."""
    revision: str | None = None
    topology_hash: str | None = None
    client_state: str | None = None
    """The engine's word: running, rebalancing, ..."""
    restarts: int = 0
    started_at: datetime | None = None
    is_leader: bool = False
    busy_share: float | None = None


class TopicView(View):
    """A topic of the app."""

    name: str
    role: Literal["input", "output", "repartition", "changelog", "dead_letter"]
    partitions: int | None = None
    store: str | None = None
    """Of a changelog."""
    app: str | None = None
    """Of an input: the app of the fleet that writes it. Of an output: none."""
    end_offsets: int | None = None
    """Sum over partitions."""
    bytes: int | None = None
    drift: tuple[str, ...] = ()
    """What differs from what was recorded."""


class SubTopologyView(View):
    """One part of the topology."""

    id: int
    content_id: str
    sources: tuple[str, ...]
    """Topics it reads, with their real names; repartition topics among them."""
    sinks: tuple[str, ...]
    """Topics it writes; repartition topics among them."""
    stores: tuple[str, ...]


class StoreView(View):
    """One store."""

    name: str
    kind: str
    changelog: str | None
    """The real name of its topic."""
    sub_topology: int
    epoch: int = 0
    bytes: int | None = None


class OperationRef(View):
    """An operation in a list."""

    id: str
    app: str
    kind: OperationKind
    state: OperationState
    step: str | None = None
    """What it is doing."""
    reason: str = ""
    created_at: datetime


class AppSummary(View):
    """An app in a list."""

    name: str
    owner: str
    tier: str | None
    labels: dict[str, str] = {}
    cluster: str
    application_id: str
    generation: int
    revision: str
    desired: Literal["running", "paused", "stopped", "retired"]
    phase: Phase
    phase_since: datetime
    reason: str = ""
    """Why it is in this phase, in a sentence."""
    slots: int
    """How many there should be."""
    slots_ready: int
    min_slots: int
    max_slots: int
    tasks: int = 0
    """Active ones that have an owner."""
    lag_records: int | None = None
    records_per_second: float | None = None
    """Processed, over the last observations; with the lag it says how late the app is."""
    max_latency_seconds: float | None = None
    """What its definition promises (scale.slo.maxLatency)."""
    restoring_tasks: int = 0
    warming_tasks: int = 0
    drift: int = 0
    """How many differences between what should be and what is."""
    operation: OperationRef | None = None
    observed_at: datetime | None = None


class AppDetail(AppSummary):
    """All about an app."""

    upstream: tuple[str, ...] = ()
    downstream: tuple[str, ...] = ()
    topology_hash: str
    sub_topologies: tuple[SubTopologyView, ...]
    stores: tuple[StoreView, ...]
    topics: tuple[TopicView, ...]
    workers: tuple[WorkerView, ...]
    placement: tuple[TaskView, ...]
    drift_details: tuple[str, ...] = ()
    scaling: ScalingDecision | None = None
    audit_schedule: str | None = None
    """cron, in UTC."""
    bootstraps: tuple[str, ...] = ()
    """Names declared in its definition."""


class PhaseChange(View):
    """One entry of an app's history."""

    phase: Phase
    since: datetime
    reason: str


class ObservationPoint(View):
    """One entry of an app's short history, for plots."""

    at: datetime
    lag_records: int | None
    records_per_second: float | None
    slots_ready: int
    restoring_tasks: int
    warming_tasks: int


# --- changes --------------------------------------------------------------------------------------------------------


class SourceRequest(Request):
    """Which state of the definitions. The place itself is the server's setting; callers never name paths."""

    ref: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$")] | None = None
    """A branch, tag or commit, where definitions come from Git. None: the branch that is followed, or the directory as it is."""


class AppChange(View):
    """What a new state of the definitions means for one app."""

    app: str
    owner: str | None = None
    """As the new definitions say; who is limited to teams may apply only theirs."""
    action: Literal["create", "update", "upgrade", "reset", "none", "absent"]
    """update: settings only. upgrade: other code or topology. absent: no longer declared; nothing is done by that alone."""
    verdict: str = "UNCHANGED"
    """Of the topology diff: UNCHANGED, ROLLING, RESTART, MIGRATE, INCOMPATIBLE."""
    changes: tuple[str, ...] = ()
    """One sentence per change, heaviest first."""
    cost: tuple[str, ...] = ()
    lost_state: tuple[str, ...] = ()
    topics_created: tuple[str, ...] = ()
    topics_orphaned: tuple[str, ...] = ()
    downstream: tuple[str, ...] = ()
    blocked: str | None = None
    """Why apply will not do it, and what to do instead."""
    can_accept: bool = False
    """What blocks it is the loss of state alone: apply does it for apps named in `accept_lost_state`."""


class PlanView(View):
    """What applying would do."""

    revision: str
    changes: tuple[AppChange, ...]
    problems: tuple[str, ...] = ()
    """Of invalid definitions, with their places; then there are no changes."""
    warnings: tuple[str, ...] = ()


class ApplyRequest(SourceRequest):
    """Make it so."""

    apps: tuple[str, ...] = ()
    """Only these; none: all."""
    accept_lost_state: tuple[str, ...] = ()
    """Apps whose stores may lose their content."""


class ApplyResult(View):
    """What was begun."""

    plan: PlanView
    operations: tuple[OperationRef, ...]


# --- operations -----------------------------------------------------------------------------------------------------


class StepView(View):
    """One step of an operation."""

    name: str
    state: StepState
    detail: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None


class OperationView(OperationRef):
    """An operation with its steps."""

    intent_id: str
    actor: str
    params: dict[str, Any] = {}
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: str | None = None
    steps: tuple[StepView, ...] = ()
    result: dict[str, Any] = {}


class ScaleRequest(Request):
    """How many slots."""

    slots: Annotated[int, Field(ge=1, le=1000)]
    reason: Annotated[str, Field(max_length=2000)] = ""
    from_slots: Annotated[int, Field(ge=0, le=1000)] | None = None
    """How many it had when this was decided; an app that has another number by now is answered 412."""


class ResetRequest(Request):
    """Forget everything. Needs the app's name as confirmation, and the preview it was decided on."""

    confirm: str | None = None
    """The app's name; anything else is answered 428."""
    preview: str | None = None
    """The id of the preview; one that no longer fits is answered 412."""
    input_topics: Literal["earliest", "latest"] = "earliest"


class ResetPreview(View):
    """What a reset would do."""

    id: str
    """Changes when what would be done changes."""
    app: str
    offsets: dict[str, int]
    """Committed offsets that are forgotten: records that will be processed again, by topic."""
    topics: tuple[str, ...]
    """Recorded internal topics that are deleted."""
    bytes: int | None
    """Of local state, over all slots; None: not known yet."""
    stores: tuple[str, ...]
    state_directories: int
    downstream: tuple[str, ...]
    """Apps that will see records again."""
    lines: tuple[str, ...]
    """All of it for people."""


class UpgradeRequest(SourceRequest):
    """Bring the app to another revision."""

    accept_lost_state: bool = False


class RetireRequest(Request):
    """End the app for good."""

    confirm: str | None = None
    """The app's name."""
    undo_window_seconds: Annotated[int, Field(ge=0)] | None = None
    """None: as the definition says."""


# --- decisions: what sensors act on ---------------------------------------------------------------------------------


class ScalingDecision(View):
    """What the scaling functions say of an app. An intent is the same as long as the decision is."""

    app: str
    intent_id: str
    at: datetime
    action: Literal["up", "down", "hold"]
    current: int
    slots: int
    cause: str
    reason: str
    is_advice: bool = False


class ProbeDecision(View):
    """Warm-ups that have caught up and wait for a rebalance."""

    app: str
    intent_id: str
    at: datetime
    tasks: tuple[str, ...]
    reason: str


class ResetDecision(View):
    """A generation raised in Git."""

    app: str
    intent_id: str
    from_generation: int
    to_generation: int
    allowed: bool
    """Whether protect.reset.fromGit allows to act; otherwise it asks a person."""
    operation: OperationRef | None = None
    preview: ResetPreview


class Decisions(View):
    """Everything that waits for a sensor or a person."""

    scaling: tuple[ScalingDecision, ...] = ()
    probing: tuple[ProbeDecision, ...] = ()
    resets: tuple[ResetDecision, ...] = ()


# --- events, audits, bootstraps -------------------------------------------------------------------------------------


class EventView(View):
    """One entry of the log: append-only."""

    id: int
    at: datetime
    app: str | None
    kind: str
    message: str
    actor: str
    data: dict[str, Any] = {}


class FindingView(View):
    """Something an audit found."""

    id: int | None = None
    app: str
    topic: str | None
    store: str | None = None
    partition: int | None = None
    rule: str
    severity: Literal["info", "warning", "error"]
    summary: str
    advice: str = ""
    evidence: dict[str, Any] = {}
    state: Literal["open", "acknowledged", "gone"] = "open"
    first_seen: datetime | None = None
    last_seen: datetime | None = None


class AuditSpecView(View):
    """What an audit of an app has to look at: the input of `python -m streamfleet_jobs audit`."""

    spec: dict[str, Any]


class AuditReport(Request):
    """What an audit found, as the job writes it."""

    run_id: str
    engine: str
    started_at: str
    ended_at: str
    verdict: Literal["clean", "warnings", "errors", "unknown"]
    partitions: list[dict[str, Any]] = []
    findings: list[dict[str, Any]] = []
    summary: dict[str, Any] = {}
    report_html: str | None = None


class AuditRunView(View):
    """One audit."""

    id: str
    app: str
    engine: str
    started_at: datetime
    ended_at: datetime
    verdict: str
    findings: int
    summary: dict[str, Any] = {}


class BootstrapStart(Request):
    """Begin, or go on with, a declared bootstrap."""

    name: str
    engine: Literal["local", "spark-local", "spark-connect"] = "spark-local"
    start: bool = False
    """Start the app on its new state when it is published."""
    abort: bool = False
    """A new attempt that only puts back what was set; then the app is free again."""


class BootstrapMove(Request):
    """The job says how far it is. Refused with a token that is no longer the newest."""

    token: int
    state: Literal["computed", "staged", "changelog_written", "verified", "aborted"]
    detail: dict[str, Any] = {}


class BootstrapRunView(View):
    """One bootstrap."""

    id: str
    app: str
    name: str
    state: Literal[
        "fenced", "computed", "staged", "changelog_written", "verified", "published", "adopted", "aborting", "aborted"
    ]
    token: int
    epoch: int
    operation: str | None = None
    """What holds the app meanwhile, and publishes."""
    spec: dict[str, Any]
    """The input of `python -m streamfleet_jobs bootstrap`."""
    detail: dict[str, Any] = {}
    created_at: datetime
    updated_at: datetime


class FleetView(View):
    """The server and its fleet, in numbers."""

    name: str
    version: str
    revision: str | None
    """Of the definitions that were applied last."""
    is_leader: bool
    """Whether this server acts; another one does if not."""
    is_well: bool = True
    """Whether its passes succeed, if it acts; the problems say why not."""
    apps: int
    by_phase: dict[str, int]
    workers: int
    lag_records: int
    """Of the apps whose lag is known."""
    problems: tuple[str, ...] = ()
    """Of the server itself; of newer definitions that are invalid: the last valid ones stay in force."""
    links: dict[str, str] = {}
    """Where else to look: `dagster`."""


class ProblemView(View):
    """Every error of the API: RFC 9457's fields."""

    title: str
    status: int
    detail: str
    hint: str | None = None
    problems: tuple[str, ...] = ()


AppDetail.model_rebuild()
