"""A broker that is away, and one that says no."""

import threading
import time

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from tests.integration.faults.conftest import COLOURS, KEYS, CountingApp, failure_of, is_one_sentence
from tests.integration.streamfleet.kafka_streams.conftest import Bench

import streamfleet as sf
from streamfleet.kafka.client_errors import BrokerUnavailableError
from streamfleet.kafka_streams import KafkaStreams
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


def test_a_broker_that_is_away_at_the_start_is_waited_for_until_the_time_out(tmp_path, logged):
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
    assert any(line["event"] == "waiting for the broker" for line in logged)


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
    assert any(line["event"] == "waiting for the broker" for line in logged)


# --- no permission ---


class GuardedBroker:
    """A broker with two doors: one where anybody may do anything, and one where `User:app` may do what ACLs say."""

    def __init__(self, directory):
        plain, controller, guarded = free_ports(3)
        self.open_servers, self.guarded_servers = f"{HOST}:{plain}", f"{HOST}:{guarded}"
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        settings = {
            "listeners": f"PLAINTEXT://{HOST}:{plain},GUARDED://{HOST}:{guarded},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{plain},GUARDED://{HOST}:{guarded}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,GUARDED:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.guarded.plain.sasl.jaas.config": f'{login} user_app="app-secret";',
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        self.cluster = Cluster.start(ClusterSpec(directory / "guarded", port=plain, settings=settings))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    guarded = GuardedBroker(tmp_path_factory.mktemp("broker"))
    with guarded.cluster:
        yield guarded


class GuardedApp(CountingApp):
    """The app behind the guarded door."""

    def __init__(self, bench, servers):
        super().__init__(bench, partitions=1)
        self._servers = servers

    def config(self, worker="w", **settings):
        login = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "app",
            "sasl.password": "app-secret",
        }
        return super().config(worker, client_settings=login, **settings).with_(bootstrap_servers=self._servers)


def acl(kind, name, operation, pattern=ResourcePatternType.LITERAL):
    return AclBinding(kind, name, pattern, "User:app", "*", operation, AclPermissionType.ALLOW)


def needed(app):
    """What the app needs, by what a person would call it."""
    topic, prefix, name = ResourceType.TOPIC, ResourcePatternType.PREFIXED, app.bench.app
    internal = [AclOperation.CREATE, AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE]
    internal.append(AclOperation.DESCRIBE_CONFIGS)
    return {
        "source": [acl(topic, app.source, AclOperation.READ)],
        "sink": [acl(topic, app.outputs["by-key"], AclOperation.WRITE)],
        "other sinks": [acl(topic, app.outputs[name], AclOperation.WRITE) for name in ("by-window", "by-colour")],
        "internal topics": [
            acl(topic, f"{name}-{stem}-{kind}", operation)
            for stem, kind in [
                ("colour", "repartition"),
                ("keys", "changelog"),
                ("windows", "changelog"),
                ("colours", "changelog"),
            ]
            for operation in internal
        ],
        "group": [acl(ResourceType.GROUP, name, AclOperation.READ)],
        "transactional id": [
            acl(ResourceType.TRANSACTIONAL_ID, f"{name}-", operation, prefix)
            for operation in (AclOperation.WRITE, AclOperation.DESCRIBE)
        ],
    }


@pytest.fixture
def guarded_app(guarded, tmp_path):
    class AtOpenDoor:
        bootstrap_servers = guarded.open_servers

    app = GuardedApp(Bench(AtOpenDoor, tmp_path), guarded.guarded_servers)
    yield app
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, "User:app", None, AclOperation.ANY, AclPermissionType.ANY
    )
    for future in app.bench.admin.delete_acls([everything]).values():
        future.result(10)


def grant(app, bindings):
    for future in app.bench.admin.create_acls(bindings).values():
        future.result(10)


def test_with_the_needed_permissions_the_app_runs(guarded_app):
    grant(guarded_app, [binding for bindings in needed(guarded_app).values() for binding in bindings])
    guarded_app.write(ALL)
    guarded_app.run_until_counted()


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ("source", "app-in"),
        ("sink", "app-by-key"),
        ("internal topics", "app-colour-repartition"),
        ("group", "group app"),
        ("transactional id", "transactional id"),
    ],
)
def test_a_missing_permission_is_named_and_nothing_is_half_done(guarded_app, missing, named):
    permissions = needed(guarded_app)
    withheld = permissions.pop(missing)
    grant(guarded_app, [binding for bindings in permissions.values() for binding in bindings])
    guarded_app.write(ALL)
    with KafkaStreams(guarded_app.topology, guarded_app.config()) as streams:
        try:
            streams.start()
            error = failure_of(streams, timeout_seconds=20)
        except sf.StreamsError as at_once:
            error = at_once
    assert is_one_sentence(error), repr(error)
    assert "AUTHORIZATION_FAILED" in str(error) and named in str(error).replace(guarded_app.bench.app, "app"), str(
        error
    )
    grant(guarded_app, withheld)
    guarded_app.run_until_counted()
