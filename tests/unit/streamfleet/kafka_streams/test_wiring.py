"""What the parts of an app are given: without a broker, none of them asks for longer than those who wait for it."""

import time

import pytest

import streamfleet as sf
from streamfleet.changelog.listeners import UpdateListeners
from streamfleet.changelog.state_updater import LET_GO_SECONDS
from streamfleet.failpoints import NoFailpoints
from streamfleet.ids import TopicPartition
from streamfleet.kafka.client_errors import BrokerUnavailableError
from streamfleet.kafka_streams import wiring
from streamfleet.metrics import Metrics
from streamfleet.ports import OffsetKind
from streamfleet.state.rocksdb_engine import RocksDBOptions
from streamfleet.state.state_directory import StateDirectory
from streamfleet.thread.task_factory import TaskFactory

NOWHERE = "127.0.0.1:9"


@pytest.fixture
def parts(tmp_path):
    """A StreamThread of an app whose broker is away, with what is beside it."""
    builder = sf.StreamsBuilder()
    builder.stream("in", key_serde=sf.serdes.string()).group_by_key().count(store="counts")
    topology, clock, metrics = builder.build(), sf.testing.ManualClock(), Metrics()
    config = sf.StreamsConfig(application_id="app", bootstrap_servers=NOWHERE, state_dir=tmp_path)
    directory = StateDirectory(tmp_path, "app")
    factory = TaskFactory(
        topology=topology,
        plan=topology.plan({"in": 1}, config),
        partitions={"in": 1},
        topic_ids=dict,
        config=config,
        directory=directory,
        clock=clock,
        metrics=metrics,
        global_stores={},
        rocksdb_options=RocksDBOptions(),
    )
    made = wiring.Wiring(topology, config, directory, "process", clock, metrics, NoFailpoints(), UpdateListeners())
    yield made.thread(0, factory)
    made.close()


def test_a_state_updater_lets_go_of_its_tasks_long_before_it_is_given_up():
    assert wiring.UPDATER_ASKING_MS / 1000 < LET_GO_SECONDS / 2


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(wiring, "UPDATER_ASKING_MS", 400)


def test_a_state_updater_does_not_ask_a_broker_that_is_away_for_long(short, parts):
    began = time.monotonic()
    with pytest.raises(BrokerUnavailableError, match="within 400 ms"):
        parts.updater._admin.list_offsets([TopicPartition("app-counts-changelog", 0)], OffsetKind.EARLIEST)
    assert time.monotonic() - began < 5
