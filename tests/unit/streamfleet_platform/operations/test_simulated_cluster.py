"""What stands in for Kafka in the tests of operations keeps the contract of the real one."""

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contracts.cluster_contract import ClusterContract
from tests.unit.streamfleet_platform.simulated_world import SimulatedCluster

from streamfleet_platform.runtime.api import WorkerSpec
from streamfleet_platform.runtime.simulated import SimulatedRuntime

SPEC = WorkerSpec("orders", "orders", 0, "r1", Path("code"), "app:topology")


class TestSimulatedCluster(ClusterContract):
    @pytest.fixture
    def runtime(self):
        return SimulatedRuntime()

    @pytest.fixture
    def cluster(self, runtime):
        return SimulatedCluster(runtime)

    @pytest.fixture
    def name(self):
        return "orders"

    @pytest.fixture
    def put(self, cluster):
        return cluster.put

    @pytest.fixture
    def join(self, runtime):
        @contextmanager
        def join(group):
            """A worker runs: the lab's apps have their name as application id."""
            runtime.start(replace(SPEC, app=group), token=1)
            yield
            runtime.kill(group, 0, token=1)

        return join
