"""The data-plane clients on the development broker: made by factories, closed when the test is over."""

import os
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamfleet.ids import TopicPartition
from streamfleet.kafka.admin import KafkaAdmin
from streamfleet.kafka.client_settings import ClientSettings
from streamfleet.kafka.consumer import KafkaConsumer
from streamfleet.kafka.producer import PlainProducer
from streamfleet.kafka.transactional_producer import KafkaTransactionalProducer
from streamfleet.ports import TopicToCreate
from streamfleet.records import ProducerRecord

WAIT_MS = 20_000


class Clients:
    """Makes clients of one broker and remembers to close them."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._opened: list = []

    def settings(self, **more) -> ClientSettings:
        return ClientSettings.from_mapping({"bootstrap.servers": self.bootstrap_servers, **more})

    def consumer(self, role="main", *, exactly_once=True, **more) -> KafkaConsumer:
        made = self.settings(**more).consumer(role, group_id="app", client_id="c", exactly_once=exactly_once)
        return self._keep(KafkaConsumer(made))

    def producer(self, *, limits=None, on_moved=None, **more) -> PlainProducer:
        made = self.settings(**more).producer(client_id="p", message_limits=limits or {})
        return self._keep(PlainProducer(made, limits, on_moved))

    def transactional(self, transactional_id=None, *, tracked=(), blame=False, limits=None, init=True, **more):
        name = transactional_id or f"txn-{uuid.uuid4().hex[:8]}"
        made = self.settings(**more).transactional_producer(
            client_id="t", transactional_id=name, message_limits=limits or {}
        )
        producer = self._keep(
            KafkaTransactionalProducer(made, tracked=tracked, blame_single_records=blame, message_limits=limits)
        )
        if init:
            producer.init(WAIT_MS)
        return producer

    def close(self) -> None:
        for client in self._opened:
            client.close()

    def _keep(self, client):
        self._opened.append(client)
        return client


@pytest.fixture
def clients(broker) -> Iterator[Clients]:
    made = Clients(broker.bootstrap_servers)
    yield made
    made.close()


@pytest.fixture(scope="session")
def admin(broker) -> Iterator[KafkaAdmin]:
    settings = ClientSettings.from_mapping({"bootstrap.servers": broker.bootstrap_servers})
    opened = KafkaAdmin(settings.admin(client_id="tests"))
    yield opened
    opened.close()


@pytest.fixture
def new_topic(admin):
    def make(partitions=1, **configs) -> str:
        name = f"topic-{uuid.uuid4().hex[:8]}"
        # Records of tests are of 1970: the broker would delete them as too old, half a minute after its start.
        settings = {"retention.ms": "-1"} | {key.replace("_", "."): str(value) for key, value in configs.items()}
        assert admin.create_topics([TopicToCreate(name, partitions, settings)]) == {name}
        return name

    return make


@pytest.fixture(scope="session")
def writer(broker) -> Iterator[PlainProducer]:
    """Fills topics for tests that read. One for all: a new idempotent producer takes half a second to begin."""
    settings = ClientSettings.from_mapping({"bootstrap.servers": broker.bootstrap_servers})
    opened = PlainProducer(settings.producer(client_id="writer"))
    yield opened
    opened.close()


@pytest.fixture
def fill(writer):
    def fill(topic, values, partition=0) -> None:
        for number, value in enumerate(values):
            writer.send(ProducerRecord(topic, b"k", value, 1000 + number, (), partition))
        writer.flush(WAIT_MS)
        assert writer.take_failures() == []

    return fill


@pytest.fixture
def read():
    """Reads until there are `count` records; fails with what there was."""

    def read(consumer, count, *, max_records=500):
        records: list = []
        deadline = time.monotonic() + WAIT_MS / 1000
        while len(records) < count:
            assert time.monotonic() < deadline, (len(records), consumer.take_events())
            records += consumer.poll_batch(200, max_records)
        return records

    return read


@pytest.fixture
def read_topic(clients, read):
    """The first records of a topic with one partition, as a reader of committed data sees them."""

    def read_topic(topic, count, *, exactly_once=True):
        consumer = clients.consumer(exactly_once=exactly_once)
        consumer.assign({TopicPartition(topic, 0): 0})
        return read(consumer, count)

    return read_topic


@pytest.fixture
def frozen_broker(broker):
    """A context in which the broker is stopped in its tracks: connections stay, answers do not come."""

    @contextmanager
    def frozen():
        pid = int((broker.nodes[0].directory / "jvm.pid").read_text())
        os.kill(pid, signal.SIGSTOP)
        try:
            while not _all_threads_stopped(pid):
                time.sleep(0.001)
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    return frozen


def _all_threads_stopped(pid: int) -> bool:
    """A signal stops the threads of a process one after the other; until then some of them still answer."""
    states = [path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(state == "T" for state in states)
