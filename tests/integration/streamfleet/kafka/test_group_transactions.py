"""Offsets in transactions by our own client, beside a real producer: fenced, taken over, ended empty, and through a restart
of the coordinator in the middle.
"""

from __future__ import annotations

import json
import logging

import confluent_kafka as ck
import pytest
from tests.integration.streamfleet.kafka.group_actors import (
    CLOCK,
    HandThread,
    RawMember,
    RawTransaction,
    balanced,
    connector,
    create_topic,
    make_stable,
    settle,
    unique,
    wait_for,
)

from streamfleet.ids import TopicPartition
from streamfleet.kafka.client_errors import FencedProducerError
from streamfleet.kafka.errors import TaskMigratedError, UnstableOffsetError
from streamfleet.kafka.group_events import Lost
from streamfleet.kafka.offset_messages import CommittedOffset
from streamfleet.ports import ProducerIdentity
from streamfleet_devbroker import Cluster, ClusterSpec

TIMEOUT_MS = 10_000

_silent = logging.getLogger(__name__)
_silent.addHandler(logging.NullHandler())
_silent.propagate = False  # a fenced producer is expected here


@pytest.fixture(scope="module")
def topic(broker):
    return create_topic(broker.bootstrap_servers)


@pytest.fixture
def thread(broker, topic):
    alone = HandThread(connector(broker.bootstrap_servers), unique("group"), topic, "a")
    settle(alone, until=lambda: balanced(alone))
    yield alone
    alone.leave()


class LibraryProducer:
    """The producer library in a transaction, with the identity it tells in its statistics."""

    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self._told: tuple[int, int] | None = None
        self.client = ck.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "statistics.interval.ms": 50,
                "stats_cb": self._learn,
                "error_cb": lambda _: None,
                "retry.backoff.ms": 1,
            },
            logger=_silent,
        )
        self.client.init_transactions(20)
        wait_for(lambda: (self.client.poll(0.02), self._told)[1], "the producer id")

    def _learn(self, statistics: str) -> None:
        eos = json.loads(statistics)["eos"]
        if eos["producer_id"] >= 0:
            self._told = eos["producer_id"], eos["producer_epoch"]

    @property
    def identity(self) -> ProducerIdentity:
        assert self._told is not None
        return ProducerIdentity(self.transactional_id, *self._told)

    def begin(self, topic: str, records: int = 1) -> None:
        self.client.begin_transaction()
        for number in range(records):
            self.client.produce(topic, str(number), partition=1)
        assert self.client.flush(20) == 0


def committed(thread: HandThread, topic: str) -> CommittedOffset | None:
    partition = TopicPartition(topic, 0)
    return thread.membership.committed([partition], TIMEOUT_MS).get(partition)


def test_offsets_are_committed_with_the_librarys_transaction(broker, topic, thread):
    producer = LibraryProducer(broker.bootstrap_servers, unique("txn"))
    for offset in (5, 6):
        producer.begin(topic)
        row = {TopicPartition(topic, 0): CommittedOffset(offset, f"at {offset}")}
        thread.membership.txn_commit_offsets(producer.identity, row, TIMEOUT_MS)
        producer.client.commit_transaction(20)
        assert committed(thread, topic) == CommittedOffset(offset, f"at {offset}")


def test_offsets_of_an_aborted_transaction_are_not_seen(broker, topic, thread):
    row = TopicPartition(topic, 0)
    thread.membership.commit({row: CommittedOffset(3)}, TIMEOUT_MS)
    producer = LibraryProducer(broker.bootstrap_servers, unique("txn"))
    producer.begin(topic)
    thread.membership.txn_commit_offsets(producer.identity, {row: CommittedOffset(50)}, TIMEOUT_MS)
    producer.client.abort_transaction(20)
    assert committed(thread, topic) == CommittedOffset(3)


def test_a_transaction_without_records_is_ended_by_us(broker, topic, thread):
    producer = LibraryProducer(broker.bootstrap_servers, unique("txn"))
    for offset in (8, 9):  # twice: the id is good for another transaction
        producer.client.begin_transaction()
        row = {TopicPartition(topic, 0): CommittedOffset(offset)}
        thread.membership.txn_commit_offsets(producer.identity, row, TIMEOUT_MS)
        producer.client.commit_transaction(20)  # sends nothing, and the offset stays pending
        with pytest.raises(UnstableOffsetError, match="still open"):
            thread.membership.committed([TopicPartition(topic, 0)], 100)
        thread.membership.txn_end_empty(producer.identity, commit=True, timeout_ms=TIMEOUT_MS)
        assert committed(thread, topic) == CommittedOffset(offset)


def test_the_transaction_of_a_dead_owner_is_ended_by_fencing_its_id(broker, topic, thread):
    row = TopicPartition(topic, 0)
    thread.membership.commit({row: CommittedOffset(20)}, TIMEOUT_MS)
    dead = LibraryProducer(broker.bootstrap_servers, unique("txn"))
    dead.begin(topic, records=3)
    thread.membership.txn_commit_offsets(dead.identity, {row: CommittedOffset(23)}, TIMEOUT_MS)
    with pytest.raises(UnstableOffsetError):
        thread.membership.committed([row], 100)

    began_ms = CLOCK.now_ms()
    thread.membership.fence(dead.transactional_id, TIMEOUT_MS)
    assert committed(thread, topic) == CommittedOffset(20)
    assert CLOCK.now_ms() - began_ms < 3_000  # not the transaction's time-out of a minute

    with pytest.raises(FencedProducerError, match="discard it"):
        thread.membership.txn_commit_offsets(dead.identity, {row: CommittedOffset(24)}, TIMEOUT_MS)
    with pytest.raises(ck.KafkaException):
        dead.client.commit_transaction(20)
    assert committed(thread, topic) == CommittedOffset(20)


def test_the_leader_says_whom_to_fence_when_an_owner_has_died(broker, topic):
    group, connect = unique("group"), connector(broker.bootstrap_servers)
    alive = HandThread(connect, group, topic, "a", transactional_id="id-a")
    dying = HandThread(connect, group, topic, "b", transactional_id="id-b", session_timeout_ms=6_000)
    settle(alive, dying, until=lambda: balanced(alive, dying))
    assert all(plan.plan.fence == () for plan in alive.plans + dying.plans)  # a hand-over fences nobody
    dying.tasks = set()
    dying.vanish()
    settle(alive, until=lambda: len(alive.tasks) == 4)
    assert alive.plans[-1].plan.fence == ("id-b",)
    alive.leave()


def test_a_leader_that_has_only_just_joined_says_whom_to_fence_too(broker, topic):
    """The leader dies, and newcomers join before it is missed: most often one of them plans then."""
    group, connect = unique("group"), connector(broker.bootstrap_servers)
    dying = HandThread(connect, group, topic, "a", transactional_id="id-a", session_timeout_ms=6_000)
    settle(dying, until=lambda: balanced(dying))
    witness = HandThread(connect, group, topic, "b", transactional_id="id-b", session_timeout_ms=6_000)
    settle(dying, witness, until=lambda: balanced(dying, witness))
    dying.tasks = set()
    dying.vanish()
    newcomers = [
        HandThread(connect, group, topic, name, transactional_id=f"id-{name}", session_timeout_ms=6_000)
        for name in "cde"
    ]
    present = [witness, *newcomers]
    settle(*present, until=lambda: balanced(*present))
    fenced = {name for each in present for given in each.plans for name in given.plan.fence}
    assert fenced == {"id-a"}
    for each in present:
        each.leave()


def test_a_member_that_was_thrown_out_cannot_put_offsets_into_a_transaction(broker, topic, thread):
    producer = LibraryProducer(broker.bootstrap_servers, unique("txn"))
    producer.begin(topic)
    other = RawMember(connector(broker.bootstrap_servers), thread.membership.metadata().group_id, topic)
    other.member_id = thread.membership.metadata().member_id
    other.leave()  # somebody removed it
    with pytest.raises(TaskMigratedError, match="UNKNOWN_MEMBER_ID"):
        thread.membership.txn_commit_offsets(
            producer.identity, {TopicPartition(topic, 0): CommittedOffset(1)}, TIMEOUT_MS
        )
    producer.client.abort_transaction(20)
    other.close()
    settle(thread, until=lambda: any(isinstance(e, Lost) for e in thread.events) and balanced(thread))


def test_group_and_transaction_survive_a_restart_of_their_coordinator(tmp_path):
    # A killed node may register again only when its old registration has run out: nine seconds by default.
    soon = {"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "300"}
    with Cluster.start(ClusterSpec(tmp_path, settings=soon)) as own_broker:
        connect, topic = connector(own_broker.bootstrap_servers), create_topic(own_broker.bootstrap_servers)
        thread = HandThread(connect, unique("group"), topic, "a", session_timeout_ms=30_000)
        settle(thread, until=lambda: balanced(thread))
        member = RawMember(connect, unique("group"), topic)
        make_stable(member)
        transaction = RawTransaction(connect, member)
        client = thread.membership
        row = {TopicPartition(topic, 0): CommittedOffset(7)}
        client.txn_commit_offsets(transaction.identity, row, TIMEOUT_MS)

        own_broker.kill_node(own_broker.nodes[0].node_id)
        thread.step()
        own_broker.start_node(own_broker.nodes[0].node_id)

        client.txn_commit_offsets(transaction.identity, row, 30_000)  # the open transaction goes on
        client.txn_end_empty(transaction.identity, commit=True, timeout_ms=30_000)
        assert committed(thread, topic) == CommittedOffset(7)
        client.txn_commit_offsets(transaction.identity, {TopicPartition(topic, 0): CommittedOffset(8)}, TIMEOUT_MS)
        client.txn_end_empty(transaction.identity, commit=True, timeout_ms=TIMEOUT_MS)
        assert committed(thread, topic) == CommittedOffset(8)
        settle(thread, until=lambda: not client._client.heartbeat_busy)
        assert len(thread.events) == 1  # a lost connection is not a lost membership
        assert len(thread.tasks) == 4
        thread.leave()
        transaction.close()
        member.close()
