"""Sensors that act: scaling, probing, resets from Git. They ask the server what it decided, launch the verb's job, and remember.

The server decides and does each intent once; a tick that is replayed, comes late or twice changes nothing (waves.py says how).
When the server is away a tick is skipped with its words.
"""

import time
from collections.abc import Callable, Sequence

from dagster import (
    AssetObservation,
    Config,
    DagsterRunStatus,
    DefaultSensorStatus,
    RunConfig,
    RunRequest,
    RunsFilter,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)

from dagster_streamfleet.resource import StreamfleetResource
from dagster_streamfleet.translator import APP_TAG, FleetTranslator, tag_value
from dagster_streamfleet.verbs import AppItem, ProbeConfig, ResetConfig, ScaleConfig, ScaleItem
from dagster_streamfleet.waves import RunFate, Wave, plan_wave, run_key_of
from streamfleet_platform import FleetError
from streamfleet_platform.views import Decisions, ResetDecision

_RUN_KEY_TAG = "dagster/run_key"
_SECONDS_BETWEEN_TICKS = 5
"""The daemon looks no more often."""
_FAILED = (DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED)

Tick = Callable[[SensorEvaluationContext, Decisions], SensorResult]


def acting_sensors(translator: FleetTranslator) -> list[SensorDefinition]:
    return [
        _sensor("scaling", "scale", "Slots added or removed as the server decided, all apps in one run.", _scaling),
        _sensor("probing", "probe", "A probing rebalance as soon as a warm-up has caught up.", _probing),
        _sensor(
            "reset",
            "reset",
            "A generation raised in Git: resets the app where its definition allows that, otherwise asks.",
            lambda context, decisions: _resets(context, decisions, translator),
        ),
    ]


def _sensor(name: str, job_name: str, description: str, tick: Tick) -> SensorDefinition:
    @sensor(
        name=f"streamfleet_{name}",
        job_name=job_name,
        description=description,
        minimum_interval_seconds=_SECONDS_BETWEEN_TICKS,
        default_status=DefaultSensorStatus.RUNNING,
    )
    def act(context: SensorEvaluationContext, streamfleet: StreamfleetResource) -> SensorResult | SkipReason:
        try:
            with streamfleet.client() as client:
                decisions = client.decisions()
        except FleetError as error:
            return SkipReason(str(error))
        return tick(context, decisions)

    return act


def _scaling(context: SensorEvaluationContext, decisions: Decisions) -> SensorResult:
    wanted = {each.intent_id: each for each in decisions.scaling if each.action != "hold" and not each.is_advice}
    wave = plan_wave(wanted, context.cursor, lambda key: _fate(context, key), time.time())
    items = [
        ScaleItem(app=each.app, slots=each.slots, reason=each.reason, from_slots=each.current, intent_id=each.intent_id)
        for each in (wanted[intent] for intent in sorted(wave.run_keys))
    ]
    requests = _one_run("scale", ScaleConfig(items=items, wait_seconds=0), wave, [item.app for item in items])
    return _result(wave, requests, f"{len(wanted)} of {len(decisions.scaling)} apps to be scaled, none new")


def _probing(context: SensorEvaluationContext, decisions: Decisions) -> SensorResult:
    wanted = {each.intent_id: each for each in decisions.probing}
    wave = plan_wave(wanted, context.cursor, lambda key: _fate(context, key), time.time())
    items = [AppItem(app=wanted[intent].app, intent_id=intent) for intent in sorted(wave.run_keys)]
    requests = _one_run("probe", ProbeConfig(items=items, wait_seconds=0), wave, [item.app for item in items])
    return _result(wave, requests, f"{len(wanted)} apps with warm-ups that caught up, none new")


def _one_run(verb: str, config: Config, wave: Wave, apps: Sequence[str]) -> list[RunRequest]:
    keys = set(wave.run_keys.values())
    return [RunRequest(run_key=key, run_config=RunConfig(ops={verb: config}), tags=_tags(apps)) for key in keys]


def _resets(context: SensorEvaluationContext, decisions: Decisions, translator: FleetTranslator) -> SensorResult:
    """One run per app: what cannot be undone is not done in a crowd. Those that may not are asked for, once each."""
    wanted = {each.intent_id if each.allowed else f"ask {each.intent_id}": each for each in decisions.resets}
    # what was only asked for has no run that could fail
    asked = {run_key_of(intent) for intent, each in wanted.items() if not each.allowed}
    wave = plan_wave(
        wanted,
        context.cursor,
        lambda key: "succeeded" if key in asked else _fate(context, key),
        time.time(),
        together=False,
    )
    requests = [_reset_request(key, wanted[intent]) for intent, key in wave.run_keys.items() if wanted[intent].allowed]
    new = [wanted[intent] for intent in wave.run_keys if not wanted[intent].allowed]
    events = [
        AssetObservation(translator.app_key(each.app), metadata={"reset asks": _asks(each), "preview": _preview(each)})
        for each in new
    ]
    asking = [f"{each.app}: {_asks(each)}" for each in decisions.resets if not each.allowed]
    return _result(wave, requests, "; ".join(asking) or "no reset is asked for", events)


def _reset_request(run_key: str, decision: ResetDecision) -> RunRequest:
    config = ResetConfig(
        app=decision.app,
        confirm=decision.app,
        preview=decision.preview.id,
        intent_id=decision.intent_id,
        wait_seconds=0,
    )
    return RunRequest(
        run_key=run_key,
        run_config=RunConfig(ops={"reset": config}),
        tags=_tags([decision.app]),
    )


def _asks(decision: ResetDecision) -> str:
    return (
        f"generation {decision.from_generation} -> {decision.to_generation} in Git asks for a reset, and its definition "
        f"wants a person's word; look at it and say so with `streamfleet reset {decision.app}`"
    )


def _preview(decision: ResetDecision) -> str:
    return "\n".join(decision.preview.lines)


def _fate(context: SensorEvaluationContext, run_key: str) -> RunFate:
    found = context.instance.get_runs(RunsFilter(tags={_RUN_KEY_TAG: run_key}), limit=1)
    if not found:
        return "unknown"
    if found[0].status in _FAILED:
        return "failed"
    return "succeeded" if found[0].status is DagsterRunStatus.SUCCESS else "going"


def _tags(apps: Sequence[str]) -> dict[str, str]:
    """One app: its tag, by which its runs are done one after the other."""
    return {APP_TAG: tag_value(apps[0])} if len(apps) == 1 else {}


def _result(
    wave: Wave, requests: Sequence[RunRequest], skipped: str, events: Sequence[AssetObservation] = ()
) -> SensorResult:
    reason = None if requests else SkipReason(skipped)
    return SensorResult(run_requests=requests, cursor=wave.cursor, skip_reason=reason, asset_events=events)
