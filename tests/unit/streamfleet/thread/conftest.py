"""A TaskManager with real tasks and databases, over a pretended cluster, stepped by hand."""

from types import SimpleNamespace

import pytest

import streamfleet as sf
from streamfleet.changelog.listeners import UpdateListeners
from streamfleet.changelog.state_updater import StateUpdater
from streamfleet.failpoints import NoFailpoints
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.kafka.group_events import Assigned
from streamfleet.metrics import Metrics
from streamfleet.ports import OffsetKind
from streamfleet.records import RawRecord
from streamfleet.state.rocksdb_engine import RocksDBEngine, RocksDBOptions
from streamfleet.state.state_directory import StateDirectory
from streamfleet.task.offsets import CommittedOffset
from streamfleet.testing.manual_clock import ManualClock
from streamfleet.thread.task_factory import TaskFactory
from streamfleet.thread.task_manager import TaskManager, WantedTasks

STRING = sf.serdes.string()
CHANGELOG = "app-counts-changelog"


class Cluster:
    """Topics as lists of (key, value); consumers with positions over them; offsets of the group."""

    def __init__(self):
        self.topics = {}
        self.first = {}
        self.committed_offsets = {}

    def write(self, topic, partition, key, value):
        self.topics.setdefault(TopicPartition(topic, partition), []).append((key, value))

    def truncate(self, topic, partition, first):
        self.first[TopicPartition(topic, partition)] = first

    def end(self, partition):
        return len(self.topics.get(partition, []))

    # Admin

    def list_offsets(self, partitions, kind):
        return {p: self.first.get(p, 0) if kind is OffsetKind.EARLIEST else self.end(p) for p in partitions}

    # GroupOffsets

    def committed(self, partitions):
        return {p: CommittedOffset(self.committed_offsets[p]) for p in partitions if p in self.committed_offsets}


class FakeConsumer:
    def __init__(self, cluster):
        self.cluster = cluster
        self.positions, self.paused = {}, set()

    def incremental_assign(self, positions):
        assert not self.positions.keys() & positions.keys()
        self.positions.update(positions)

    def incremental_unassign(self, partitions):
        for partition in partitions:
            self.positions.pop(partition, None)
            self.paused.discard(partition)

    def assignment(self):
        return frozenset(self.positions)

    def pause(self, partitions):
        self.paused.update(partitions)

    def resume(self, partitions):
        self.paused.difference_update(partitions)

    def seek(self, partition, offset):
        self.positions[partition] = offset

    def position(self, partition):
        return self.positions[partition]

    def lag_records(self, partition):
        return self.cluster.end(partition) - self.positions[partition]

    def poll_batch(self, timeout_ms, max_records):
        batch = []
        for partition in self.positions.keys() - self.paused:
            records = self.cluster.topics.get(partition, [])
            for offset in range(self.positions[partition], len(records)):
                key, value = records[offset]
                batch.append(RawRecord(partition.topic, partition.partition, offset, offset, key, value))
            self.positions[partition] = max(self.positions[partition], len(records))
        return batch

    def take_events(self):
        return []

    def close(self):
        self.positions.clear()


class FakeCommit:
    """At least once: what tasks log goes to the cluster at once."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.producer = self
        self.calls = []

    def send(self, record):
        self.cluster.write(record.topic, record.partition, record.key, record.value)

    def partition_count(self, topic):
        return 2

    def open(self):
        self.calls.append("open")

    def abort(self):
        self.calls.append("abort")

    def commit(self, tasks):
        self.calls.append("commit")
        offsets = {}
        for task in tasks:
            if task.commit_needed:
                offsets |= task.prepare_commit()
                task.post_commit({topic: self.cluster.end(p) - 1 for topic, p in task.changelogs.items()})
        self.cluster.committed_offsets.update({p: each.offset for p, each in offsets.items()})
        return offsets


class OneMember:
    """A group with nobody else in it."""

    leads_group = True

    def __init__(self):
        self.events = [Assigned(1, 1, "me", "plan", follow_up=False)]

    def start(self, report):
        pass

    def poll(self):
        return self.events[0] if self.events else None

    def acknowledge(self, event, report):
        self.events.remove(event)

    def can_commit(self):
        return True


def counting(source_is_table=False):
    builder = sf.StreamsBuilder()
    builder.stream("in").group_by_key().count(store="counts")
    return builder.build()


class Member:
    """One StreamThread's tasks; several may share a directory, as the threads of one process do."""

    def __init__(self, cluster, directory, heard=None, topology=None, **settings):
        topology = topology or counting()
        config = sf.StreamsConfig(
            application_id="app",
            default_key_serde=STRING,
            default_value_serde=STRING,
            state_dir=directory.path.parent,
            **settings,
        )
        self.cluster, self.clock = cluster, ManualClock(0)
        plan = topology.plan({"in": 2}, config)
        self.factory = TaskFactory(
            topology=topology,
            plan=plan,
            partitions={"in": 2},
            topic_ids=lambda: self.topic_ids,
            config=config,
            directory=directory,
            clock=self.clock,
            metrics=Metrics(),
            global_stores={},
            rocksdb_options=RocksDBOptions(),
            check_topics=lambda: self.check_topics(),
        )
        self.check_topics, self.topic_ids = lambda: None, {}
        self.consumer, self.restore_consumer = FakeConsumer(cluster), FakeConsumer(cluster)
        self.commit = FakeCommit(cluster)
        listeners = UpdateListeners() if heard is None else UpdateListeners(heard, heard)
        self.updater = StateUpdater(
            self.restore_consumer, cluster, NoFailpoints(), SimpleNamespace(now_ms=self._now_ms), listeners=listeners
        )
        self.tasks = TaskManager(
            self.factory, self.consumer, cluster, self.updater, self.commit, cluster, NoFailpoints()
        )

    def _now_ms(self):
        self.clock.advance(300)
        return self.clock.now_ms()

    def assign(self, active=(), standby=(), warmup=()):
        ids = lambda numbers: frozenset(TaskId(0, number) for number in numbers)
        self.tasks.assign(WantedTasks(ids(active), ids(standby), ids(warmup)))
        self.step()

    def step(self, steps=3):
        for _ in range(steps):
            self.updater.run_once()
            self.tasks.restore()

    def process(self, *keys):
        """Let the input have these keys, process and commit them."""
        for key in keys:
            self.cluster.write("in", 0, key, b"x")
        self.tasks.add_records(self.consumer.poll_batch(0, 1000), 1000)
        for task in self.tasks.running:
            while task.process():
                pass
        self.commit.commit(self.tasks.running)

    def count_of(self, key, partition=0):
        holders = self.tasks.tasks.get(TaskId(0, partition)) or self.tasks.standbys.tasks[TaskId(0, partition)]
        value = holders.stores["counts"].get(key)
        return None if value is None else value.value

    def close(self):
        self.tasks.drop_all()
        self.tasks.close()


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def member(cluster, tmp_path):
    members, directories = [], {}

    def make(process="p", **settings):
        directory = directories.setdefault(process, StateDirectory(tmp_path / process, "app"))
        directory.path.mkdir(parents=True, exist_ok=True)
        members.append(Member(cluster, directory, **settings))
        return members[-1]

    yield make
    for each in members:
        each.close()


@pytest.fixture
def opens(monkeypatch):
    """Paths of the databases that were opened."""
    opened, opening = [], RocksDBEngine.__init__

    def counted(self, path, options=None):
        opened.append(path)
        opening(self, path, options)

    monkeypatch.setattr(RocksDBEngine, "__init__", counted)
    return opened


@pytest.fixture
def thread_of(tmp_path):
    """make(guarantee, refused, **settings) makes a StreamThread alone in its group: see single_thread.py."""
    from tests.unit.streamfleet.thread.single_thread import make_thread  # it needs what is above

    made = []

    def make(guarantee="at_least_once", refused=None, **settings):
        made.append(make_thread(tmp_path / f"{len(made)}", guarantee, refused, **settings))
        return made[-1]

    yield make
    for thread, _, _ in made:
        thread.tasks.drop_all()
        thread.tasks.close()
