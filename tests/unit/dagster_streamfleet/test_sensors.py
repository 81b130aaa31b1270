"""Sensors against the real API over a scripted fleet: what they launch, what a replay does, what they say when nobody answers."""

import time
from datetime import UTC, datetime

import dagster as dg
import pytest

from dagster_streamfleet.observation import observation_sensor
from dagster_streamfleet.sensors import acting_sensors
from dagster_streamfleet.translator import FleetTranslator
from dagster_streamfleet.verbs import verb_jobs
from streamfleet_platform import Phase, views

NOW = datetime(2026, 1, 2, tzinfo=UTC)
SCALING, PROBING, RESET = acting_sensors(FleetTranslator())
JOBS = {job.name: job for job in verb_jobs()}
OBSERVE = observation_sensor(FleetTranslator())


def scaling(app, intent, action="up", **given):
    return views.ScalingDecision(
        app=app, intent_id=intent, at=NOW, action=action, current=2, slots=3, cause="load", reason="why", **given
    )


def resetting(app, intent, *, allowed):
    preview = views.ResetPreview(
        id="p1", app=app, offsets={}, topics=(), bytes=None, stores=(), state_directories=0, downstream=(), lines=("x",)
    )
    return views.ResetDecision(
        app=app, intent_id=intent, from_generation=1, to_generation=2, allowed=allowed, preview=preview
    )


def tick(sensor, server, instance, cursor=None):
    with dg.build_sensor_context(instance=instance, resources={"streamfleet": server}, cursor=cursor) as context:
        return sensor(context)


def test_scaling_is_one_run_for_all_apps_that_may_be_scaled_and_posts_under_the_servers_intents(server, instance):
    server.fleet.decided = views.Decisions(
        scaling=(
            scaling("orders", "i1"),
            scaling("clicks", "i2"),
            scaling("orders", "i3", "hold"),
            scaling("clicks", "i4", is_advice=True),
        )
    )
    result = tick(SCALING, server, instance)
    (request,) = result.run_requests
    assert dg.validate_run_config(JOBS["scale"], request.run_config)
    done = JOBS["scale"].execute_in_process(
        run_config=request.run_config, resources={"streamfleet": server}, instance=instance
    )
    assert done.success
    assert sorted(server.wire.posts) == [("/v1/apps/clicks/scale", "i2"), ("/v1/apps/orders/scale", "i1")]


def test_a_second_tick_launches_nothing_and_a_lost_cursor_the_same_run_key(server, instance):
    server.fleet.decided = views.Decisions(scaling=(scaling("orders", "i1"),))
    first = tick(SCALING, server, instance)
    assert not tick(SCALING, server, instance, first.cursor).run_requests
    assert tick(SCALING, server, instance).run_requests[0].run_key == first.run_requests[0].run_key


def test_probing_is_launched_for_warm_ups_that_caught_up(server, instance):
    decided = views.ProbeDecision(app="orders", intent_id="i9", at=NOW, tasks=("0_1",), reason="caught up")
    server.fleet.decided = views.Decisions(probing=(decided,))
    (request,) = tick(PROBING, server, instance).run_requests
    assert request.tags == {"streamfleet/app": "orders"}
    assert dg.validate_run_config(JOBS["probe"], request.run_config)


def test_resets_run_one_by_one_with_their_preview_where_allowed_and_ask_once_where_not(server, instance):
    server.fleet.decided = views.Decisions(
        resets=(
            resetting("orders", "i1", allowed=True),
            resetting("clicks", "i2", allowed=True),
            resetting("views", "i3", allowed=False),
        )
    )
    first = tick(RESET, server, instance)
    assert len({request.run_key for request in first.run_requests}) == 2
    configs = [request.run_config["ops"]["reset"]["config"] for request in first.run_requests]
    assert sorted((each["app"], each["confirm"], each["preview"]) for each in configs) == [
        ("clicks", "clicks", "p1"),
        ("orders", "orders", "p1"),
    ]
    assert [event.asset_key.path for event in first.asset_events] == [["views", "app"]]
    again = tick(RESET, server, instance, first.cursor)
    assert not again.run_requests and not again.asset_events
    assert "streamfleet reset views" in again.skip_reason.skip_message


def test_a_reset_without_the_apps_name_posts_nothing(server, instance):
    config = dg.RunConfig(ops={"reset": {"config": {"app": "orders", "confirm": "order"}}})
    done = JOBS["reset"].execute_in_process(
        run_config=config, resources={"streamfleet": server}, instance=instance, raise_on_error=False
    )
    assert not done.success
    assert server.wire.posts == []


@pytest.mark.parametrize("sensor", [SCALING, PROBING, RESET, OBSERVE], ids=lambda each: each.name)
def test_a_server_that_is_away_is_a_skipped_tick_that_says_so(sensor, server, instance):
    server.wire.away = True
    assert "does not answer" in tick(sensor, server, instance).skip_message


def test_an_app_is_observed_once_and_again_when_it_changed(server, instance):
    first = tick(OBSERVE, server, instance)
    observed = lambda result: [e for e in result.asset_events if isinstance(e, dg.AssetObservation)]
    assert sorted(event.asset_key.path[0] for event in observed(first)) == ["clicks", "orders"]
    assert observed(first)[0].metadata["lag_records"].value == 12
    second = tick(OBSERVE, server, instance, first.cursor)
    assert not second.asset_events
    app = server.fleet.apps_by_name["orders"]
    server.fleet.apps_by_name["orders"] = app.model_copy(update={"phase": Phase.CRASH_LOOP})
    third = tick(OBSERVE, server, instance, second.cursor)
    assert [event.asset_key.path[0] for event in observed(third)] == ["orders"]
    (check,) = [event for event in third.asset_events if isinstance(event, dg.AssetCheckEvaluation)]
    assert (check.check_name, check.passed, check.severity) == ("progress", False, dg.AssetCheckSeverity.ERROR)


def test_a_tick_reports_no_more_than_a_hundred_events_and_the_rest_in_the_next(server, instance):
    app = server.fleet.apps_by_name["orders"]
    server.fleet.apps_by_name = {f"app-{i}": app.model_copy(update={"name": f"app-{i}"}) for i in range(40)}
    cursor, seen = None, set()
    for _ in range(2):
        result = tick(OBSERVE, server, instance, cursor)
        assert len(result.asset_events) <= 100
        cursor = result.cursor
        seen |= {event.asset_key.path[0] for event in result.asset_events}
    assert len(seen) == 40


def deployed(result):
    return [
        (e.asset_key.path[0], e.metadata["revision"].value)
        for e in result.asset_events
        if isinstance(e, dg.AssetMaterialization)
    ]


def test_sub_topologies_are_reported_as_materialized_when_another_revision_runs_whoever_deployed_it(server, instance):
    first = tick(OBSERVE, server, instance)
    assert sorted(deployed(first)) == [("clicks", "sha256-00"), ("orders", "sha256-00")]

    def change(**given):
        server.fleet.apps_by_name["orders"] = server.fleet.apps_by_name["orders"].model_copy(update=given)

    change(phase=Phase.UPGRADING, revision="sha256-22")
    second = tick(OBSERVE, server, instance, first.cursor)
    assert deployed(second) == []  # on its way
    change(phase=Phase.RUNNING)
    third = tick(OBSERVE, server, instance, second.cursor)
    assert deployed(third) == [("orders", "sha256-22")]
    change(phase=Phase.DEGRADED)
    fourth = tick(OBSERVE, server, instance, third.cursor)
    change(phase=Phase.RUNNING)
    assert deployed(tick(OBSERVE, server, instance, fourth.cursor)) == []  # it was that before
    change(generation=2)
    assert deployed(tick(OBSERVE, server, instance, fourth.cursor)) == [("orders", "sha256-22")]


def changing(server, name, **given):
    server.fleet.apps_by_name[name] = server.fleet.apps_by_name[name].model_copy(update=given)


@pytest.mark.parametrize(
    ("phase", "reasons", "numbers"),
    [
        (
            Phase.DEGRADED,
            ["no progress for 5.12 m: orders-0 stands at 17", "no progress for 5.37 m: orders-0 stands at 17"],
            [{}, {}],
        ),
        (
            Phase.RESTORING,
            ["3 tasks restore, 1234 records to go", "2 tasks restore, 987 records to go"],
            [{"restoring_tasks": 3}, {"restoring_tasks": 2}],
        ),
        (
            Phase.WARMING,
            ["2 warm-ups catch up", "1 warm-ups catch up"],
            [{"warming_tasks": 2}, {"warming_tasks": 1}],
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, Phase) else "",
)
def test_numbers_that_run_while_an_app_is_in_trouble_are_no_change(server, instance, phase, reasons, numbers):
    cursor = tick(OBSERVE, server, instance).cursor
    changing(server, "orders", phase=phase, reason=reasons[0], **numbers[0])
    begun = tick(OBSERVE, server, instance, cursor)
    assert "orders" in {event.asset_key.path[0] for event in begun.asset_events}
    changing(server, "orders", reason=reasons[1], **numbers[1])
    assert not tick(OBSERVE, server, instance, begun.cursor).asset_events


def test_another_kind_of_reason_in_the_same_phase_is_a_change(server, instance):
    changing(server, "orders", phase=Phase.DEGRADED, reason="no progress for 5.12 m: orders-0 stands at 17")
    cursor = tick(OBSERVE, server, instance).cursor
    changing(server, "orders", reason="slot 1 is back_off; 1 of 2 workers are there")
    (seen,) = [e for e in tick(OBSERVE, server, instance, cursor).asset_events if isinstance(e, dg.AssetObservation)]
    assert seen.metadata["reason"].value == "slot 1 is back_off; 1 of 2 workers are there"


def test_lag_is_reported_when_it_moves_by_a_quarter_and_not_more_often_than_every_ten_minutes(
    server, instance, monkeypatch
):
    now = [1_000_000.0]
    monkeypatch.setattr("dagster_streamfleet.observation.time.time", lambda: now[0])
    changing(server, "orders", lag_records=1000)
    cursor = tick(OBSERVE, server, instance).cursor
    reported = []
    for seconds, records in ((600, 1200), (15, 1300), (15, 2600), (570, 1400), (600, 1700), (600, 1750)):
        now[0] += seconds
        changing(server, "orders", lag_records=records)
        result = tick(OBSERVE, server, instance, cursor)
        cursor = result.cursor
        reported += [e.metadata["lag_records"].value for e in result.asset_events if isinstance(e, dg.AssetObservation)]
    assert reported == [1300, 1700]


def test_a_lag_that_breaks_its_promise_is_reported_at_once(server, instance):
    changing(server, "orders", lag_records=100, records_per_second=10.0, max_latency_seconds=60.0)
    cursor = tick(OBSERVE, server, instance).cursor
    changing(server, "orders", lag_records=601)
    said = tick(OBSERVE, server, instance, cursor).asset_events
    assert [e.metadata["lag_records"].value for e in said if isinstance(e, dg.AssetObservation)] == [601]
    assert [(e.check_name, e.passed) for e in said if isinstance(e, dg.AssetCheckEvaluation)] == [("lag", False)]


def test_a_cursor_of_another_version_means_everything_is_reported_once_more(server, instance):
    for cursor in ("", "not json", '{"tick": 3, "apps": {"orders": ["digest", 1]}}', "[]"):
        result = tick(OBSERVE, server, instance, cursor)
        assert {event.asset_key.path[0] for event in result.asset_events} == {"orders", "clicks"}


def test_a_wave_whose_run_failed_is_launched_again_under_another_key_and_the_same_intent(server, instance, monkeypatch):
    server.fleet.decided = views.Decisions(scaling=(scaling("orders", "i1"),))
    first = tick(SCALING, server, instance)
    (request,) = first.run_requests
    run = instance.create_run_for_job(
        JOBS["scale"], run_config=request.run_config, tags={"dagster/run_key": request.run_key}
    )
    instance.report_run_failed(run)
    assert not tick(SCALING, server, instance, first.cursor).run_requests  # not at once
    later = time.time() + 60
    monkeypatch.setattr("dagster_streamfleet.sensors.time.time", lambda: later)
    (again,) = tick(SCALING, server, instance, first.cursor).run_requests
    assert again.run_key != request.run_key
    assert again.run_config == request.run_config


def test_an_app_that_came_after_the_location_was_loaded_is_named_and_makes_no_asset(server, instance):
    observe = observation_sensor(FleetTranslator(), {"orders"})
    first = tick(observe, server, instance)
    assert {event.asset_key.path[0] for event in first.asset_events} == {"orders"}
    assert first.dynamic_partitions_requests[0].partition_keys == ["orders", "clicks"]  # it can be audited all the same
    second = tick(observe, server, instance, first.cursor)
    assert second.skip_reason.skip_message == (
        "none of 1 apps changed; newer than this location, reload its definitions: clicks"
    )
