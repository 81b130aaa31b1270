"""An app that pretends to run, for what looks at one from outside."""

import pytest

import streamfleet as sf
from streamfleet.kafka_streams.states import ClientState
from streamfleet.metrics import Metrics
from streamfleet.testing.manual_clock import ManualClock
from streamfleet.worker.observed_app import ObservedApp

NOW_MS = 1_000_000


class FakeStreams:
    def __init__(self, **settings):
        self.config = sf.StreamsConfig(application_id="shop", bootstrap_servers="nowhere:9092", **settings)
        self.state = ClientState.CREATED
        self.failure = None
        self.statuses = []
        self._metrics = Metrics()
        self.is_paused = False
        self.waits_for_broker = None
        self.restore_rate_bytes_per_second = 0

    def threads(self):
        return self.statuses

    def metrics(self):
        return self._metrics


def counting_topology():
    builder = sf.StreamsBuilder()
    builder.stream("words").group_by(lambda key, word: word, name="by-word").count(store="counts").to_stream().to("out")
    return builder.build()


@pytest.fixture
def streams():
    return FakeStreams()


@pytest.fixture
def clock():
    return ManualClock(NOW_MS)


@pytest.fixture
def app(streams, clock):
    return ObservedApp(streams, counting_topology(), clock)


@pytest.fixture
def topology():
    return counting_topology()
