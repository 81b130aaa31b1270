"""Growing waits for its new slots and their tasks as long as it gets closer to the end, and then goes back."""

import pytest
from tests.unit.streamfleet_platform.simulated_world import Lab

from streamfleet_platform.model.operation import OperationKind


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path).deployed()  # restoredWithin: 1m
    yield lab
    lab.server.close()


def passes(lab, seconds, count=1):
    for _ in range(count):
        lab.clock.advance(seconds)
        lab.step()


def test_a_slot_that_never_becomes_ready_is_taken_away_again_with_the_reason(lab):
    lab.observer.unready = {1}
    operation = lab.operate(OperationKind.SCALE, slots=2)
    passes(lab, 10, 5)
    assert lab.fleet.operation(operation.id).state == "running"
    passes(lab, 10, 3)
    over = lab.run(operation.id)
    assert over.state == "rolled_back" and over.error.startswith("no progress for 1 m: slot 1 is rebalancing")
    assert sorted(lab.pids()) == [0] and lab.fleet.app("one").slots == 1
    lab.observer.unready = set()
    assert lab.run(lab.operate(OperationKind.SCALE, slots=2).id).state == "succeeded", "free for the next one"


def test_a_warm_up_that_gets_on_may_take_as_long_as_it_takes(lab):
    lab.observer.warm_ups = {0: (1, 1000)}
    operation = lab.operate(OperationKind.SCALE, slots=2)
    for lag in range(900, -1, -100):
        passes(lab, 40)
        lab.observer.warm_ups = {0: (1, lag)}
    assert lab.run(operation.id).state == "succeeded"
    assert lab.doors.orders == [("one", 0, "probe")], "asked when it was ready, and no sooner"
    assert lab.observer.placed == {0: 1}


def test_a_warm_up_that_stands_still_is_given_up(lab):
    lab.observer.warm_ups = {0: (1, 1000)}
    operation = lab.operate(OperationKind.SCALE, slots=2)
    passes(lab, 10, 9)
    over = lab.run(operation.id)
    assert over.state == "rolled_back" and "no progress for 1 m: 1 warm-ups, 1000 records to go" in over.error


def test_a_warm_up_that_does_not_know_yet_what_it_lacks_is_not_nearer_than_one_that_does(lab):
    lab.observer.warm_ups = {0: (1, None)}
    operation = lab.operate(OperationKind.SCALE, slots=2)
    passes(lab, 10, 2)
    assert "those of 1 are not known yet" in lab.fleet.operation(operation.id).step
    for lag in (2000, 1500, 1000, 500):
        lab.observer.warm_ups = {0: (1, lag)}
        passes(lab, 40)
    lab.observer.warm_ups = {0: (1, 0)}
    assert lab.run(operation.id).state == "succeeded"


def test_rebalances_that_move_nothing_are_asked_for_with_pauses_and_not_for_ever(lab):
    lab.observer.warm_ups = {0: (1, 0)}
    lab.doors.probed = lambda: None
    operation = lab.operate(OperationKind.SCALE, slots=2)
    passes(lab, 2, 35)
    assert "no progress" in lab.run(operation.id).error
    assert 8 <= len([order for order in lab.doors.orders if order[2] == "probe"]) <= 14
