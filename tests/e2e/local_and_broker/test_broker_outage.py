"""The broker goes while the app runs: it is waited for, and no record is lost; or the wait is over, and the app says so."""

import pytest
from tests.integration.faults.conftest import COLOURS, KEYS, CountingApp, failure_of, is_one_sentence
from tests.integration.streamfleet.kafka_streams.conftest import Bench

from streamfleet.kafka.client_errors import BrokerUnavailableError
from streamfleet.kafka_streams import ClientState
from streamfleet_devbroker import Cluster, ClusterSpec

ALL = len(KEYS) * len(COLOURS)
NODE = 1


@pytest.fixture
def own_app(tmp_path):
    """The app on a broker of its own, which may be killed."""
    with Cluster.start(ClusterSpec(tmp_path / "broker")) as cluster:
        yield CountingApp(Bench(cluster, tmp_path)), cluster


def test_a_broker_that_goes_and_comes_back_costs_no_record(own_app):
    app, cluster = own_app
    with app.running() as streams:
        app.write(ALL)
        app.wait_until_counted()
        cluster.kill_node(NODE)
        cluster.start_node(NODE)
        app.write(ALL)
        app.wait_until_counted(timeout_seconds=60)
        assert streams.state is not ClientState.ERROR


def test_a_broker_that_stays_away_ends_the_app_when_the_task_time_out_is_over(own_app):
    app, cluster = own_app
    with app.started(task_timeout_ms=2000, source_check_interval_ms=500) as streams:
        app.write(ALL)
        app.wait_until_counted()
        cluster.kill_node(NODE)
        error = failure_of(streams, timeout_seconds=40)
        assert isinstance(error, (BrokerUnavailableError, TimeoutError)) and is_one_sentence(error)
        cluster.start_node(NODE)
    app.write(ALL)
    app.run_until_counted()
