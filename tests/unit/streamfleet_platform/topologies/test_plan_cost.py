from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfleet_platform.topologies.plan_cost import Figure, UpgradeFacts, plan_cost
from streamfleet_platform.topologies.verdicts import Change, LockDiff, Verdict

FACTS = UpgradeFacts(
    slots=4,
    tasks=24,
    store_bytes={"totals": 10 * 2**30, "windows": 2**30},
    input_records=1_000_000,
    records_per_second=1000,
    capacity_per_second=Figure(1500),
    restart_seconds=Figure(10),
    restore_bytes_per_second=Figure(100 * 2**20),
    downstream=frozenset({"billing"}),
)


def diff(verdict, what="any", lost=()):
    return LockDiff((Change(what, "totals", verdict, "", lost_state=lost),))


def cost(verdict, what="any", lost=(), weight=None, facts=FACTS):
    return plan_cost(diff(verdict, what, lost), verdict if weight is None else weight, facts)


def test_nothing_costs_nothing():
    cost = plan_cost(LockDiff(()), Verdict.UNCHANGED, FACTS)
    assert (cost.tasks_moved, cost.bytes_restored, cost.lag_records, cost.catch_up_seconds) == (0, 0, 0, 0)
    assert cost.downstream_touched == cost.assumed == ()


def test_a_rolling_change_stops_one_slot_at_a_time():
    found = cost(Verdict.ROLLING)
    assert (found.tasks_moved, found.seconds_without_progress, found.lag_records) == (0, 10, 2500)
    assert found.catch_up_seconds == 5
    assert cost(Verdict.ROLLING, facts=replace(FACTS, static_members=False)).tasks_moved == 24


def test_other_code_with_the_same_topology_is_rolled_out_too():
    assert plan_cost(LockDiff(()), Verdict.ROLLING, FACTS).lag_records == 2500


def test_a_restart_stops_all_of_them():
    assert cost(Verdict.RESTART).lag_records == 10_000


def test_a_store_that_moves_to_another_engine_takes_the_time_its_bytes_take():
    found = cost(Verdict.RESTART, "store engine changed")
    assert found.bytes_restored == 10 * 2**30
    assert found.seconds_without_progress == pytest.approx(10 + 102.4)
    assert "bytes restored: 10 GiB" in found.lines()


@pytest.mark.parametrize(
    "found", [cost(Verdict.INCOMPATIBLE, lost=("totals",)), plan_cost(LockDiff(()), Verdict.MIGRATE, FACTS)]
)
def test_state_that_begins_anew_takes_all_of_the_inputs_again(found):
    """Whether the topology asks for that or a raised generation: all stores of the app are emptied."""
    assert (found.bytes_restored, found.bytes_rebuilt) == (0, 11 * 2**30)
    assert found.lag_records == 1_010_000 and found.catch_up_seconds == 2020
    assert found.downstream_touched == ("billing",)
    assert "backlog: at most 1010000 records, caught up after 33.7 m" in found.lines()


def test_a_removed_store_is_not_restored():
    assert cost(Verdict.RESTART, "store removed", ("totals",)).bytes_restored == 0


def test_slots_without_room_never_catch_up():
    found = cost(Verdict.RESTART, facts=replace(FACTS, capacity_per_second=Figure(1000)))
    assert found.catch_up_seconds is None and "never, without more slots" in found.lines()[3]
    unknown = cost(Verdict.MIGRATE, facts=replace(FACTS, records_per_second=0, capacity_per_second=None))
    assert "backlog: at most 1000000 records, caught up nobody knows when" in unknown.lines()


def test_what_nobody_measured_is_told_where_it_is_used():
    assert cost(Verdict.ROLLING).assumed == ()
    guess = replace(
        FACTS,
        input_records=None,
        capacity_per_second=Figure(2000, is_measured=False),
        restart_seconds=Figure(5, is_measured=False),
        restore_bytes_per_second=Figure(50e6, is_measured=False),
    )
    always = ["a worker restarts in 5 s", "the slots can process 2000 records/s"]
    assert list(cost(Verdict.ROLLING, facts=guess).assumed) == always
    restored = cost(Verdict.RESTART, "store engine changed", facts=guess)
    assert "not measured, assumed: 50 MB/s are restored" in restored.lines()
    assert "the inputs hold nothing" in cost(Verdict.MIGRATE, facts=guess).assumed


@given(st.sampled_from(Verdict), st.sampled_from(Verdict))
def test_a_heavier_verdict_never_costs_less(one, other):
    light, heavy = sorted((one, other))
    assert cost(light, lost=("totals",)).lag_records <= cost(heavy, lost=("totals",)).lag_records
