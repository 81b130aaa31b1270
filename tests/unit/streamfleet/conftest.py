"""An app of one process without a broker: real tasks over real stores, in a StreamThread that is only looked at."""

from types import SimpleNamespace

import pytest

import streamfleet as sf
from streamfleet import serdes
from streamfleet.changelog.progress import TaskProgress, UpdateKind
from streamfleet.failpoints import NoFailpoints
from streamfleet.ids import TopicPartition
from streamfleet.metrics import Metrics
from streamfleet.query.app_queries import AppQueries
from streamfleet.records import RawRecord
from streamfleet.state.rocksdb_engine import RocksDBOptions
from streamfleet.state.state_directory import StateDirectory
from streamfleet.state.store_caches import StoreCaches
from streamfleet.testing.manual_clock import ManualClock
from streamfleet.thread.step_gate import StepGate
from streamfleet.thread.task_factory import TaskFactory
from streamfleet.thread.task_manager import TaskManager

PARTITIONS = 3
MINUTE = 60_000


def words_topology():
    text = {"key_serde": serdes.string(), "value_serde": serdes.string()}
    builder = sf.StreamsBuilder()
    words = builder.stream("words", **text).group_by_key(**text)
    words.count(materialized=sf.Materialized("counts", caching=False))
    words.count(materialized=sf.Materialized("cached", caching=True))
    minutes = sf.TimeWindows(size=MINUTE, grace=1440 * MINUTE)
    words.windowed_by(minutes).count(materialized=sf.Materialized("windows", caching=False))
    words.windowed_by(sf.SessionWindows(gap=MINUTE, grace=0)).count(
        materialized=sf.Materialized("sessions", caching=False)
    )
    builder.stream("words2", **text)
    builder.add_state_store(sf.Stores.key_value("plain", **text))
    builder.stream("puts", **text).process(Put, stores=["plain"])
    return builder.build()


class Put(sf.Processor):
    def process(self, record):
        self.context.get_state_store("plain").put(record.key, record.value)


class Sent:
    def __init__(self):
        self.records = []

    def send(self, record):
        self.records.append(record)

    def partition_count(self, topic):
        return PARTITIONS


class App:
    """`work`, `commit` and `abort` are what a StreamThread does with its tasks, in a real TaskManager. `tell_progress` is what a
    StateUpdater does; without it nothing is known of tasks that restore, nor of copies.
    """

    def __init__(self, directory, topology=None, inputs=None, **settings):
        self.config = sf.StreamsConfig(application_id="app", bootstrap_servers="nowhere:9", **settings)
        self.topology = topology or words_topology()
        inputs = inputs or {"words": PARTITIONS, "words2": PARTITIONS, "puts": PARTITIONS}
        self.factory = TaskFactory(
            topology=self.topology,
            plan=self.topology.plan(inputs, self.config),
            partitions=inputs,
            topic_ids=dict,
            config=self.config,
            directory=StateDirectory(directory, "app"),
            clock=ManualClock(0),
            metrics=Metrics(),
            global_stores={},
            rocksdb_options=RocksDBOptions(),
            caches=StoreCaches(10_000_000, 10_000_000),
        )
        self.committed, self.ends, self.progress = {}, {}, ()
        self.admin = SimpleNamespace(list_offsets=lambda partitions, kind: {p: self.ends.get(p, 0) for p in partitions})
        updater = SimpleNamespace(progress=lambda: self.progress)
        manager = TaskManager(self.factory, None, self.admin, updater, None, None, NoFailpoints())
        self.tasks, self.standbys = manager._tasks, manager.standbys._tasks
        self.damaged = []
        """Tasks that a query has found damaged."""
        self.thread = SimpleNamespace(
            tasks=manager,
            gate=StepGate(),
            is_surely_member=True,
            assigned=None,
            report_damage=lambda task, error: self.damaged.append(task),
        )
        self.queries = AppQueries(self.factory, self.config, lambda: [self.thread], self.admin, None)
        self.next_offsets = {}

    def open(self, task_id, *, run=True):
        task = self.factory.create(task_id, Sent(), lambda partition: 0)
        task.initialize()
        self.tasks[task_id] = task
        if run:
            task.complete_restoration(self.committed.get(task_id, {}))
            self.next_offsets |= {p: offset.offset for p, offset in self.committed.get(task_id, {}).items()}
        return task

    def open_standby(self, task_id):
        task = self.factory.create_standby(task_id, None)
        task.initialize()
        self.standbys[task_id] = task
        return task

    def tell_progress(self, task_id, remaining, kind=UpdateKind.STANDBY):
        self.progress = (*self.progress, TaskProgress(task_id, kind, remaining, 0, {}))

    def place(self, store):
        return self.queries.catalogue.place(store)

    def work(self, store, partition, topic, key, value, timestamp):
        """Process one record; its offset."""
        task = self.tasks[self.place(store).task(partition)]
        at = TopicPartition(topic, partition)
        offset = self.next_offsets.get(at, 0)
        self.next_offsets[at] = offset + 1
        with self.thread.gate.step():
            task.add_records(at, [RawRecord(topic, partition, offset, timestamp, key.encode(), value.encode())])
            assert task.process()
        return offset

    def commit(self, task_id):
        with self.thread.gate.step():
            task = self.tasks[task_id]
            self.committed.setdefault(task_id, {}).update(task.prepare_commit())
            task.post_commit(dict.fromkeys(task.changelogs, 0))

    def abort(self, task_id):
        """The transaction is lost: the task goes back to its last commit."""
        with self.thread.gate.step():
            self.close(task_id)
            for at in list(self.next_offsets):
                if self.committed.get(task_id, {}).get(at) is None and at.partition == task_id.partition:
                    del self.next_offsets[at]
            self.open(task_id)

    def close(self, task_id):
        task = self.tasks.pop(task_id)
        task.suspend()
        task.discard()
        task.close()

    def damage(self, task_id):
        """Overwrite the rows of its last commit on the disk, while the task has them open."""
        directory = self.factory.task_directory(task_id)
        self.close(task_id)  # writes what is in memory
        self.open(task_id)
        for path in directory.glob("*.sst"):
            path.write_bytes(bytes(path.stat().st_size))

    def close_all(self):
        for task_id in list(self.tasks):
            self.close(task_id)
        for task_id in list(self.standbys):
            self.standbys.pop(task_id).close()


@pytest.fixture(scope="session")
def new_app(tmp_path_factory):
    apps = []

    def make(**settings):
        app = App(tmp_path_factory.mktemp("state"), **settings)
        apps.append(app)
        return app

    yield make
    for app in apps:
        app.close_all()
