"""Probing asks the leader until what was ready has moved, with pauses, and after some rounds it says that it was no use."""

import pytest
from tests.unit.streamfleet_platform.simulated_world import Lab

from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.operations.probe import ROUND_SECONDS, ROUNDS


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path).deployed(min=3)
    lab.observer.leader = 2
    lab.observer.warm_ups = {0: (1, 0), 1: (0, 500)}
    lab.step()
    yield lab
    lab.server.close()


def begun(lab, *, passes=0, seconds=0.0):
    operation = lab.operate(OperationKind.PROBE)
    for _ in range(passes):
        lab.step()
        lab.clock.advance(seconds)
    return lab.fleet.operation(operation.id)


def test_the_leader_is_asked_and_what_was_ready_has_moved(lab):
    over = lab.run(begun(lab).id)
    assert (over.state, over.result) == ("succeeded", {"ready": ["1_0@1"], "moved": ["1_0@1"]})
    assert lab.doors.orders == [("one", 2, "probe")]


def test_a_leader_that_is_away_is_not_waited_for(lab):
    lab.observer.unready = {2}
    assert lab.run(begun(lab).id).result["moved"] == ["1_0@1"]
    assert lab.doors.orders == [("one", 0, "probe")]


def test_nobody_is_asked_while_nothing_is_ready(lab):
    lab.observer.warm_ups = {1: (0, 500)}
    over = lab.run(begun(lab).id)
    assert (over.state, over.result, lab.doors.orders) == ("succeeded", {"ready": []}, [])


def test_rounds_that_move_nothing_fail_and_say_what_did_not_move(lab):
    lab.doors.probed = lambda: None
    operation = begun(lab, passes=ROUNDS + 5, seconds=ROUND_SECONDS)
    assert operation.state == "failed"
    assert "5 rebalances moved none of 1_0@1" in operation.error
    assert lab.doors.orders == [("one", 2, "probe")] * ROUNDS


def test_rounds_have_pauses(lab):
    lab.doors.probed = lambda: None
    operation = begun(lab, passes=20)  # 0.3 s each
    assert operation.state == "running" and len(lab.doors.orders) == 1


def test_what_is_no_longer_wanted_there_is_no_failure(lab):
    lab.doors.probed = lambda: setattr(lab.observer, "warm_ups", {})
    over = lab.run(begun(lab).id)
    assert over.state == "succeeded" and "no longer wanted" in over.steps[-1].detail
