"""Two sub-topologies of 12 partitions, 0.2 and 0.3 ms per record, 1.5 records out per record in, 10 000 records/s, a backlog of
3 million, 70 % utilization, 30 minutes to catch up, 30 s for a move.
"""

import pytest
from tests.unit.streamfleet_platform.scaling.measured_apps import NOW, bounds, chain

from streamfleet_platform.scaling.decision import decide
from streamfleet_platform.scaling.demand import demands, loads
from streamfleet_platform.scaling.guards import Cause
from streamfleet_platform.scaling.need import smallest_fit
from streamfleet_platform.scaling.simulation import effective_steps, simulate, worst_slot

MEASURES = chain(lag=3_000_000)
DEMAND = demands(MEASURES, target=0.7, move_seconds=30, catch_up_seconds=1800)
LOADS = loads(MEASURES, DEMAND)


def worst(slots):
    return worst_slot(simulate(MEASURES, slots), LOADS)[1]


def test_the_total_load_is_10_48():
    assert sum(LOADS.values()) == pytest.approx(10.48, abs=0.005)


def test_eleven_slots_are_not_enough_although_there_is_work_for_ten_and_a_half():
    assert worst(11) == pytest.approx(1.48, abs=0.005)


def test_twelve_slots_are_the_first_that_fit():
    assert len(smallest_fit(MEASURES, LOADS, 1, 24)) == 12
    assert worst(12) == pytest.approx(0.87, abs=0.005)


def test_nothing_improves_before_twenty_four():
    assert list(effective_steps(24, 1, 24)) == [1, 2, 3, 4, 5, 6, 8, 12, 24]
    assert all(worst(slots) >= worst(12) - 1e-9 for slots in range(13, 24))
    assert worst(24) == pytest.approx(0.60, abs=0.005)


def test_the_decision_says_all_that():
    decision = decide(MEASURES, bounds(move_seconds=30), [], NOW)
    assert (decision.action, decision.slots, decision.cause, decision.recommended) == ("up", 12, Cause.CPU_BOUND, 12)
    assert "total load 10.48; worst slot 10.48 with 1 slots, 0.87 with 12" in decision.reason
