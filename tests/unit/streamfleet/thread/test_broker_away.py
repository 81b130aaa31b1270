"""A StreamThread whose broker takes nothing any more, at any record it sends: in a batch, in a commit, for either guarantee. Real
tasks, databases and commits, over a pretended cluster; afterwards nothing is missing.
"""

from collections import Counter
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs
from tests.unit.streamfleet.thread.conftest import Cluster, Member, OneMember

import streamfleet as sf
from streamfleet.commit.at_least_once import AtLeastOnceCommit
from streamfleet.commit.exactly_once import ExactlyOnceCommit
from streamfleet.failpoints import NoFailpoints
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.kafka.client_errors import BrokerUnavailableError
from streamfleet.kafka.outage import Outage
from streamfleet.metrics import OutageCounts
from streamfleet.ports import ProducerIdentity
from streamfleet.state.state_directory import StateDirectory
from streamfleet.thread.stream_thread import StreamThread
from streamfleet.thread.task_manager import TaskManager, WantedTasks

INPUT, OUTPUT, CHANGELOG = (TopicPartition(name, 0) for name in ("in", "out", "app-counts-changelog"))
KEYS = "abcabcaab"
TEXT, LONG = sf.serdes.string(), sf.serdes.long()


def counting():
    """Counts are forwarded when the cache is flushed, words at once."""
    builder = sf.StreamsBuilder()
    words = builder.stream("in", key_serde=TEXT, value_serde=TEXT)
    words.to("words", key_serde=TEXT, value_serde=TEXT)
    counts = words.group_by_key().count(materialized=sf.Materialized("counts", key_serde=TEXT, value_serde=LONG))
    counts.to_stream().to("out", key_serde=TEXT, value_serde=LONG)
    return builder.build()


class Broker:
    """Producer, Admin and GroupOffsets over a Cluster. Does not take the record with the number `refused`, once."""

    is_usable = True
    identity = ProducerIdentity("id", 1, 0)

    def __init__(self, cluster, *, refused):
        self.cluster = cluster
        self.sent, self.refused = 0, refused
        self.waiting = []
        self.in_transaction = False
        self.pending = {}

    def send(self, record):
        self.sent += 1
        if self.sent == self.refused:
            raise BrokerUnavailableError("no room", code="_QUEUE_FULL")
        self.waiting.append(record)

    def partition_count(self, topic):
        return 1

    def flush(self, timeout_ms):
        if not self.in_transaction:
            self._deliver()

    def _deliver(self):
        for record in self.waiting:
            self.cluster.write(record.topic, record.partition or 0, record.key, record.value)
        self.waiting = []

    def take_failures(self):
        return []

    def list_offsets(self, partitions, kind):
        return self.cluster.list_offsets(partitions, kind)

    # the transaction

    def init(self, timeout_ms):
        pass

    def begin(self):
        self.in_transaction = True

    @property
    def has_sent(self):
        return bool(self.waiting)

    def last_offsets(self):
        written = [TopicPartition(record.topic, record.partition or 0) for record in self.waiting]
        return {partition: self.cluster.end(partition) + count - 1 for partition, count in Counter(written).items()}

    def abort(self, timeout_ms):
        self.in_transaction, self.waiting, self.pending = False, [], {}

    def commit_in_transaction(self, producer, offsets):
        self.pending = offsets

    def end_transaction(self, producer, *, commit):
        pass

    def commit(self, offsets):
        """Of the group's offsets; or of the transaction, with a time-out."""
        if self.in_transaction:
            self._deliver()
            self.in_transaction, offsets, self.pending = False, self.pending, {}
        self.cluster.committed_offsets.update({p: each.offset for p, each in offsets.items()})

    def committed(self, partitions):
        return self.cluster.committed(partitions)

    def close(self):
        pass


@pytest.fixture
def thread_of(tmp_path):
    made = []

    def build(guarantee, refused):
        cluster = Cluster()
        directory = StateDirectory(tmp_path / f"{len(made)}", "app")
        directory.path.mkdir(parents=True)
        member = Member(cluster, directory, topology=counting())
        broker = Broker(cluster, refused=refused)
        if guarantee == "at_least_once":
            commit = AtLeastOnceCommit(broker, broker, broker, NoFailpoints())
        else:
            commit = ExactlyOnceCommit(lambda blames: broker, broker, NoFailpoints())
        tasks = TaskManager(member.factory, member.consumer, broker, member.updater, commit, broker, NoFailpoints())
        thread = StreamThread(
            "t",
            member.factory.config,
            tasks,
            OneMember(),
            member.consumer,
            commit,
            member.clock,
            report=lambda asks: None,
            tasks_of=lambda plan: WantedTasks(frozenset({TaskId(0, 0)})),
            fences_of=lambda plan: (),
            asks_for_shutdown=lambda plan: False,
            failpoints=NoFailpoints(),
        )
        made.append(tasks)
        return thread, cluster, broker

    yield build
    for tasks in made:
        tasks.drop_all()
        tasks.close()


def run(thread, steps=6):
    """A commit every second step, so that some records are sent outside of commits and others in them."""
    for number in range(steps):
        thread.tasks._updater.run_once()
        if number % 2:
            thread._clock.advance(thread._config.effective_commit_interval_ms)
        thread.run_once()


def work(thread, cluster):
    thread.start()
    run(thread)
    for at in range(0, len(KEYS), 3):
        for key in KEYS[at : at + 3]:
            cluster.write("in", 0, key.encode(), b"x")
        run(thread)


def last_values(cluster, topic):
    return {key.decode(): int.from_bytes(value, "big") for key, value in cluster.topics[topic]}


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_whatever_record_finds_no_room_nothing_is_lost(thread_of, guarantee):
    thread, cluster, broker = thread_of(guarantee, refused=None)
    work(thread, cluster)
    undisturbed, expected = broker.sent, Counter(KEYS)
    assert last_values(cluster, OUTPUT) == expected
    for refused in range(1, undisturbed + 1):
        thread, cluster, broker = thread_of(guarantee, refused)
        work(thread, cluster)
        assert broker.sent > refused and cluster.committed_offsets == {INPUT: len(KEYS)}
        words = [key.decode() for key, _ in cluster.topics[TopicPartition("words", 0)]]
        counts, logged = last_values(cluster, OUTPUT), last_values(cluster, CHANGELOG)
        if guarantee == "exactly_once_v2":
            assert words == list(KEYS)
            assert counts == logged == expected
        else:
            assert not Counter(KEYS) - Counter(words)
            assert counts == logged and all(counts[key] >= expected[key] for key in expected)


@pytest.mark.parametrize("is_torn", [True, False])
def test_only_a_step_that_has_torn_a_task_is_not_done_again(is_torn):
    done = []
    tasks = SimpleNamespace(is_torn=is_torn, abandon=lambda: done.append("abandon"))
    thread = bare_thread(tasks, BrokerUnavailableError("no answer", code="_TIMED_OUT"))
    thread.run_once()
    assert done == (["abandon"] if is_torn else [])


def test_a_broker_that_stays_away_fails_the_thread_in_the_end():
    thread = bare_thread(SimpleNamespace(is_torn=False), BrokerUnavailableError("no answer", code="_TIMED_OUT"))
    thread.run_once()
    thread._clock.advance(thread._config.task_timeout_ms)
    with pytest.raises(BrokerUnavailableError):
        thread.run_once()


def test_a_broker_that_stays_away_for_many_steps_is_said_once_and_counted_once():
    counts, is_away = OutageCounts(), True

    def poll():
        if is_away:
            raise BrokerUnavailableError("no answer", code="_TIMED_OUT")

    thread = bare_thread(SimpleNamespace(is_torn=False), poll=poll, outage=Outage(counts))
    thread._step = thread._hear_group
    with capture_logs() as lines:
        for _ in range(20):
            thread.run_once()
            thread._clock.advance(100)
        is_away = False
        for _ in range(3):
            thread.run_once()
    words = [line["event"] for line in lines if line["log_level"] != "debug"]
    assert words == ["broker does not answer", "broker answers again"]
    assert counts.outages == 1


def bare_thread(tasks, error=None, *, poll=None, outage=None):
    """One whose steps end with an error."""

    def fail():
        raise error

    thread = StreamThread(
        "t",
        sf.StreamsConfig(application_id="app"),
        SimpleNamespace(has_room=lambda: True, standbys=None, tasks={}, running=[], **vars(tasks)),
        SimpleNamespace(poll=poll or fail),
        SimpleNamespace(),
        SimpleNamespace(),
        sf.testing.ManualClock(),
        report=lambda asks: None,
        tasks_of=lambda plan: (),
        fences_of=lambda plan: (),
        asks_for_shutdown=lambda plan: False,
        failpoints=NoFailpoints(),
        outage=outage,
    )
    thread._write_status = lambda: None
    return thread
