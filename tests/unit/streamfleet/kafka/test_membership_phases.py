from __future__ import annotations

import itertools

import pytest

from streamfleet.errors import StreamsError
from streamfleet.kafka.membership_phases import OVER, TRANSITIONS, MembershipPhase, checked_transition


@pytest.mark.parametrize(("current", "target"), list(itertools.product(MembershipPhase, MembershipPhase)))
def test_only_moves_of_the_table_are_possible(current, target):
    if target in TRANSITIONS[current]:
        assert checked_transition(current, target) is target
    else:
        with pytest.raises(StreamsError, match=f"cannot go from {current.value} to {target.value}"):
            checked_transition(current, target)


def test_every_phase_can_end():
    for phase in set(MembershipPhase) - OVER:
        reached, new = {phase}, {phase}
        while new:
            new = {target for each in new for target in TRANSITIONS[each]} - reached
            reached |= new
        assert MembershipPhase.LEFT in reached
