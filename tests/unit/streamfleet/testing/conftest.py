"""Small topologies, built with the Processor API, for the driver to run."""

from __future__ import annotations

import pytest

from streamfleet import serdes
from streamfleet.config import StreamsConfig
from streamfleet.processor.api import Processor
from streamfleet.state.stores import Stores
from streamfleet.testing import TopologyTestDriver
from streamfleet.topology.topology import Topology


class Step(Processor):
    """Does what a function f(context, record) says; `begin` is called at init."""

    def __init__(self, process, begin=None):
        self._process = process
        self._begin = begin

    def init(self, context):
        super().init(context)
        if self._begin is not None:
            self._begin(context)

    def process(self, record):
        self._process(self.context, record)


def step(process, begin=None):
    return lambda: Step(process, begin)


@pytest.fixture
def config():
    return StreamsConfig(
        application_id="app",
        default_key_serde=serdes.string(),
        default_value_serde=serdes.string(),
        changelog_deduplicate=False,
    )


@pytest.fixture
def make_step():
    return step


@pytest.fixture
def upper_case(make_step):
    """in -> upper -> out"""
    topology = Topology()
    topology.add_source("src", "in")
    topology.add_processor("upper", make_step(lambda c, r: c.forward(r.with_value(r.value.upper()))), "src")
    topology.add_sink("snk", "out", "upper")
    return topology


@pytest.fixture
def counting(make_step):
    """in -> count (with a store) -> out"""

    def count(context, record):
        store = context.get_state_store("counts")
        n = (store.get(record.key) or 0) + 1
        store.put(record.key, n)
        context.forward(record.with_value(str(n)))

    topology = Topology()
    topology.add_source("src", "in")
    topology.add_processor("count", make_step(count), "src")
    topology.add_state_store(Stores.key_value("counts", key_serde=serdes.string(), value_serde=serdes.long()), "count")
    topology.add_sink("snk", "out", "count")
    return topology


@pytest.fixture
def run(config):
    """run(topology, **settings): a started driver, closed after the test."""
    drivers = []

    def start(topology, now=0, **settings):
        driver = TopologyTestDriver(topology, config.with_(**settings), now=now)
        drivers.append(driver)
        return driver

    yield start
    for driver in drivers:
        driver.close()
