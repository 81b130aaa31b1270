"""A broker that says no. What an app needs is a list (docs/worker.md): each entry is taken away by itself, and the app names it.

Row S01 of the security list. All of it on one broker and, but for the rights to create topics, with one app: it fails once for each
entry, and must have counted everything in the end.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)
from tests.integration.faults.conftest import (
    COLOURS,
    KEYS,
    CountingApp,
    failure_of,
    is_one_sentence,
    offsets_of,
    wait_for,
)
from tests.integration.streamfleet.kafka_streams.conftest import Bench

import streamfleet as sf
from streamfleet.kafka.client_errors import AccessDeniedError
from streamfleet.kafka.errors import AuthorizationError
from streamfleet.kafka_streams import KafkaStreams
from streamfleet_devbroker import Cluster, ClusterSpec
from streamfleet_devbroker.ports import free_ports

ALL = len(KEYS) * len(COLOURS)
HOST = "127.0.0.1"
TOPIC, GROUP, TRANSACTIONAL_ID = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
CREATE, READ, WRITE = AclOperation.CREATE, AclOperation.READ, AclOperation.WRITE
DELETE, DESCRIBE_CONFIGS = AclOperation.DELETE, AclOperation.DESCRIBE_CONFIGS


class Permission(NamedTuple):
    """An entry of the list. `name` is without the application id, by which every name begins."""

    kind: ResourceType
    name: str
    operation: AclOperation

    def __str__(self):
        return f"{self.kind.name}{self.name}:{self.operation.name}".lower()

    def binding(self, app):
        is_prefix = self.kind is TRANSACTIONAL_ID
        pattern = ResourcePatternType.PREFIXED if is_prefix else ResourcePatternType.LITERAL
        name = f"{app.bench.app}{self.name}"
        return AclBinding(self.kind, name, pattern, "User:app", "*", self.operation, AclPermissionType.ALLOW)


SHUFFLE, CHANGELOGS = "-colour-repartition", ("-keys-changelog", "-windows-changelog", "-colours-changelog")
INTERNAL = (SHUFFLE, *CHANGELOGS)
TO_RUN = [
    Permission(GROUP, "", READ),
    Permission(TRANSACTIONAL_ID, "-", WRITE),
    Permission(TOPIC, "-in", READ),
    *(Permission(TOPIC, f"-{name}", WRITE) for name in ("by-key", "by-window", "by-colour")),
    *(Permission(TOPIC, *each) for each in itertools.product(INTERNAL, (READ, WRITE, DESCRIBE_CONFIGS))),
]
TO_PURGE = Permission(TOPIC, SHUFFLE, DELETE)
TO_CREATE = [Permission(TOPIC, name, CREATE) for name in INTERNAL]


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

    @property
    def bootstrap_servers(self):
        """Where a test makes topics, and reads and writes them."""
        return self.open_servers


class GuardedApp(CountingApp):
    """The app behind the guarded door."""

    def __init__(self, broker, directory):
        super().__init__(Bench(broker, directory), partitions=1)
        self._servers = broker.guarded_servers

    def config(self, worker="w", **settings):
        login = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "app",
            "sasl.password": "app-secret",
        }
        return super().config(worker, client_settings=login, **settings).with_(bootstrap_servers=self._servers)

    def may(self, permissions):
        """Exactly this and nothing else, as soon as the broker goes by it."""
        wanted = {permission.binding(self) for permission in permissions}
        present = self._bindings()
        for binding in present - wanted:
            for future in self.bench.admin.delete_acls([_filter_of(binding)]).values():
                future.result(10)
        if wanted - present:
            for future in self.bench.admin.create_acls(list(wanted - present)).values():
                future.result(10)
        wait_for(lambda: self._bindings() == wanted)

    def _bindings(self):
        """What the broker's authorizer knows."""
        everything = AclBindingFilter(
            ResourceType.ANY, None, ResourcePatternType.ANY, "User:app", None, AclOperation.ANY, AclPermissionType.ANY
        )
        return set(self.bench.admin.describe_acls(everything).result(10))

    def failure(self, **settings):
        """What ends the app, at once or later."""
        with KafkaStreams(self.topology, self.config(**settings)) as streams:
            try:
                streams.start()
            except sf.StreamsError as at_once:
                return at_once
            return failure_of(streams)

    def ends(self):
        return {
            place: end for place, (end, _) in offsets_of(self.bench, [*self.outputs.values(), *self.inputs]).items()
        }

    def first_offset(self, topic):
        partition = TopicPartition(f"{self.bench.app}{topic}", 0)
        (future,) = self.bench.admin.list_offsets({partition: OffsetSpec.earliest()}).values()
        return future.result(10).offset


def _filter_of(binding):
    return AclBindingFilter(
        binding.restype,
        binding.name,
        binding.resource_pattern_type,
        binding.principal,
        binding.host,
        binding.operation,
        binding.permission_type,
    )


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    broker = GuardedBroker(tmp_path_factory.mktemp("broker"))
    with broker.cluster:
        yield broker


@pytest.fixture(scope="module")
def settled(guarded, tmp_path_factory):
    """An app that has run: its topics are there."""
    app = GuardedApp(guarded, tmp_path_factory.mktemp("settled"))
    app.may([*TO_RUN, TO_PURGE, *TO_CREATE])
    app.write(ALL)
    app.run_until_counted()
    return app


def test_the_list_is_enough_to_create_topics_and_run_and_without_the_rights_to_create_once_they_are_there(settled):
    settled.may([*TO_RUN, TO_PURGE])
    settled.write(ALL)
    settled.run_until_counted(worker="another")  # which has to restore what the first one left


@pytest.mark.parametrize("withheld", TO_RUN, ids=str)
def test_a_missing_right_is_named_before_anything_is_done(settled, withheld):
    settled.may([each for each in TO_RUN if each is not withheld])
    settled.write(len(COLOURS))
    before = settled.ends()
    assert_names(settled.failure(worker="without"), withheld, settled)
    assert settled.ends() == before


@pytest.mark.parametrize("withheld", TO_CREATE, ids=str)
def test_an_internal_topic_that_may_not_be_created_is_named(guarded, withheld, tmp_path):
    app = GuardedApp(guarded, tmp_path)
    app.may([each for each in [*TO_RUN, *TO_CREATE] if each is not withheld])
    assert_names(app.failure(), withheld, app)


class TakesAway:
    """A failpoint: when the app has its tasks, and has read nothing yet, it loses a right."""

    def __init__(self, app, permission):
        self._app, self._permission = app, permission

    def hit(self, name):
        if name == "after_init_txn":  # before a restore begins
            self._app.may([each for each in TO_RUN if each != self._permission])


@pytest.mark.parametrize("name", [SHUFFLE, CHANGELOGS[0]], ids=["input", "changelog"])
def test_a_right_to_read_that_is_taken_away_after_the_start_is_named_as_well(settled, name):
    withheld = Permission(TOPIC, name, READ)
    settled.may(TO_RUN)
    settled.write(ALL)
    config = settled.config(worker=f"without{name}-later")
    with KafkaStreams(settled.topology, config, failpoints=TakesAway(settled, withheld)) as streams:
        streams.start()
        assert_names(failure_of(streams), withheld, settled)


def test_without_the_right_to_purge_the_app_runs_and_names_the_topic_that_grows(settled, logged):
    settled.may(TO_RUN)
    before = settled.first_offset(SHUFFLE)
    with settled.running(repartition_purge_interval_ms=0):
        settled.write(ALL)
        settled.wait_until_counted()
        said = "processed records could not be deleted from repartition topics"
        wait_for(lambda: any(line["event"] == said for line in logged))
    (error, *_) = [line["error"] for line in logged if line["event"] == said]
    assert "TOPIC_AUTHORIZATION_FAILED" in error and f"{settled.bench.app}{SHUFFLE}" in error
    assert settled.first_offset(SHUFFLE) == before


def test_with_the_right_to_purge_it_does_not_grow(settled):
    settled.may([*TO_RUN, TO_PURGE])
    before = settled.first_offset(SHUFFLE)
    with settled.running(repartition_purge_interval_ms=0):
        settled.write(ALL)
        settled.wait_until_counted()
        wait_for(lambda: settled.first_offset(SHUFFLE) > before)


def assert_names(error, withheld, app):
    assert is_one_sentence(error), repr(error)
    assert isinstance(error, AccessDeniedError) or isinstance(error.__cause__, AuthorizationError), repr(error)
    assert "AUTHORIZATION_FAILED" in str(error) and f"{app.bench.app}{withheld.name}" in str(error), str(error)
