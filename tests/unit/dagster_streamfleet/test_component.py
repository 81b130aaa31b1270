"""The components as a user has them: YAML in a project, the server's fleet or the last one seen, runs that see what was loaded."""

from contextlib import contextmanager

import dagster as dg
import pytest
from dagster.components.testing import create_defs_folder_sandbox

from dagster_streamfleet import ControlComponent, FleetComponent, component
from dagster_streamfleet.snapshot import take
from dagster_streamfleet.translator import FleetTranslator
from streamfleet_platform import FleetClient

# of Dagster's own loader of YAML
pytestmark = [
    pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::dagster_shared.utils.warnings.BetaWarning"),
]

ACTING = {"streamfleet_scaling", "streamfleet_probing", "streamfleet_reset"}


@pytest.fixture
def served(server, monkeypatch, tmp_path):
    """Definitions are loaded from the scripted fleet; snapshots stay in the test's directory."""

    @contextmanager
    def client():
        with server.client() as made:
            yield made

    monkeypatch.setattr(component, "client_of_environment", client)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    return server


def built(cls, attributes):
    with create_defs_folder_sandbox() as sandbox:
        yaml = {"type": f"dagster_streamfleet.{cls.__name__}", "attributes": attributes}
        path = sandbox.scaffold_component(component_cls=cls, defs_yaml_contents=yaml)
        with sandbox.load_component_and_build_defs(defs_path=path) as (_, definitions):
            return definitions


def test_a_fleet_in_yaml_has_its_assets_checks_and_the_observing_sensor_and_nothing_that_acts(served):
    found = built(FleetComponent, {"control_location": "steering"})
    graph = found.resolve_asset_graph()
    assert dg.AssetKey(["orders", "app"]) in graph.get_all_asset_keys()
    assert {key.name for key in graph.asset_check_keys} == {"progress", "lag", "drift"}
    assert [sensor.name for sensor in found.sensors] == ["streamfleet_observation"]
    assert not found.jobs
    assert "/locations/steering/jobs/scale" in graph.get(dg.AssetKey(["orders", "app"])).description


def test_the_control_location_has_the_verbs_and_sensors_and_no_asset_of_an_app(served):
    orders = served.fleet.apps_by_name["orders"]
    served.fleet.apps_by_name["orders"] = orders.model_copy(update={"audit_schedule": "0 3 * * *"})
    found = built(ControlComponent, {})
    assert {sensor.name for sensor in found.sensors} == ACTING
    assert {job.name for job in found.jobs} >= {
        "scale",
        "probe",
        "reset",
        "retire",
        "upgrade",
        "start",
        "stop",
        "bootstrap",
        "audit",
    }
    assert found.resolve_asset_graph().get_all_asset_keys() == {dg.AssetKey(["audits", "state"])}
    assert [(schedule.name, schedule.cron_schedule) for schedule in found.schedules] == [("audit_orders", "0 3 * * *")]


def test_names_can_be_another_translators():
    class Ours(FleetTranslator):
        def app_key(self, app):
            return dg.AssetKey(["apps", app])

    class OurFleet(FleetComponent):
        def translator(self):
            return Ours()

    assert OurFleet().translator().app_key("orders") == dg.AssetKey(["apps", "orders"])


def test_a_server_that_is_away_leaves_the_fleet_of_the_last_time_and_says_so(served):
    first = FleetComponent().definitions()
    served.wire.away = True
    second = FleetComponent().definitions()
    keys = first.resolve_asset_graph().get_all_asset_keys()
    assert second.resolve_asset_graph().get_all_asset_keys() == keys
    page = second.resolve_asset_graph().get(dg.AssetKey(["orders", "app"]))
    assert "does not answer" in page.metadata["not the newest"]


def test_a_location_loaded_before_there_was_a_server_is_empty_and_loads(served):
    served.wire.away = True
    assert not FleetComponent().definitions().resolve_asset_graph().get_all_asset_keys()


def test_a_server_that_refuses_the_token_is_told_and_not_taken_for_an_empty_fleet(served, monkeypatch):
    @contextmanager
    def stranger():
        with FleetClient("http://127.0.0.1", token="sft_unknown", transport=served.wire) as made:
            yield made

    FleetComponent().definitions()
    monkeypatch.setattr(component, "client_of_environment", stranger)
    page = FleetComponent().definitions().resolve_asset_graph().get(dg.AssetKey(["orders", "app"]))
    assert "token" in page.metadata["not the newest"]


def test_a_server_that_grants_so_many_calls_a_second_is_asked_for_longer(server):
    with server.client() as client:
        client.apps()
        listed = client.apps
        client.apps = lambda: (listed(), setattr(server.wire, "refusals", 5))[0]
        found = take(client)
    assert {app.name for app in found.apps} == set(found.pictures) == {"orders", "clicks"}


def test_a_process_that_carries_out_a_run_sees_the_fleet_that_was_loaded_and_asks_nobody(served, monkeypatch):
    loaded = FleetComponent().definitions()
    handed_over = {key: value.data for key, value in loaded.metadata.items()}
    assert set(handed_over) == {"streamfleet/snapshot"}
    served.fleet.apps_by_name.pop("clicks")
    served.wire.away = True
    monkeypatch.setattr(component, "_reconstructed", handed_over.get)
    graph = FleetComponent().definitions().resolve_asset_graph()
    assert dg.AssetKey(["clicks", "app"]) in graph.get_all_asset_keys()
    assert "not the newest" not in graph.get(dg.AssetKey(["orders", "app"])).metadata
