"""A whole app over TLS and SCRAM: librdkafka and the engine's own client, from the same settings, on a broker that goes by ACLs."""

import time

import pytest
from confluent_kafka.admin import AclOperation, ResourcePatternType, ResourceType, ScramMechanism
from tests.integration.faults.conftest import COLOURS, KEYS, CountingApp, wait_for
from tests.integration.streamfleet.kafka.secure_broker import SESSION_MS, SecureBroker
from tests.integration.streamfleet.kafka_streams.conftest import Bench

from streamfleet.kafka_streams import ClientState

ALL = len(KEYS) * len(COLOURS)
USER = "scram-app"


class SecureApp(CountingApp):
    """Its topics are made, filled and read through the door without login."""

    def __init__(self, broker, directory):
        class AtOpenDoor:
            bootstrap_servers = broker.admin_servers

        super().__init__(Bench(AtOpenDoor, directory))
        self._settings = broker.settings("SCRAM-SHA-512", USER, "scram-secret")

    def config(self, worker="w", **settings):
        servers, login = self._settings["bootstrap.servers"], dict(self._settings)
        del login["bootstrap.servers"]
        return super().config(worker, client_settings=login, **settings).with_(bootstrap_servers=servers)


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    broker = SecureBroker(tmp_path_factory.mktemp("secure"))
    with broker.cluster:
        broker.add_scram_user(USER, ScramMechanism.SCRAM_SHA_512)
        yield broker


@pytest.fixture
def app(secure, tmp_path):
    app = SecureApp(secure, tmp_path)
    topic = [
        AclOperation.CREATE,
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DELETE,
        AclOperation.DESCRIBE_CONFIGS,
    ]
    for kind, operations in {
        ResourceType.TOPIC: topic,
        ResourceType.GROUP: [AclOperation.READ],
        ResourceType.TRANSACTIONAL_ID: [AclOperation.WRITE],
    }.items():
        for operation in operations:
            secure.allow(USER, kind, app.bench.app, operation, ResourcePatternType.PREFIXED)
    return app


def test_an_app_logs_in_commits_and_goes_on_past_the_end_of_its_login(app):
    with app.running() as streams:
        until = time.monotonic() + 2.5 * SESSION_MS / 1000
        rounds = 0
        while time.monotonic() < until:
            app.write(ALL)
            app.wait_until_counted()
            rounds += 1
        app.wait_for_no_lag()
        assert streams.state is ClientState.RUNNING and rounds > 1
        assert all(thread.rebalances == 1 for thread in streams.metrics().threads.values()), "nobody was thrown out"
    app.assert_state_is_its_changelog("keys")
    app.assert_state_is_its_changelog("colours")


def test_a_second_process_takes_half_the_tasks_over_and_then_all(app):
    app.write(ALL)
    with app.running(worker="first") as first:
        with app.running(worker="second") as second:
            wait_for(lambda: [len(each.threads()[0].tasks) for each in (first, second)] == [2, 2])
            app.write(ALL)
            app.wait_until_counted()
            assert first.state is ClientState.RUNNING
        app.write(ALL)
        app.wait_until_counted()
        app.wait_for_no_lag()
