"""A broker that is away. One that says no is in test_permissions.py."""

import threading
import time

import pytest
from tests.integration.faults.conftest import COLOURS, KEYS, CountingApp, is_one_sentence
from tests.integration.streamfleet.kafka_streams.conftest import Bench

import streamfleet as sf
from streamfleet.kafka.client_errors import BrokerUnavailableError
from streamfleet.kafka_streams import KafkaStreams, wiring
from streamfleet_devbroker import Cluster, ClusterSpec
from streamfleet_devbroker.ports import free_ports

ALL = len(KEYS) * len(COLOURS)
HOST = "127.0.0.1"
NODE = 1


# --- away ---


@pytest.fixture
def own_app(tmp_path):
    """The app on a broker of its own, which may be killed."""
    with Cluster.start(ClusterSpec(tmp_path / "broker")) as cluster:
        yield CountingApp(Bench(cluster, tmp_path)), cluster


def test_a_broker_that_is_away_at_the_start_is_waited_for_until_the_time_out(tmp_path, logged, monkeypatch):
    monkeypatch.setattr(wiring, "LONGEST_ASKING_MS", 1000)  # of one question, while the app runs
    (port,) = free_ports(1)
    builder = sf.StreamsBuilder()
    builder.stream("in").group_by_key().count(store="counts")
    config = sf.StreamsConfig(
        application_id="app",
        bootstrap_servers=f"{HOST}:{port}",
        default_key_serde=sf.serdes.string(),
        default_value_serde=sf.serdes.string(),
        state_dir=tmp_path,
        task_timeout_ms=7000,
    )
    began = time.monotonic()
    with KafkaStreams(builder.build(), config) as streams, pytest.raises(BrokerUnavailableError) as caught:
        streams.start()
    assert 5 < time.monotonic() - began < 20
    assert is_one_sentence(caught.value) and "within 7000 ms" in str(caught.value)
    assert said_of_the_broker(logged) == ["broker does not answer"]


def test_a_broker_that_comes_back_during_the_start_is_found(own_app, logged):
    app, cluster = own_app
    app.write(ALL)
    cluster.kill_node(NODE)
    return_of_the_broker = threading.Timer(1.0, cluster.start_node, [NODE])
    return_of_the_broker.start()
    try:
        app.run_until_counted()
    finally:
        return_of_the_broker.join()
    assert said_of_the_broker(logged) == ["broker does not answer", "broker answers again"]


def said_of_the_broker(logged):
    """Once when it goes, once when it is back; attempts are for debugging."""
    return [line["event"] for line in logged if line["event"].startswith("broker ") and line["log_level"] != "debug"]
