"""The group client on a listener with TLS and SASL, with a broker that wants to see the login again, and with ACLs."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AclOperation, ResourcePatternType, ResourceType, ScramMechanism
from tests.integration.streamfleet.kafka.group_actors import CLOCK, HandThread, balanced, settle, unique
from tests.integration.streamfleet.kafka.secure_broker import SESSION_MS, SecureBroker

from streamfleet.ids import TopicPartition
from streamfleet.kafka import connection
from streamfleet.kafka.connection import TcpConnector
from streamfleet.kafka.errors import AuthenticationError, AuthorizationError, GroupError
from streamfleet.kafka.group_events import Fatal
from streamfleet.kafka.offset_messages import CommittedOffset


class CountingConnector(TcpConnector):
    connects = 0

    def connect(self, address):
        self.connects += 1
        return super().connect(address)


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    broker = SecureBroker(tmp_path_factory.mktemp("secure"))
    with broker.cluster:
        broker.add_scram_user("scram256", ScramMechanism.SCRAM_SHA_256)
        broker.add_scram_user("scram512", ScramMechanism.SCRAM_SHA_512)
        for user in ("app", "scram256", "scram512"):
            broker.allow(user, ResourceType.GROUP, "group-", AclOperation.READ, ResourcePatternType.PREFIXED)
            broker.allow(user, ResourceType.TOPIC, broker.topic, AclOperation.READ)
        yield broker


def member(secure, settings, name="a"):
    return HandThread(CountingConnector(settings, CLOCK), unique("group"), secure.topic, name)


@pytest.mark.parametrize(
    ("mechanism", "user", "password"),
    [
        ("PLAIN", "app", "app-secret"),
        ("SCRAM-SHA-256", "scram256", "scram-secret"),
        ("SCRAM-SHA-512", "scram512", "scram-secret"),
    ],
)
def test_a_member_logs_in_and_works(secure, mechanism, user, password):
    thread = member(secure, secure.settings(mechanism, user, password))
    settle(thread, until=lambda: balanced(thread))
    thread.membership.commit({TopicPartition(secure.topic, 0): CommittedOffset(3)}, 5_000)
    thread.leave()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"password": "guessed"}, "refused the login of app"),
        ({"mechanism": "SCRAM-SHA-512", "user": "scram512", "password": "guessed"}, "refused the login of scram512"),
        ({"ssl_ca_location": ""}, "is not trusted"),
    ],
)
def test_a_member_that_may_not_in_is_told_why_and_does_not_try_again(secure, wrong, message):
    thread = member(secure, secure.settings(**wrong))
    settle(thread, until=lambda: bool(thread.events))
    assert isinstance(thread.events[0], Fatal) and message in thread.events[0].reason
    assert isinstance(thread.events[0].cause, AuthenticationError)
    assert thread.membership._client._connector.connects == 1


def run_for(thread, milliseconds):
    until_ms = CLOCK.now_ms() + milliseconds
    settle(thread, until=lambda: CLOCK.now_ms() >= until_ms)


def test_the_login_is_repeated_on_the_same_connection_before_it_runs_out(secure):
    thread = member(secure, secure.settings("SCRAM-SHA-512", "scram512", "scram-secret"))
    settle(thread, until=lambda: balanced(thread))
    run_for(thread, 300)  # the heartbeats' line is open now
    before = thread.membership._client._connector.connects
    run_for(thread, 2 * SESSION_MS + 500)
    assert thread.membership._client._connector.connects == before
    assert len(thread.events) == 1
    thread.leave()


def test_without_that_the_broker_closes_the_connection_and_the_member_stays_one(secure, monkeypatch):
    monkeypatch.setattr(connection, "REAUTHENTICATE_AT", 1000)
    thread = member(secure, secure.settings())
    settle(thread, until=lambda: balanced(thread))
    run_for(thread, 300)
    before = thread.membership._client._connector.connects
    run_for(thread, SESSION_MS + 1_000)
    assert thread.membership._client._connector.connects > before
    assert len(thread.events) == 1
    thread.leave()


def refusal_of(attempt, error):
    """ACLs take a moment to apply: repeat until the error is there."""
    deadline_ms = CLOCK.now_ms() + 10_000
    while CLOCK.now_ms() < deadline_ms:
        try:
            attempt()
        except error as found:
            return found
        CLOCK.pause_ms(20)
    raise AssertionError("it is still allowed")


def test_every_acl_that_is_missing_is_named(secure):
    user, offsets = "scram256", {TopicPartition(secure.topic, 0): CommittedOffset(1)}
    thread = member(secure, secure.settings("SCRAM-SHA-256", user, "scram-secret"))
    settle(thread, until=lambda: balanced(thread))
    client = thread.membership

    with pytest.raises(AuthorizationError, match="grant WRITE on the transactional ids"):
        client.fence("group-txn", 5_000)
    secure.allow(user, ResourceType.TRANSACTIONAL_ID, "group-", AclOperation.WRITE, ResourcePatternType.PREFIXED)

    def fenced():
        try:
            client.fence("group-txn", 5_000)
        except GroupError:
            return False
        return True

    settle(thread, until=fenced)

    secure.forbid(user, ResourceType.TOPIC, secure.topic)
    refused = refusal_of(lambda: client.commit(offsets, 5_000), AuthorizationError)
    assert "TOPIC_AUTHORIZATION_FAILED" in str(refused) and "grant READ" in str(refused)
    secure.allow(user, ResourceType.TOPIC, secure.topic, AclOperation.READ)

    secure.forbid(user, ResourceType.GROUP, "group-")
    settle(thread, until=lambda: isinstance(thread.events[-1], Fatal))
    assert "GROUP_AUTHORIZATION_FAILED" in thread.events[-1].reason
    thread.leave()
