"""The fleet as it changes: one sensor asks the server for all apps and reports those that changed, without runs.

An app is reported when its phase, the kind of its reason, slots, operation, revision or a check's result changes; numbers that run
(how long it stands still, how much is left to restore) are no change. Its lag alone counts when it has moved by a quarter, and not
more often than every ten minutes. When it runs in another revision or generation than before, its sub-topologies are reported as
materialized, whoever deployed it. The cursor keeps what was reported; who waited longest comes first when there is more than a tick
may report. Metrics by the second belong in Prometheus, not here: an event costs the instance a row for ever.
"""

import hashlib
import json
import re
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import astuple, dataclass

from dagster import (
    AssetCheckEvaluation,
    AssetMaterialization,
    AssetObservation,
    DefaultSensorStatus,
    MetadataValue,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    TableRecord,
    sensor,
)

from dagster_streamfleet.audits import APPS
from dagster_streamfleet.checks import evaluation, outcomes
from dagster_streamfleet.resource import StreamfleetResource
from dagster_streamfleet.translator import FleetTranslator
from streamfleet_platform import FleetClient, FleetError, NotFoundError, Phase
from streamfleet_platform.views import AppDetail, AppSummary, TaskView

MAX_EVENTS = 100
"""A tick. Each costs some 30 ms, and a tick may take a minute."""
_SMALL_LAG = 100
_LAG_SHARE = 0.25
_SECONDS_BETWEEN_LAGS = 600
"""The lag of an app under load moves at every tick; whether it is too much, its check says at once."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
Event = AssetObservation | AssetCheckEvaluation | AssetMaterialization


@dataclass(frozen=True)
class Reported:
    """What was last said of an app."""

    digest: str
    lag: int | None
    failing: str
    """Names of the checks that failed, joined."""
    tick: int
    deployed: str
    """The revision and generation that ran when its sub-topologies were last reported."""
    at: int
    """Seconds since 1970."""


def observation_sensor(translator: FleetTranslator, shown: Collection[str] | None = None) -> SensorDefinition:
    """`shown`: apps that the location has assets of; others are named, not reported. None: all."""

    @sensor(
        name="streamfleet_observation",
        minimum_interval_seconds=15,
        default_status=DefaultSensorStatus.RUNNING,
        description="Reports apps that changed: state, lag, placement, checks.",
    )
    def observe(context: SensorEvaluationContext, streamfleet: StreamfleetResource) -> SensorResult | SkipReason:
        try:
            with streamfleet.client() as client:
                return _tick(context, client, translator, shown)
        except FleetError as error:
            return SkipReason(str(error))

    return observe


def _tick(
    context: SensorEvaluationContext, client: FleetClient, translator: FleetTranslator, shown: Collection[str] | None
) -> SensorResult:
    listed = [app for app in client.apps() if app.desired != "retired"]
    # a report on an asset that nobody defined would make one that leads nowhere
    apps = [app for app in listed if shown is None or app.name in shown]
    tick, memory = _read(context.cursor)
    tick += 1
    kept = {app.name: memory[app.name] for app in apps if app.name in memory}
    events: list[Event] = []
    now = int(time.time())
    changed = [app for app in apps if _is_changed(app, kept.get(app.name), now)]
    for app in sorted(changed, key=lambda app: (kept[app.name].tick if app.name in kept else 0, app.name)):
        before = kept.get(app.name)
        try:
            said = _report(client.app(app.name), app, before, translator)
        except NotFoundError:
            continue  # retired since the list was made
        if events and len(events) + len(said) > MAX_EVENTS:
            break
        events += said
        kept[app.name] = Reported(_digest(app), app.lag_records, _failing(app), tick, _deployed(app, before), now)
    known = set(context.instance.get_dynamic_partitions(APPS.name or ""))
    new = [app.name for app in listed if app.name not in known]
    return SensorResult(
        asset_events=events,
        cursor=_written(tick if events else tick - 1, kept),
        dynamic_partitions_requests=[APPS.build_add_request(new)] if new else None,
        skip_reason=None if events else SkipReason(f"none of {len(apps)} apps changed{_missing(listed, apps)}"),
    )


def _missing(listed: Sequence[AppSummary], apps: Sequence[AppSummary]) -> str:
    names = sorted({app.name for app in listed} - {app.name for app in apps})
    return f"; newer than this location, reload its definitions: {', '.join(names)}" if names else ""


def _report(app: AppDetail, listed: AppSummary, before: Reported | None, translator: FleetTranslator) -> list[Event]:
    """What is said of an app that changed, since it was reported `before`."""
    said: list[Event] = [observation(app, translator), *_evaluations(listed, before, translator)]
    if _deployed(listed, before) != (before.deployed if before is not None else ""):
        said += materializations(app, translator)
    return said


def _deployed(app: AppSummary, before: Reported | None) -> str:
    """What has run at last; while an app starts or is brought to another revision, still what ran before."""
    known = before.deployed if before is not None else ""
    return f"{app.revision} {app.generation}" if app.phase is Phase.RUNNING else known


def materializations(app: AppDetail, translator: FleetTranslator) -> list[AssetMaterialization]:
    """Of its sub-topologies. Without a code version: Dagster would hold against it that it does not name its inputs' versions."""
    return [
        AssetMaterialization(
            asset_key=translator.sub_topology_key(app.name, sub.id),
            metadata={"revision": app.revision, "generation": app.generation, "slots": app.slots},
        )
        for sub in app.sub_topologies
    ]


def _evaluations(
    app: AppSummary, before: Reported | None, translator: FleetTranslator
) -> Sequence[AssetCheckEvaluation]:
    """Only of checks whose result changed."""
    known = None if before is None else set(filter(None, before.failing.split(",")))
    return [
        evaluation(app.name, outcome, translator)
        for outcome in outcomes(app)
        if known is None or (outcome.name in known) == outcome.passed
    ]


def observation(app: AppDetail, translator: FleetTranslator) -> AssetObservation:
    numbers = {
        "lag_records": app.lag_records,
        "records_per_second": None if app.records_per_second is None else round(app.records_per_second, 1),
        "slots": app.slots,
        "slots_ready": app.slots_ready,
        "tasks": app.tasks,
        "restoring_tasks": app.restoring_tasks,
        "warming_tasks": app.warming_tasks,
        "differences": app.drift,
    }
    words = {
        "phase": str(app.phase),
        "reason": app.reason or None,
        "operation": None if app.operation is None else f"{app.operation.kind} {app.operation.state}",
        "placement": MetadataValue.table(_rows(app.placement)) if app.placement else None,
    }
    found = {name: value for name, value in {**numbers, **words}.items() if value is not None}
    return AssetObservation(asset_key=translator.app_key(app.name), metadata=found)


def _rows(placement: Iterable[TaskView]) -> list[TableRecord]:
    return [
        TableRecord(
            {
                "task": task.id,
                "role": task.role,
                "worker": task.slot,
                "state": task.state,
                "lag_records": -1 if task.lag_records is None else task.lag_records,
            }
        )
        for task in placement
    ]


def _is_changed(app: AppSummary, before: Reported | None, now: int) -> bool:
    if before is None or before.digest != _digest(app) or before.failing != _failing(app):
        return True
    return now - before.at >= _SECONDS_BETWEEN_LAGS and _has_moved(app.lag_records, before.lag)


def _has_moved(lag: int | None, before: int | None) -> bool:
    if lag is None or before is None:
        return lag != before
    return abs(lag - before) > max(_SMALL_LAG, _LAG_SHARE * before)


def _digest(app: AppSummary) -> str:
    """Of what is the same as long as nothing happens. Of tasks that restore or warm up only whether there are any."""
    operation = app.operation and (app.operation.id, str(app.operation.state))
    kind = _NUMBER.sub("#", app.reason)
    seen = (str(app.phase), kind, app.slots, app.slots_ready, app.drift, app.revision, app.generation, operation)
    tasks = (app.tasks, app.restoring_tasks > 0, app.warming_tasks > 0)
    return hashlib.sha256(repr((seen, tasks)).encode()).hexdigest()[:12]


def _failing(app: AppSummary) -> str:
    return ",".join(outcome.name for outcome in outcomes(app) if not outcome.passed)


def _read(cursor: str | None) -> tuple[int, dict[str, Reported]]:
    try:
        found = json.loads(cursor or "{}")
        return int(found.get("tick", 0)), {app: Reported(*said) for app, said in found.get("apps", {}).items()}
    except (ValueError, TypeError, AttributeError):
        return 0, {}  # set by hand, or by another version: everything is reported once more


def _written(tick: int, memory: dict[str, Reported]) -> str:
    apps = {app: astuple(said) for app, said in sorted(memory.items())}
    return json.dumps({"tick": tick, "apps": apps}, separators=(",", ":"))
