"""Audits and bootstraps as Dagster runs them: the control location's own definitions, a real child process, a real fleet. What
they found and built is looked at through the server's API.
"""

from contextlib import contextmanager
from datetime import UTC, datetime

import dagster as dg
import httpx
import pytest
from confluent_kafka import Producer
from tests.dagster_lab.fleet import PARTITIONS, until
from tests.dagster_lab.lake import land
from tests.dagster_lab.load import Load, latest

from dagster_streamfleet.bootstraps import bootstrap_job
from dagster_streamfleet.component import ControlComponent
from dagster_streamfleet.resource import TOKEN_VARIABLE, URL_VARIABLE
from streamfleet.partitioner import partition_for
from streamfleet_platform import FleetClient, Phase

APP, STORE = "landed", "counts"
CHANGELOG = f"lab-{APP}-{STORE}-changelog"


@pytest.fixture(scope="module")
def written(fleet):
    """By key, how often."""
    with Load(fleet.bootstrap_servers, f"{APP}-in", 400, keys=50) as load:
        until(lambda: min(load.written.values(), default=0) >= 2, "every key")
    until(lambda: latest(fleet.bootstrap_servers, f"{APP}-out") == load.written, "all to be counted")
    return load.written


@pytest.fixture
def control(fleet, monkeypatch, tmp_path):
    """The location as its process has it: server and token come from the environment."""
    monkeypatch.setenv(URL_VARIABLE, fleet.url)
    monkeypatch.setenv(TOKEN_VARIABLE, fleet.token)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    return ControlComponent().definitions()


@pytest.fixture
def instance(tmp_path):
    with dg.DagsterInstance.local_temp(str(tmp_path), overrides={"telemetry": {"enabled": False}}) as instance:
        yield instance


def plant(fleet, key):
    """A record that no task of the app has written, in a partition where its key does not belong."""
    producer = Producer({"bootstrap.servers": fleet.bootstrap_servers})
    producer.produce(CHANGELOG, b"\0" * 15 + b"\1", key, (partition_for(key, PARTITIONS) + 1) % PARTITIONS)
    assert producer.flush(30) == 0


# Dagster's own Pipes uses what Dagster warns of
@pytest.mark.filterwarnings("ignore:.*run_id.* is deprecated")
@pytest.mark.filterwarnings("ignore:.*PipesMessageReader")
def test_the_schedule_of_an_app_asks_for_an_audit_that_runs_and_tells_the_server_what_it_found(
    fleet, written, control, instance
):
    plant(fleet, b"stray")
    tick = control.resolve_schedule_def(f"audit_{APP}").evaluate_tick(
        dg.build_schedule_context(
            instance,
            scheduled_execution_time=datetime(2026, 1, 1, 3, tzinfo=UTC),
            repository_def=control.get_repository_def(),
        )
    )
    (request,) = tick.run_requests
    result = control.resolve_job_def("audit").execute_in_process(
        partition_key=request.partition_key, tags=request.tags, run_config=request.run_config, instance=instance
    )
    assert result.success
    with fleet.client() as client:
        (run,) = client.audits(APP)
        (found,) = client.findings(APP)
        assert "<html" in client.audit_html(APP, run.id)
    assert (run.engine, run.verdict) == ("local", "errors")
    assert run.id == f"audit-{result.run_id}"
    assert (found.rule, found.severity, found.topic) == ("placement", "error", CHANGELOG)
    assert "1 key belongs to another partition by murmur2" in found.summary

    (shown,) = result.asset_materializations_for_node("audits__state")
    assert shown.metadata["verdict"].value == "errors"
    assert CHANGELOG in shown.metadata["report"].value
    checks = {each.check_name: each.passed for each in result.get_asset_check_evaluations()}
    assert checks == {"no_errors": False, "no_warnings": True}


def stopped(fleet):
    with fleet.client() as client:
        client.wait(client.stop(APP).id)
    until(lambda: fleet.app(APP).phase is Phase.STOPPED, "it to stop")


class Faltering(httpx.HTTPTransport):
    """Nobody answers the first two calls after each report that was taken, as while a server is started again."""

    def __init__(self):
        super().__init__()
        self.lost = 0
        self._left = 2

    def handle_request(self, request):
        is_report = request.method == "POST" and "/bootstraps/" in request.url.path
        if is_report and self._left:
            self._left, self.lost = self._left - 1, self.lost + 1
            raise httpx.ConnectError("connection refused")
        self._left = 2 if is_report else self._left
        return super().handle_request(request)


class Faltered:
    """In the place of StreamfleetResource."""

    def __init__(self, fleet):
        self._fleet = fleet
        self.wire = Faltering()

    @contextmanager
    def client(self):
        with FleetClient(self._fleet.url, token=self._fleet.token, transport=self.wire) as client:
            yield client


def test_a_bootstrap_as_a_job_outlasts_a_server_that_is_away_and_the_app_starts_on_what_it_built(
    fleet, written, instance
):
    stopped(fleet)
    records = land(fleet.bootstrap_servers, f"{APP}-in", fleet.lake)
    assert records == sum(written.values())
    server = Faltered(fleet)
    result = bootstrap_job.execute_in_process(
        resources={"streamfleet": server},
        run_config={"ops": {"bootstrap": {"config": {"app": APP, "name": "lake", "engine": "local"}}}},
        instance=instance,
    )
    assert result.success
    assert server.wire.lost == 2 * 4  # each of the four states was told at the third try
    with fleet.client() as client:
        (run,) = client.bootstraps(APP)
        assert client.wait(run.operation).state.value == "succeeded"
        assert next(iter(client.bootstraps(APP))).state == "published"
        looked = run.detail["verified"]
        assert (looked["topology_keys"], looked["topology_told"]) == (len(written), "")
        client.wait(client.start(APP).id)
        until(lambda: fleet.app(APP).phase is Phase.RUNNING, "it to run")
        (run,) = client.bootstraps(APP)
        assert (run.state, run.detail["adopted"]["replayed"]) == ("adopted", [])
        # only what is built is there: the record that was planted in the former changelog is not
        for key in ("k0", "k7", "k49"):
            assert client.query(APP, STORE, key)["value"] == written[key]
