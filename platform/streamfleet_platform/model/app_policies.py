"""How an app is run, scaled, watched and protected: the sections of its definition that tiers and fleets may give too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from streamfleet_platform.model.cron import Cron
from streamfleet_platform.model.names import Name, StoreName, TopicName, VariableName
from streamfleet_platform.model.quantities import Bytes, DurationMs
from streamfleet_platform.model.section import Section, refusal, shown

_SECRET_PATH = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
"""No part begins with a dot, so none leads upwards."""

Share = Annotated[float, Field(gt=0, le=1)]
Positive = Annotated[int, Field(ge=1)]


def _schedule(value: str) -> str:
    try:
        Cron.parse(value)
    except ValueError as error:
        raise refusal(
            f"{shown(value)} is not a schedule: {error}", "write cron's five fields, in UTC: 0 3 * * *"
        ) from None
    return value


def _secret_path(value: str) -> str:
    if len(value) > 200 or _SECRET_PATH.fullmatch(value) is None:
        raise refusal(
            "this is not a secret file",
            "name a file below the runtime's secret directory, such as kafka/password",
        )
    return value


Schedule = Annotated[str, AfterValidator(_schedule)]


class ErrorBudget(Section):
    """How many bad records are too many."""

    rate: Share
    """Bad records per record."""
    window: DurationMs
    then: Literal["pause"] = "pause"


class Errors(Section):
    """What happens to records that cannot be handled."""

    dead_letter_topic: TopicName | None = None
    on_bad_record: Literal["fail", "continue"] = "fail"
    budget: ErrorBudget | None = None


class StorePolicy(Section):
    """What one store may become."""

    max_bytes: Bytes | None = None
    """On one disk, over all its partitions there."""
    bootstrap: Name | None = None
    """The bootstrap, of those below, that fills it."""


AuditCheck = Literal["compaction", "tombstones", "placement", "equivalence", "orphans"]


class Audit(Section):
    """How often its changelogs are looked at, and for what."""

    schedule: Schedule | None = None
    """When, in UTC; None: only when asked."""
    checks: Annotated[tuple[AuditCheck, ...], Field(min_length=1)] = (
        "compaction",
        "tombstones",
        "placement",
        "equivalence",
        "orphans",
    )


def _data_path(value: str) -> str:
    if len(value) > 500 or not value or "\0" in value or ".." in value.split("/"):
        raise refusal(f"{shown(value)} is not a place of data", "write a path or URL without .. in it")
    return value


Column = Annotated[str, Field(min_length=1, max_length=249)]


class BootstrapSource(Section):
    """A table of records that were landed from a topic, and which of its columns are what."""

    parquet: Annotated[str, AfterValidator(_data_path)]
    """A file or directory, as the job sees it."""
    key: Column
    """The record's key, or, with a repartition, what it is keyed by."""
    partition: Column
    offset: Column
    """The partition and offset that a row was landed from: they say where the app goes on."""
    timestamp: Column
    first_offsets: Mapping[str, Annotated[int, Field(ge=0)]] = {}
    """By partition: where the table begins, if not with offset 0."""


class BootstrapFunction(Section):
    """An aggregate that is exact whatever the order."""

    function: Literal["count", "sum", "min", "max", "last"]
    column: Column | None = None

    @model_validator(mode="after")
    def _has_column(self) -> Self:
        if (self.function == "count") == (self.column is not None):
            raise refusal("count takes no column, all others take one", "write {function: sum, column: NAME}")
        return self


class BootstrapValue(Section):
    """What the store holds for a key: one function's result, or an object of several."""

    of: BootstrapFunction | None = None
    fields: Mapping[str, BootstrapFunction] = {}
    """In the order in which the app writes them."""
    timestamp: Literal["max", "last"] = "max"
    """max as aggregations keep it, last as a table that holds the last record of a key."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.of is None) == (not self.fields):
            raise refusal("a value is one function's result or has fields", "write {of: ...} or {fields: {...}}")
        return self


class Bootstrap(Section):
    """How a store's content is made from data at rest."""

    source: BootstrapSource
    value: BootstrapValue
    input: Name | None = None
    """The input that the table was landed from; None: the app's only one."""


class State(Section):
    """The app's stores."""

    standbys: Annotated[int, Field(ge=0, le=10)] = 0
    """Hot copies of every task's state."""
    stores: Mapping[StoreName, StorePolicy] = {}
    audit: Audit = Audit()
    bootstraps: Mapping[Name, Bootstrap] = {}

    @model_validator(mode="after")
    def _declared(self) -> Self:
        for store, policy in self.stores.items():
            if policy.bootstrap is not None and policy.bootstrap not in self.bootstraps:
                raise refusal(
                    f"store {store} names bootstrap {policy.bootstrap}, which is not declared",
                    "add it to state.bootstraps",
                )
        return self


class Slot(Section):
    """What one worker gets."""

    cpu: Annotated[float, Field(gt=0, le=64)] = 1.0
    """What scaling plans a slot with: at 0.5 it counts as full when it is busy half of the time. More than 1 counts as 1, because
    Python runs one thread at a time. The local runtime enforces no share of the CPU.
    """
    memory: Bytes = 2 * 2**30
    """Above it the runtime ends the worker and starts it again."""


class SecretReference(Section):
    """Where a secret is. Its value is in no definition."""

    env: VariableName | None = None
    """An environment variable of the runtime that fleet.yaml lets apps name."""
    file: Annotated[str, AfterValidator(_secret_path)] | None = None
    """A file below the runtime's secret directory."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.env is None) == (self.file is None):
            raise refusal("a secret is in one place", "write {env: VARIABLE} or {file: PATH}")
        return self


Setting = str | int | float | bool
MAX_SETTINGS = 200


class Run(Section):
    """Its workers."""

    desired: Literal["running", "paused", "stopped"] = "running"
    slot: Slot = Slot()
    guarantee: Literal["at_least_once", "exactly_once_v2"] = "at_least_once"
    config: Annotated[Mapping[str, Setting], Field(max_length=MAX_SETTINGS)] = {}
    """Settings of the engine and of its Kafka clients, by their dotted names. `${NAME}` takes a secret."""
    secrets: Mapping[Name, SecretReference] = {}


class Objective(Section):
    """What scaling is for."""

    max_latency: DurationMs = 60_000
    catch_up: DurationMs = 20 * 60_000
    """In which time a backlog must be worked off."""


class Utilization(Section):
    """How busy slots should be."""

    target: Share = 0.7
    band: tuple[Share, Share] = (0.45, 0.95)
    """Between these nothing is changed."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.band[0] < self.target < self.band[1]:
            raise refusal("target lies outside band", "write band: [LOW, HIGH] with LOW < target < HIGH")
        return self


class ScaleDown(Section):
    """When slots are given back."""

    delay: DurationMs = 3_600_000


class Freeze(Section):
    """A time in which nothing is scaled."""

    cron: Schedule
    """When it begins, in UTC."""
    for_: Annotated[DurationMs, Field(alias="for")]
    reason: Annotated[str, Field(min_length=1, max_length=200)]


class Scale(Section):
    """How many slots it may have. Their number itself is no field: Git and the autoscaler would fight about it."""

    mode: Literal["auto", "advise"] = "auto"
    """advise: decisions are written down and not acted on."""
    min: Positive = 1
    max: Positive = 1
    slo: Objective = Objective()
    utilization: Utilization = Utilization()
    scale_down: ScaleDown = ScaleDown()
    freeze: tuple[Freeze, ...] = ()

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise refusal(f"min {self.min} is above max {self.max}", "raise max or lower min")
        return self


class Gate(Section):
    """What a new version must reach before the next worker is replaced."""

    restored_within: DurationMs = 15 * 60_000
    lag_below: Annotated[int, Field(ge=0)] = 1000
    for_: Annotated[DurationMs, Field(alias="for")] = 2 * 60_000


class Rollout(Section):
    """How a new version replaces the old one."""

    order: Literal["standbysFirst", "ordinal"] = "standbysFirst"
    gate: Gate = Gate()
    on_gate_fail: Literal["rollback", "pause"] = "rollback"


class ResetProtection(Section):
    """What a reset needs."""

    confirm: Literal["name"] = "name"
    approvals: Annotated[int, Field(ge=0, le=5)] = 0
    from_git: Literal["ask", "allow"] = "ask"
    """Whether a higher generation in Git is enough."""


class RetireProtection(Section):
    """What retiring leaves for a while."""

    undo_window: DurationMs = 72 * 3_600_000


class Protect(Section):
    """What keeps state from being deleted by mistake."""

    reset: ResetProtection = ResetProtection()
    retire: RetireProtection = RetireProtection()


class Health(Section):
    """When it counts as unwell."""

    no_progress: DurationMs = 5 * 60_000
    """A committed offset that stands still for so long while records arrive."""
    max_rebalances_per_hour: Positive = 6
    max_restore: DurationMs = 30 * 60_000
