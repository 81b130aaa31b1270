"""Progress, lag and drift: what is ok, what is not, and that unknown never is."""

from datetime import UTC, datetime

import dagster as dg
import pytest
from tests.unit.streamfleet_platform.api.fake_fleet import app_detail

from dagster_streamfleet.checks import app_checks, outcomes
from dagster_streamfleet.translator import FleetTranslator
from streamfleet_platform import Phase

AT = datetime(2026, 1, 1, tzinfo=UTC)


def judged(**given):
    return {outcome.name: outcome for outcome in outcomes(app_detail("orders", "payments", phase_since=AT, **given))}


@pytest.mark.parametrize(
    ("phase", "desired", "passed", "is_error"),
    [
        (Phase.RUNNING, "running", True, False),
        (Phase.RESTORING, "running", True, False),
        (Phase.DEGRADED, "running", False, False),
        (Phase.WAITING, "running", False, False),
        (Phase.WAITING, "stopped", True, False),
        (Phase.CRASH_LOOP, "running", False, True),
        (Phase.FAILED, "stopped", False, True),
    ],
)
def test_progress_is_judged_by_the_phase_and_by_what_was_wanted(phase, desired, passed, is_error):
    found = judged(phase=phase, desired=desired, reason="why")["progress"]
    assert (found.passed, found.is_error) == (passed, is_error)
    assert found.summary == f"{phase} since 2026-01-01 00:00:00 UTC: why"


@pytest.mark.parametrize(
    ("lag", "rate", "promised", "passed"),
    [
        (0, None, 10.0, True),
        (100, 50.0, 10.0, True),
        (1000, 50.0, 10.0, False),
        (1000, 50.0, None, True),  # a minute, where nothing is promised
        (1, 0.0, 10.0, False),  # waits, and nothing moves
        (1, None, 10.0, False),
        (None, 50.0, 10.0, False),
    ],
)
def test_lag_is_a_time_and_what_is_unknown_is_not_ok(lag, rate, promised, passed):
    found = judged(lag_records=lag, records_per_second=rate, max_latency_seconds=promised)["lag"]
    assert found.passed is passed
    assert found.severity is dg.AssetCheckSeverity.WARN


def test_an_app_that_is_not_to_run_has_no_lag_to_answer_for():
    assert judged(desired="stopped", lag_records=None)["lag"].passed


def test_drift_names_every_difference():
    found = judged(drift=2, drift_details=("slot 1 runs another revision", "topic t has retention.ms 1"))["drift"]
    assert not found.passed
    assert found.summary == "slot 1 runs another revision; topic t has retention.ms 1"


def test_people_execute_the_same_checks_one_or_all(server, instance):
    (checks,) = app_checks([server.fleet.apps_by_name["orders"]], FleetTranslator())
    page = dg.AssetKey(["orders", "app"])
    definitions = dg.Definitions(assets=[dg.AssetSpec(page)], asset_checks=[checks], resources={"streamfleet": server})
    job = dg.define_asset_job("look", selection=dg.AssetSelection.checks(dg.AssetCheckKey(page, "drift")))
    one = (
        dg.Definitions.merge(definitions, dg.Definitions(jobs=[job]))
        .resolve_job_def("look")
        .execute_in_process(instance=instance)
    )
    assert [each.check_name for each in one.get_asset_check_evaluations()] == ["drift"]
    everything = dg.define_asset_job("look", selection=dg.AssetSelection.all_asset_checks())
    found = dg.Definitions.merge(definitions, dg.Definitions(jobs=[everything])).resolve_job_def("look")
    done = found.execute_in_process(instance=instance)
    assert sorted(each.check_name for each in done.get_asset_check_evaluations()) == ["drift", "lag", "progress"]
