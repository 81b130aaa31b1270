"""Schedules of faults: drawn from a seed, never two faults for one victim at a time, over in time."""

import itertools

from hypothesis import given
from hypothesis import strategies as st
from tests.ledger.nemesis import DURATIONS, KINDS, KINDS_WITH_COPIES, draw_schedule
from tests.ledger.variants import Variant

seeds = st.integers(0, 10_000)


@given(seeds, st.floats(20, 300))
def test_a_seed_always_draws_the_same_schedule_within_the_time(seed, seconds):
    faults = draw_schedule(seed, seconds, workers=3)
    assert faults == draw_schedule(seed, seconds, workers=3)
    assert faults
    assert all(fault.end <= seconds + DURATIONS["pause"][1] for fault in faults)


@given(seeds)
def test_a_victim_has_one_fault_at_a_time(seed):
    by_victim = {}
    for fault in draw_schedule(seed, 200, workers=3):
        by_victim.setdefault(fault.victim, []).append(fault)
    for faults in by_victim.values():
        faults.sort(key=lambda fault: fault.begin)
        assert all(one.end <= other.begin for one, other in itertools.pairwise(faults))


def test_all_kinds_of_faults_are_drawn():
    drawn = {fault.kind for seed in range(10) for fault in draw_schedule(seed, 60, workers=3)}
    assert drawn == set(KINDS)


def test_with_copies_probes_are_drawn_too():
    drawn = {fault.kind for seed in range(10) for fault in draw_schedule(seed, 60, 3, KINDS_WITH_COPIES)}
    assert drawn == {*KINDS, "probe"} == set(Variant(standbys=1).kinds)
    assert Variant().kinds == KINDS


@given(seeds, st.sets(st.sampled_from(KINDS_WITH_COPIES), min_size=1))
def test_only_the_kinds_asked_for_are_drawn(seed, kinds):
    assert {fault.kind for fault in draw_schedule(seed, 60, 3, sorted(kinds))} <= kinds
