from dataclasses import replace
from pathlib import Path

import pytest
from tests.contracts.runtime_contract import RuntimeContract

from streamfleet_platform.runtime.api import WorkerPhase, WorkerSpec
from streamfleet_platform.runtime.simulated import SimulatedRuntime

SPEC = WorkerSpec("orders", "orders", 0, "r1", Path("code"), "app:topology")


class TestSimulatedRuntime(RuntimeContract):
    @pytest.fixture
    def runtime(self):
        return SimulatedRuntime()

    @pytest.fixture
    def spec(self):
        return lambda slot=0, revision="r1": replace(SPEC, slot=slot, revision=revision)

    @pytest.fixture
    def end(self, runtime):
        return lambda spec, code, words: runtime.end(spec.app, spec.slot, code, words)

    @pytest.fixture
    def lose(self, runtime):
        return lambda spec: runtime.lose(spec.app, spec.slot)


def test_a_slow_one_moves_only_when_told():
    runtime = SimulatedRuntime(is_slow=True)
    runtime.start(SPEC, token=1)
    assert runtime.describe("orders", 0).phase is WorkerPhase.STARTING
    runtime.settle()
    runtime.stop("orders", 0, token=1)
    assert runtime.describe("orders", 0).phase is WorkerPhase.STOPPING
    runtime.settle()
    assert runtime.describe("orders", 0).phase is WorkerPhase.STOPPED
    assert runtime.calls == [("start", "orders", 0), ("stop", "orders", 0)]


def test_many_ends_are_a_crash_loop():
    runtime = SimulatedRuntime(too_many=2)
    runtime.start(SPEC, token=1)
    runtime.end("orders", 0, 1, "no")
    runtime.end("orders", 0, 1, "no")
    assert runtime.describe("orders", 0).phase is WorkerPhase.CRASH_LOOP
