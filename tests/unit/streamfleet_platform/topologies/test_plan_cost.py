from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfleet_platform.topologies.plan_cost import UpgradeFacts, plan_cost
from streamfleet_platform.topologies.verdicts import Change, LockDiff, Verdict

FACTS = UpgradeFacts(
    slots=4,
    tasks=24,
    store_bytes={"totals": 10 * 2**30, "windows": 2**30},
    records_per_second=1000,
    capacity_per_second=1500,
    restart_seconds=10,
    restore_bytes_per_second=100 * 2**20,
    downstream=frozenset({"billing"}),
)


def diff(verdict, what="any", lost=()):
    return LockDiff((Change(what, "totals", verdict, "", lost_state=lost),))


def test_nothing_costs_nothing():
    cost = plan_cost(LockDiff(()), FACTS)
    assert (cost.tasks_moved, cost.bytes_restored, cost.lag_records, cost.catch_up_seconds) == (0, 0, 0, 0)
    assert cost.downstream_touched == ()


def test_a_rolling_change_stops_one_slot_at_a_time():
    cost = plan_cost(diff(Verdict.ROLLING), FACTS)
    assert (cost.tasks_moved, cost.seconds_without_progress, cost.lag_records) == (0, 10, 2500)
    assert cost.catch_up_seconds == 5
    assert plan_cost(diff(Verdict.ROLLING), replace(FACTS, static_members=False)).tasks_moved == 24


def test_a_restart_stops_all_of_them():
    assert plan_cost(diff(Verdict.RESTART), FACTS).lag_records == 10_000


def test_state_that_is_made_anew_takes_the_time_its_bytes_take():
    cost = plan_cost(diff(Verdict.INCOMPATIBLE, lost=("totals",)), FACTS)
    assert cost.bytes_restored == 10 * 2**30
    assert cost.seconds_without_progress == pytest.approx(10 + 102.4)
    assert cost.downstream_touched == ("billing",)
    assert "bytes restored: 10 GiB" in cost.lines()


def test_a_removed_store_is_not_restored():
    assert plan_cost(diff(Verdict.RESTART, "store removed", ("totals",)), FACTS).bytes_restored == 0


def test_slots_without_room_never_catch_up():
    cost = plan_cost(diff(Verdict.RESTART), replace(FACTS, capacity_per_second=1000))
    assert cost.catch_up_seconds is None and "never, without more slots" in cost.lines()[3]


@given(st.sampled_from(Verdict), st.sampled_from(Verdict))
def test_a_heavier_verdict_never_costs_less(one, other):
    light, heavy = sorted((one, other))
    costs = [plan_cost(diff(verdict, lost=("totals",)), FACTS) for verdict in (light, heavy)]
    assert costs[0].lag_records <= costs[1].lag_records and costs[0].bytes_restored <= costs[1].bytes_restored
