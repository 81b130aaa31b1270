"""A real server is killed (kill -9) before and after every journalled step of deploy, scale, upgrade (rolling, and all at once),
reset, stop and start, on a real broker with real workers, of every slot: the next server finishes the operation, workers that it is
not about never notice, and results stay exact.

Every operation is carried out once undisturbed, to see which steps there are, then once per moment.
"""

import pytest
from tests.integration.streamfleet_platform.real_fleet import RealFleet, until

from streamfleet_platform.operations.journal import MOMENTS


@pytest.fixture
def fleet(broker, tmp_path):
    fleet = RealFleet(tmp_path, broker.bootstrap_servers)
    yield fleet
    fleet.close()


class Deploy:
    kind, keeps = "deploy", ()

    def prepare(self, fleet):
        if fleet.client.apps():
            fleet.finish(fleet.client.retire(fleet.name, confirm=fleet.name, undo_window_seconds=0))

    def begin(self, fleet):
        return fleet.client.apply().operations[0]


class ScaleOut:
    kind, keeps = "scale", (0,)

    def prepare(self, fleet):
        if fleet.client.app(fleet.name).slots != 1:
            fleet.finish(fleet.client.scale(fleet.name, 1))

    def begin(self, fleet):
        return fleet.client.scale(fleet.name, 2)


class ScaleIn:
    kind, keeps = "scale", (0,)

    def prepare(self, fleet):
        if fleet.client.app(fleet.name).slots != 2:
            fleet.finish(fleet.client.scale(fleet.name, 2))

    def begin(self, fleet):
        return fleet.client.scale(fleet.name, 1)


class Upgrade:
    kind, keeps, entry = "upgrade", (), "topology"

    def prepare(self, fleet):
        self.entry = "other" if self.entry == "topology" else "topology"

    def begin(self, fleet):
        return fleet.upgrade_to(self.entry)


class UpgradeOfAll(Upgrade):
    """A store comes, or goes: all workers stop before one starts."""

    def prepare(self, fleet):
        self.entry = "restart" if self.entry == "topology" else "topology"


class Stop:
    kind, keeps, runs = "stop", (), False

    def prepare(self, fleet):
        if fleet.client.app(fleet.name).desired == "stopped":
            fleet.finish(fleet.client.start(fleet.name))

    def begin(self, fleet):
        return fleet.client.stop(fleet.name)


class Start:
    kind, keeps = "start", ()

    def prepare(self, fleet):
        if fleet.client.app(fleet.name).desired != "stopped":
            fleet.finish(fleet.client.stop(fleet.name))

    def begin(self, fleet):
        return fleet.client.start(fleet.name)


class Reset:
    kind, keeps = "reset", ()

    def prepare(self, fleet):
        pass

    def begin(self, fleet):
        return fleet.client.reset(fleet.name, confirm=fleet.name)


CASES = [Deploy(), ScaleOut(), ScaleIn(), Upgrade(), UpgradeOfAll(), Reset(), Stop(), Start()]


@pytest.mark.timeout(1800)  # dozens of servers, one after the other
@pytest.mark.parametrize("case", CASES, ids=lambda case: type(case).__name__)
def test_the_next_server_finishes_what_a_killed_one_began(fleet, case):
    fleet.deployed()
    if case.kind in ("upgrade", "stop", "start", "reset"):
        fleet.finish(fleet.client.scale(fleet.name, 2))
    case.prepare(fleet)
    whole = fleet.finish(case.begin(fleet))
    steps = list(dict.fromkeys(step.name for step in whole.steps))  # of every slot
    moments = [f"{step}/{moment}" for step in steps for moment in MOMENTS] + ["end/begin"]
    for moment in moments:
        case.prepare(fleet)
        fleet.kill_server()
        fleet.start_server(f"{case.kind}/{moment}")
        before = fleet.pids()
        operation = case.begin(fleet)
        fleet.await_its_death()
        goes_on(fleet, case, before)
        fleet.start_server()
        fleet.finish(operation)
        goes_on(fleet, case, before)
        fleet.send()
        if getattr(case, "runs", True):
            fleet.assert_counts_are_exact()
        else:
            assert fleet.pids() == {}
        print(f"{type(case).__name__}: killed at {moment}, finished by the next", flush=True)


def goes_on(fleet, case, before):
    """Workers that the operation is not about are the same processes, and process."""
    now = fleet.pids()
    assert {slot: now.get(slot) for slot in case.keeps} == {slot: before[slot] for slot in case.keeps}
    if case.keeps:
        results = fleet.results()
        fleet.send()
        until(lambda: fleet.results() > results, "results of workers that nobody looks after")
