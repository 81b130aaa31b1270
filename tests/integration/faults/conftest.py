"""The app that every fault meets: counted by key, by key and window, and by value after a repartition. Exactly once.

What it wrote is compared with what it was given, so that a fault that loses or repeats a record is seen in a number.
"""

import itertools
import time
from collections import Counter
from contextlib import contextmanager

import pytest
import structlog
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, OffsetSpec, ResourceType
from tests.integration.faults.counting import counting_topology
from tests.integration.streamfleet.kafka_streams.conftest import Bench
from tests.ledger.topics import committed_offsets

import streamfleet as sf
from streamfleet.ids import TopicPartition as Place
from streamfleet.kafka_streams import ClientState, KafkaStreams
from streamfleet.state.engine_rows import EngineRows
from streamfleet.state.rocksdb_engine import RocksDBEngine

KEYS = [f"k{i}" for i in range(12)]
COLOURS = ["red", "green", "blue", "white", "black"]


class CountingApp:
    """The topology, its topics, what was written to its input so far and what its outputs must come to."""

    def __init__(self, bench, partitions=2, offset_reset=None):
        self.bench = bench
        self._offset_reset = offset_reset
        self.source = bench.topic("in", partitions)
        self.outputs = {name: bench.topic(name, partitions) for name in ("by-key", "by-window", "by-colour")}
        self.keys, self.windows, self.colours = Counter(), Counter(), Counter()
        self._numbers = itertools.count()
        self.topology = self._build()

    def _build(self):
        return counting_topology(self.source, self.outputs, self._offset_reset)

    def config(self, worker="w", **settings):
        return self.bench.config(worker, **({"processing_guarantee": "exactly_once_v2"} | settings))

    def write(self, count):
        """Write records that the outputs must count from now on."""
        numbers = list(itertools.islice(self._numbers, count))
        records = [(KEYS[n % len(KEYS)], COLOURS[n * 7 % len(COLOURS)]) for n in numbers]
        self.bench.write(self.source, records)
        self.expect(records)
        return records

    def wait_until_counted(self, timeout_seconds=30):
        """Wait until every output has come to what was written, and see that no result came twice or out of order."""
        wanted = {
            self.outputs["by-key"]: self.keys,
            self.outputs["by-window"]: self.windows,
            self.outputs["by-colour"]: self.colours,
        }
        results = {topic: {} for topic in wanted}
        with committed_reader(self.bench, wanted) as reader:
            deadline = time.monotonic() + timeout_seconds
            while any(_totals(results[topic]) != expected for topic, expected in wanted.items()):
                assert time.monotonic() < deadline, {topic: _totals(results[topic]) for topic in wanted}
                for message in reader.consume(500, 0.1):
                    if message.error() is None:
                        results[message.topic()].setdefault(message.key(), []).append(_long(message.value()))
        for topic, by_key in results.items():
            for key, counts in by_key.items():
                assert counts == sorted(set(counts)), f"{topic}: {key!r} was counted {counts}"

    @contextmanager
    def running(self, **settings):
        with self.bench.running(self.topology, self.config(**settings)) as streams:
            yield streams

    @contextmanager
    def started(self, **settings):
        """Like running, for an app that may never come to that."""
        with KafkaStreams(self.topology, self.config(**settings)) as streams:
            streams.start()
            yield streams

    def run_until_counted(self, **settings):
        with self.running(**settings):
            self.wait_until_counted()

    def expect(self, records, sign=1):
        """Have the outputs count these, too; or no longer, with the sign -1."""
        for key, colour in records:
            self.keys[key] += sign
            self.windows[key] += sign
            self.colours[colour] += sign

    def with_offset_reset(self, policy):
        """The same app, with a policy for lost input."""
        self._offset_reset = policy
        self.topology = self._build()

    @property
    def inputs(self):
        return [self.source, f"{self.bench.app}-colour-repartition"]

    def wait_for_no_lag(self):
        """Wait until the group has committed the end of every input."""
        wait_for(lambda: all(end == committed for end, committed in offsets_of(self.bench, self.inputs).values()))

    def changelog(self, store):
        return f"{self.bench.app}-{store}-changelog"

    def assert_state_is_its_changelog(self, store, worker="w"):
        """The rows of a key-value store, in all tasks, are the last values of its changelog up to the offset they carry."""
        found = 0
        for directory in self.task_directories(worker):
            engine = RocksDBEngine(directory)
            rows = EngineRows(engine, self.bench.app, directory.name)
            offsets = dict(rows.offsets())
            if self.changelog(store) in offsets:
                found += 1
                stored = {key: value[8:] for key, value in rows.buffer(store).scan(b"", None)}  # without timestamp
                partition = int(directory.name.rpartition("_")[2])
                assert stored == fold(self.bench, self.changelog(store), partition, offsets[self.changelog(store)])
            engine.close()
        assert found, f"no task has rows of {store}"

    def stored_rows(self, store, directory):
        """Key -> value of a key-value store in a task's database; nothing if that task has no such store."""
        engine = RocksDBEngine(directory)
        try:
            rows = EngineRows(engine, self.bench.app, directory.name)
            if self.changelog(store) not in dict(rows.offsets()):
                return {}
            return dict(rows.buffer(store).scan(b"", None))
        finally:
            engine.close()

    def task_directories(self, worker="w"):
        """Where the databases of the app are, those with rows of the store `keys` first."""
        root = self.bench.directory / worker / self.bench.app
        return sorted(path for path in root.iterdir() if path.is_dir())


@pytest.fixture
def bench(broker, tmp_path):
    return Bench(broker, tmp_path)


@pytest.fixture
def app(bench):
    return CountingApp(bench)


@pytest.fixture
def logged():
    """Everything the engine says, as it is said."""
    with structlog.testing.capture_logs() as lines:
        yield lines


def failure_of(streams, timeout_seconds=30):
    """What ended the app."""
    wait_for(lambda: streams.state is ClientState.ERROR, timeout_seconds)
    return streams.failure


def is_one_sentence(error):
    """A fact, in lower case, on one line, and what to do behind a semicolon."""
    text = str(error)
    return isinstance(error, sf.StreamsError) and "\n" not in text and "; " in text and not text[0].isupper()


def wait_for(condition, timeout_seconds=30):
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        assert time.monotonic() < deadline, "not reached in time"
        time.sleep(0.02)


def delete_topic(bench, topic):
    for future in bench.admin.delete_topics([topic]).values():
        future.result(10)
    wait_for(lambda: topic not in bench.admin.list_topics(timeout=10).topics)


def _deleted(bench, before):
    try:
        for future in bench.admin.delete_records(before).values():
            future.result(10)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.POLICY_VIOLATION:
            raise
        return False
    return True


def delete_records(bench, topic, offsets):
    """`offsets` by partition: everything before goes; -1 stands for the end."""
    policy = set_topic(bench, topic, "cleanup.policy", "delete")  # the broker deletes on demand only what it may delete
    before = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
    wait_for(lambda: _deleted(bench, before))  # the broker may take a moment to hear of the new policy
    set_topic(bench, topic, "cleanup.policy", policy)


def set_topic(bench, topic, setting, value):
    """Change a setting of a topic; returns what it was before."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    (described,) = bench.admin.describe_configs([resource]).values()
    before = described.result(10)[setting].value
    entry = ConfigEntry(setting, str(value), incremental_operation=AlterConfigOpType.SET)
    (changed,) = bench.admin.incremental_alter_configs(
        [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])]
    ).values()
    changed.result(10)
    return before


def offsets_of(bench, topics):
    """(end, committed offset) by partition; 0 where nothing was committed."""
    known = bench.admin.list_topics(timeout=10).topics
    partitions = [TopicPartition(topic, n) for topic in topics for n in known[topic].partitions]
    latest = {partition: OffsetSpec.latest() for partition in partitions}
    ends = {p: future.result(10).offset for p, future in bench.admin.list_offsets(latest).items()}
    places = {(p.topic, p.partition): end for p, end in ends.items()}
    committed = committed_offsets(bench.bootstrap, bench.app, [Place(*place) for place in places])
    return {place: (end, committed.get(Place(*place), 0)) for place, end in places.items()}


def read_topic(bench, topic, count, timeout_seconds=30):
    """The first committed messages of a topic."""
    messages, deadline = [], time.monotonic() + timeout_seconds
    with committed_reader(bench, [topic]) as reader:
        while len(messages) < count:
            assert time.monotonic() < deadline, f"{len(messages)} of {count} messages"
            messages += [message for message in reader.consume(500, 0.1) if message.error() is None]
    return messages


def fold(bench, topic, partition, up_to):
    """The last committed value of every key, tombstones left out, of the records up to an offset."""
    rows, position = {}, 0
    with committed_reader(bench, [topic]) as reader:
        deadline = time.monotonic() + 30
        while position <= up_to:
            assert time.monotonic() < deadline, f"{topic} was read to {position}, not to {up_to}"
            for message in reader.consume(500, 0.1):
                if message.error() is None and message.partition() == partition and message.offset() <= up_to:
                    rows[message.key()] = message.value()
            (place,) = reader.position([TopicPartition(topic, partition)])
            position = max(position, place.offset)
    return {key: value for key, value in rows.items() if value is not None}


@contextmanager
def committed_reader(bench, topics):
    """A consumer of all partitions of the topics, from their beginning; sees committed records only."""
    settings = {
        "bootstrap.servers": bench.bootstrap,
        "group.id": "reader",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 50,
    }
    reader = Consumer(settings)
    # New topics take a moment to show.
    wait_for(lambda: set(topics) <= bench.admin.list_topics(timeout=10).topics.keys())
    known = bench.admin.list_topics(timeout=10).topics
    reader.assign([TopicPartition(topic, n, OFFSET_BEGINNING) for topic in topics for n in known[topic].partitions])
    try:
        yield reader
    finally:
        reader.close()


def _totals(results):
    """The last count of every key; of a windowed key, whose last 8 bytes are the window's start, over all windows."""
    totals = Counter()
    for raw, counts in results.items():
        totals[(raw[:-8] if b"\x00" in raw else raw).decode()] += counts[-1]
    return totals


def _long(value):
    return int.from_bytes(value, "big")
