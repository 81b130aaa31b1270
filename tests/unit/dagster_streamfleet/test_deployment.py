"""Materialize: the app becomes what its definition says; safe to press at any time, refused where the server refuses."""

import dagster as dg
import pytest

from dagster_streamfleet.assets import fleet_assets
from dagster_streamfleet.snapshot import take
from dagster_streamfleet.translator import FleetTranslator
from streamfleet_platform import views
from streamfleet_platform.model.operation import OperationState


@pytest.fixture
def definitions(server):
    with server.client() as client:
        snapshot = take(client)
    return dg.Definitions(
        assets=fleet_assets(snapshot, FleetTranslator(), "control"), resources={"streamfleet": server}
    )


def materialize(definitions, instance, **given):
    job = definitions.resolve_implicit_global_asset_job_def()
    return job.execute_in_process(
        instance=instance, asset_selection=[dg.AssetKey(["orders", "sub-0"])], raise_on_error=False, **given
    )


def planned(server, **given):
    server.fleet.planned = (views.AppChange(**{"app": "orders", "action": "upgrade", **given}),)
    begin = server.fleet.apply

    def apply(request, **kwargs):
        result = begin(request, **kwargs)
        server.fleet.settle()
        return result

    server.fleet.apply = apply


def test_it_applies_the_app_and_says_what_was_done(definitions, server, instance):
    planned(server)
    result = materialize(definitions, instance)
    assert result.success
    (event,) = [e for e in result.all_events if e.is_step_materialization]
    found = event.materialization.metadata
    assert found["operations"].value.startswith("upgrade ")
    assert found["phase"].value == "running"
    ((path, intent),) = server.wire.posts
    assert path == "/v1/apply"
    assert intent == f"dagster-{result.run_id}-orders"


def test_where_nothing_is_to_be_changed_it_does_nothing_and_says_so(definitions, server, instance):
    planned(server, action="none")
    result = materialize(definitions, instance)
    (event,) = [e for e in result.all_events if e.is_step_materialization]
    assert event.materialization.metadata["operations"].value == "nothing had to be changed"
    assert not server.fleet.operations_by_id


def test_what_the_server_would_not_do_fails_the_run_with_its_words(definitions, server, instance):
    server.fleet.planned = (views.AppChange(app="orders", action="none", blocked="it would lose its state"),)
    result = materialize(definitions, instance)
    assert not result.success
    assert "not applied: orders: it would lose its state" in result.failure_data_for_node("deploy_orders").error.message


def test_an_operation_that_fails_fails_the_run(definitions, server, instance):
    planned(server)

    def fail():
        for each in list(server.fleet.operations_by_id.values()):
            server.fleet.operations_by_id[each.id] = each.model_copy(
                update={"state": OperationState.FAILED, "error": "no slot came up"}
            )

    server.fleet.settle = fail
    result = materialize(definitions, instance)
    assert "no slot came up" in result.failure_data_for_node("deploy_orders").error.message
