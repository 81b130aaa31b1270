"""A broker, a fleet and Dagster for each test: these take apart what they stand on, and their apps have the same topics."""

import pytest
from tests.dagster_lab.daemon import Daemon
from tests.dagster_lab.fleet import Fleet

from examples.demo.dagster_up import Dagster
from streamfleet_devbroker.pytest_plugin import temporary_cluster


@pytest.fixture
def broker():
    with temporary_cluster(nodes=1) as cluster:
        yield cluster


@pytest.fixture
def started(broker, tmp_path):
    """Fleets that run, by their apps, with Dagster that does not yet."""
    closing = []

    def start(*apps):
        fleet = Fleet(tmp_path, broker.bootstrap_servers, apps)
        dagster = Dagster(tmp_path / "dagster", on_usual_port=False)
        closing.extend([fleet.close, dagster.stop])
        fleet.start(dagster=dagster.url)
        fleet.apply()
        fleet.until_running()
        return fleet, Daemon(dagster, fleet)

    yield start
    for close in reversed(closing):
        close()
