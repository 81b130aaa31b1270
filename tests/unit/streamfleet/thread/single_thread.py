"""A StreamThread alone in its group: real tasks, databases and commits, over a pretended cluster, stepped by hand."""

from collections import Counter

from tests.unit.streamfleet.thread.conftest import Cluster, Member, OneMember

import streamfleet as sf
from streamfleet.commit.at_least_once import AtLeastOnceCommit
from streamfleet.commit.exactly_once import ExactlyOnceCommit
from streamfleet.failpoints import NoFailpoints
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.kafka.client_errors import BrokerUnavailableError
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

    def __init__(self, cluster, *, refused=None):
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


def make_thread(directory, guarantee, refused=None, **settings):
    """The thread, its cluster and its broker."""
    cluster = Cluster()
    state = StateDirectory(directory, "app")
    state.path.mkdir(parents=True)
    member = Member(cluster, state, topology=counting(), **settings)
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
    return thread, cluster, broker


def run(thread, steps=6):
    """A commit every second step, so that some records are sent outside of commits and others in them."""
    for number in range(steps):
        thread.tasks._updater.run_once()
        if number % 2:
            thread._clock.advance(thread._config.effective_commit_interval_ms)
        thread.run_once()
