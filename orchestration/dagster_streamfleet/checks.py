"""Progress, lag and drift of an app, judged from what the server says of it: once as checks that people execute, once by the
observation sensor, under the same names. Unknown is never ok.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    MetadataValue,
    multi_asset_check,
)

from dagster_streamfleet.resource import StreamfleetResource
from dagster_streamfleet.translator import FleetTranslator
from streamfleet_platform import Phase
from streamfleet_platform.views import AppDetail, AppSummary

CHECKS = {
    "progress": "The app runs, or does what it was told to do.",
    "lag": "What waits is processed within the latency that the app's definition promises.",
    "drift": "What is equals what should be.",
}
DEFAULT_MAX_LATENCY_SECONDS = 60.0
"""Where the definition promises nothing."""
_BROKEN = frozenset({Phase.FAILED, Phase.CRASH_LOOP})
_WORRYING = frozenset({Phase.DEGRADED, Phase.QUARANTINED, Phase.WAITING})
_IDLE_RECORDS_PER_SECOND = 0.001


@dataclass(frozen=True)
class Outcome:
    """What a check says."""

    name: str
    passed: bool
    summary: str
    is_error: bool = False
    """A failure that has to be looked at now; otherwise a warning."""
    numbers: dict[str, float] = field(default_factory=dict)

    @property
    def severity(self) -> AssetCheckSeverity:
        return AssetCheckSeverity.ERROR if self.is_error else AssetCheckSeverity.WARN

    @property
    def metadata(self) -> dict[str, Any]:
        return {"summary": MetadataValue.text(self.summary), **self.numbers}


def outcomes(app: AppSummary) -> tuple[Outcome, Outcome, Outcome]:
    return _progress(app), _lag(app), _drift(app)


def _progress(app: AppSummary) -> Outcome:
    words = f"{app.phase} since {app.phase_since:%Y-%m-%d %H:%M:%S} UTC" + (f": {app.reason}" if app.reason else "")
    bad = app.phase in _BROKEN or (app.phase in _WORRYING and app.desired == "running")
    numbers = {"slots": float(app.slots), "slots_ready": float(app.slots_ready)}
    return Outcome("progress", not bad, words, is_error=app.phase in _BROKEN, numbers=numbers)


def _lag(app: AppSummary) -> Outcome:
    if app.desired != "running":
        return Outcome("lag", passed=True, summary=f"not to be running: {app.desired}")
    if app.lag_records is None:
        return Outcome("lag", passed=False, summary="the lag is unknown")
    bound = app.max_latency_seconds or DEFAULT_MAX_LATENCY_SECONDS
    numbers = {"lag_records": float(app.lag_records), "max_latency_seconds": bound}
    if app.lag_records == 0:
        return Outcome("lag", passed=True, summary="nothing waits", numbers=numbers)
    rate = app.records_per_second
    if rate is None:
        return Outcome(
            "lag", passed=False, summary=f"{app.lag_records} records wait; the rate is unknown", numbers=numbers
        )
    if rate < _IDLE_RECORDS_PER_SECOND:
        return Outcome(
            "lag", passed=False, summary=f"{app.lag_records} records wait, none is processed", numbers=numbers
        )
    seconds = app.lag_records / rate
    words = f"{app.lag_records} records at {rate:.1f}/s take {seconds:.1f} s; {bound:g} s are promised"
    return Outcome("lag", seconds <= bound, words, numbers={**numbers, "lag_seconds": round(seconds, 3)})


def _drift(app: AppSummary) -> Outcome:
    details = app.drift_details if isinstance(app, AppDetail) else ()
    words = "; ".join(details) or ("none" if app.drift == 0 else f"{app.drift} differences")
    return Outcome("drift", app.drift == 0, words, numbers={"differences": float(app.drift)})


def evaluation(app: str, outcome: Outcome, translator: FleetTranslator) -> AssetCheckEvaluation:
    """For the sensor: a result without a run."""
    return AssetCheckEvaluation(
        asset_key=translator.app_key(app),
        check_name=outcome.name,
        passed=outcome.passed,
        severity=outcome.severity,
        metadata=outcome.metadata,
    )


def app_checks(apps: Sequence[AppDetail], translator: FleetTranslator) -> list[AssetChecksDefinition]:
    """For people: the same, with a button."""
    return [_checks_of(app.name, translator) for app in apps]


def _checks_of(app: str, translator: FleetTranslator) -> AssetChecksDefinition:
    page = translator.app_key(app)
    specs = [AssetCheckSpec(name, asset=page, description=text) for name, text in CHECKS.items()]

    @multi_asset_check(name=translator.checks_name(app), specs=specs, can_subset=True)
    def check(context: AssetCheckExecutionContext, streamfleet: StreamfleetResource) -> Iterator[AssetCheckResult]:
        with streamfleet.client() as client:
            found = client.app(app)
        wanted = {key.name for key in context.selected_asset_check_keys}
        for outcome in outcomes(found):
            if outcome.name in wanted:
                yield AssetCheckResult(
                    asset_key=page,
                    check_name=outcome.name,
                    passed=outcome.passed,
                    severity=outcome.severity,
                    metadata=outcome.metadata,
                )

    return check
