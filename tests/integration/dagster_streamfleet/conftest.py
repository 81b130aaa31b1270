"""One fleet with Dagster for all tests here: apps whose work is known, on the real broker."""

import pytest
from tests.dagster_lab.daemon import Daemon
from tests.dagster_lab.fleet import Fleet
from tests.dagster_lab.load import Load

from examples.demo.dagster_up import Dagster

APPS = ("again", "busy", "careful", "landed", "warm")
BUSY_AT_FIRST, BUSY_RAISED, WARM = 20, 110, 400
"""Records per second. One slot of the busy app does fewer than a hundred, and is left alone up to 95 % of that."""


@pytest.fixture(scope="session")
def fleet(broker, tmp_path_factory):
    directory = tmp_path_factory.mktemp("fleet")
    fleet = Fleet(directory, broker.bootstrap_servers, APPS)
    dagster = Dagster(directory / "dagster", on_usual_port=False)
    try:
        fleet.start(dagster=dagster.url)
        fleet.apply()
        fleet.until_running()
        yield fleet
    finally:
        dagster.stop()
        fleet.close()


@pytest.fixture(scope="session")
def loads(fleet):
    """By app."""
    with (
        Load(fleet.bootstrap_servers, "busy-in", BUSY_AT_FIRST) as busy,
        Load(fleet.bootstrap_servers, "warm-in", WARM, keys=2000) as warm,
    ):
        yield {"busy": busy, "warm": warm}


@pytest.fixture(scope="session")
def daemon(fleet, loads):
    """Dagster's. The load is raised as soon as it looks: a decision waits for a minute of rest, in which other tests run."""
    daemon = Daemon(Dagster(fleet.data.parent / "dagster", on_usual_port=False), fleet)
    try:
        daemon.start()
        loads["busy"].rate = BUSY_RAISED
        yield daemon
    finally:
        daemon.close()
