"""The server is killed before and after every journalled step of deploy, scale, upgrade and reset: the next one resumes.

The steps are not written down here: each operation is run once to see which moments there are, then once per moment.
"""

import itertools

import pytest
from tests.unit.streamfleet_platform.simulated_world import Killed, Lab

from streamfleet_platform.model.operation import OperationKind


class Counter:
    """Kills at the nth moment; None: only writes the moments down."""

    def __init__(self, at=None):
        self.at = at
        self.seen = []

    def __call__(self, kind, step, moment):
        self.seen.append((kind, step, moment))
        if len(self.seen) - 1 == self.at:
            raise Killed


def deploy(lab):
    lab.declare(min=1)
    lab.start()
    return lambda: lab.apply().operations[0].id


def scale_out(lab):
    lab.deployed(min=1)
    return lambda: lab.operate(OperationKind.SCALE, slots=2).id


def scale_in(lab):
    lab.deployed(min=1)
    lab.run(lab.operate(OperationKind.SCALE, slots=2).id)
    return lambda: lab.operate(OperationKind.SCALE, slots=1).id


def upgrade(lab):
    lab.deployed(min=1)
    lab.declare(min=1, entry="rolling")
    return lambda: lab.operate(OperationKind.UPGRADE).id


def upgrade_without_state(lab):
    lab.deployed(min=1)
    lab.declare(min=1, entry="lossy")
    return lambda: lab.operate(OperationKind.UPGRADE, accept_lost_state=True).id


def reset(lab):
    lab.deployed(min=1)
    return lambda: lab.operate(OperationKind.RESET, confirm="one").id


CASES = [deploy, scale_out, scale_in, upgrade, upgrade_without_state, reset]


def run(path, case, at=None):
    """The lab after the operation, the moments it had, and the pids of workers before and right after the kill."""
    lab = Lab(path)
    begin = case(lab)
    counter = Counter(at)
    lab.server.loop._reconciler._journal._failpoint = counter
    operation = begin()
    before = lab.pids()
    try:
        lab.run(operation)
    except Killed:
        during = lab.pids()
        lab.kill()
        assert lab.pids() == during, "workers go on without a server"
        lab.start()
    assert lab.run(operation).state == "succeeded"
    lab.step()
    return lab, counter.seen, before


def outcome(lab):
    """What is to be the same, however often the server died."""
    app = lab.fleet.app("one")
    topics = sorted(lab.cluster.there)
    workers = [(w.slot, w.phase.value, w.revision) for w in lab.runtime.list("one")]
    steps = [(s.name, s.state.value) for s in lab.fleet.operation(lab.fleet.operations("one", 1)[0].id).steps]
    return app.phase, app.slots, app.revision, app.generation, topics, workers, steps, app.drift_details


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_server_killed_at_any_step_is_resumed_by_the_next(tmp_path, case):
    whole, moments, before = run(tmp_path / "whole", case)
    assert len(moments) >= 12
    expected = outcome(whole)
    for at in range(len(moments)):
        lab, seen, pids = run(tmp_path / f"{at}", case, at)
        assert outcome(lab) == expected, f"killed at {seen[-1]}"
        if case in (scale_out, scale_in):
            kept = {slot: pid for slot, pid in pids.items() if slot in lab.pids()}
            assert kept == {slot: lab.pids()[slot] for slot in kept}, "workers that stay never noticed"
        starts = [call for call in lab.runtime.calls if call[0] == "start"]
        assert len({w.pid for w in lab.runtime.list("one")}) == len(lab.runtime.list("one"))
        assert len(starts) <= len([c for c in whole.runtime.calls if c[0] == "start"]) + 1
        lab.server.close()
    whole.server.close()
    print(f"{case.__name__}: killed at {len(moments)} moments of {len(set(itertools.islice(moments, None)))} kinds")
