"""The GlobalUpdater over a real GlobalTask: nothing of a global topic is left out, and nothing is applied twice."""

import pytest

import streamfleet as sf
from streamfleet.errors import SerdeUnavailableError
from streamfleet.ids import TopicPartition
from streamfleet.metrics import Metrics
from streamfleet.ports import OffsetKind
from streamfleet.records import RawRecord
from streamfleet.task.global_task import GlobalTask
from streamfleet.task.store_engines import StoreEngines
from streamfleet.thread.global_updater import GlobalUpdater

PLACE = TopicPartition("amounts", 0)
TEXT, LONG = sf.serdes.string(), sf.serdes.long()


class Away(sf.serdes.Serde):
    """A serde that asks somebody, who may be away."""

    is_away = False

    def serialize(self, topic, value):
        return value.encode()

    def deserialize(self, topic, data):
        if self.is_away:
            raise SerdeUnavailableError("the registry does not answer")
        return data.decode()


class AddUp(sf.Processor):
    fails_at = None

    def init(self, context):
        self.sums = context.get_state_store("sums")

    def process(self, record):
        self.sums.put(record.key, (self.sums.get(record.key) or 0) + int(record.value))
        if record.value == AddUp.fails_at:
            raise ValueError("not today")


class Topic:
    """A consumer of the topic; `gives` is what the next poll gives."""

    def __init__(self):
        self.gives, self.at = [], 0

    def write(self, *values):
        self.gives = [
            RawRecord("amounts", 0, self.at + n, n, b"k", value.encode(), ()) for n, value in enumerate(values)
        ]

    def assign(self, positions):
        pass

    def poll_batch(self, wait_ms, limit):
        given, self.gives = self.gives, []
        self.at += len(given)
        return given

    def take_events(self):
        return []

    def position(self, partition):
        return self.at

    def lag_records(self, partition):
        return 0


class EmptyTopic:
    def list_offsets(self, partitions, kind):
        assert kind in (OffsetKind.EARLIEST, OffsetKind.LAST_STABLE)
        return dict.fromkeys(partitions, 0)


@pytest.fixture(params=["rocksdb", "in_memory"])
def feed(request, tmp_path, monkeypatch):
    """A topic that is fed to a store of sums, the store, and its serde."""
    monkeypatch.setattr(AddUp, "fails_at", None)
    serde, topic = Away(), Topic()
    store = sf.Stores.key_value("sums", kind=request.param, key_serde=TEXT, value_serde=LONG, logging=False)
    topology = sf.Topology()
    topology.add_global_store(store, "source", "amounts", "adding", AddUp, key_serde=TEXT, value_serde=serde)
    task = GlobalTask(
        tuple(topology.global_stores.values()),
        sf.StreamsConfig(application_id="app", state_dir=tmp_path),
        clock=sf.testing.ManualClock(),
        engines=StoreEngines(tmp_path / "global"),
        metrics=Metrics(),
    )
    updater = GlobalUpdater(task, topic, EmptyTopic(), (PLACE,), sf.testing.ManualClock())
    updater.bootstrap()
    yield updater, topic, task.stores["sums"], serde
    task.close()


def test_what_a_serde_could_not_read_is_read_when_it_can(feed):
    updater, topic, sums, serde = feed
    topic.write("1", "2", "3")
    serde.is_away = True
    for _ in range(2):
        with pytest.raises(SerdeUnavailableError):
            updater.run_once()
    serde.is_away = False
    updater.run_once()
    topic.write("10")
    updater.run_once()
    assert sums.get("k") == 16


def test_a_record_that_fails_is_told_in_every_step_and_nothing_of_its_batch_counts_twice(feed, monkeypatch):
    """A thread that is replaced goes on with it."""
    updater, topic, sums, _ = feed
    topic.write("1", "2", "3")
    monkeypatch.setattr(AddUp, "fails_at", "2")
    for _ in range(3):
        with pytest.raises(sf.ProcessingError, match="not today"):
            updater.run_once()
        assert sums.get("k") is None
    monkeypatch.setattr(AddUp, "fails_at", None)
    updater.run_once()
    assert sums.get("k") == 6
