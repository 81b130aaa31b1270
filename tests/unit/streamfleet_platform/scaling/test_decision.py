from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.streamfleet_platform.scaling.measured_apps import NOW, bounds, chain

from streamfleet_platform.scaling.decision import decide
from streamfleet_platform.scaling.guards import Cause
from streamfleet_platform.scaling.measures import LastScaleUp, Recommendation, SlotMeasures, Task, TaskMeasures


def outcome(decision):
    return decision.action, decision.slots, decision.cause


def history(slots, hours=2):
    return [Recommendation(NOW - timedelta(minutes=5 * n), slots) for n in range(12 * hours + 1)]


BUSY = chain(lag=3_000_000)


def test_an_app_that_keeps_up_is_left_alone():
    decision = decide(chain(rate=8000, slots=12), bounds(), [], NOW)
    assert outcome(decision) == ("hold", 12, Cause.STEADY)


def test_a_short_backlog_within_the_promised_latency_is_left_alone():
    decision = decide(chain(rate=8000, lag=8000 * 30, slots=12), bounds(), [], NOW)
    assert outcome(decision) == ("hold", 12, Cause.STEADY)


def test_a_slot_that_may_use_part_of_a_cpu_is_full_earlier():
    steady = chain(rate=3000, slots=4)
    assert decide(steady, bounds(), [], NOW).action == "hold"
    half = decide(steady, bounds(slot_cpu=0.5), [], NOW)
    assert (half.action, half.slots) == ("up", 6)
    assert outcome(decide(steady, bounds(slot_cpu=4), [], NOW)) == outcome(decide(steady, bounds(), [], NOW))
    hot = decide(chain(rate=24_000, ratio=0.1, slots=12), bounds(slot_cpu=0.25), [], NOW)
    assert "needs" in hot.reason and "for itself" in hot.reason


def test_a_scale_up_says_what_it_is_expected_to_bring():
    """12 slots can do what is asked for; one does what it can."""
    decision = decide(BUSY, bounds(), [], NOW)
    demand = 10_000 / 0.7 + 3_000_000 / 1800
    everything = demand + 1.5 * demand
    assert 0.85 * everything < decision.expected_gain < everything
    assert decide(chain(rate=8000, slots=12), bounds(), [], NOW).expected_gain == 0


def test_the_quota_of_the_definition_is_used_and_named():
    decision = decide(BUSY, bounds(8), [], NOW)
    assert (
        outcome(decision) == ("up", 8, Cause.CPU_BOUND)
        and "still too much: the definition allows 8 slots" in decision.reason
    )
    decision = decide(chain(lag=3_000_000, slots=8), bounds(8), [], NOW)
    assert outcome(decision) == ("hold", 8, Cause.QUOTA_LIMITED)
    assert "worst slot" in decision.reason


def test_the_budget_of_the_fleet_is_used_and_named():
    decision = decide(BUSY, bounds(free_slots=5), [], NOW)
    assert outcome(decision) == ("up", 6, Cause.CPU_BOUND) and "budget leaves 5" in decision.reason
    assert outcome(decide(chain(lag=3_000_000, slots=6), bounds(free_slots=0), [], NOW)) == (
        "hold",
        6,
        Cause.BUDGET_LIMITED,
    )


def test_definitions_bounds_are_kept_whatever_the_load():
    assert outcome(decide(chain(rate=10, slots=2), bounds(12, 4), [], NOW)) == ("up", 4, Cause.QUOTA_LIMITED)
    assert outcome(decide(chain(rate=10, slots=6), bounds(4), [], NOW)) == ("down", 4, Cause.QUOTA_LIMITED)


def test_a_partition_that_is_too_much_for_any_slot_is_named():
    measures = chain(rate=100, ratio=0.1, slots=4)
    hot = Task("first", 7)
    measures = replace(measures, tasks={**measures.tasks, hot: TaskMeasures(6000.0, 0.0002, 1_000_000)})
    decision = decide(measures, bounds(), [], NOW)
    assert outcome(decision) == ("hold", 4, Cause.SKEW_LIMITED)
    assert "partition 7 of sub-topology first needs" in decision.reason and "cannot help" in decision.reason


def test_skew_does_not_keep_the_other_partitions_from_getting_their_slots():
    hot = Task("first", 7)
    measures = replace(BUSY, tasks={**BUSY.tasks, hot: TaskMeasures(60_000.0, 0.0002, 1_000_000)})
    decision = decide(measures, bounds(), [], NOW)
    assert decision.action == "up" and "partition 7 of sub-topology first" in decision.reason


def test_a_move_that_costs_more_than_it_brings_is_refused_with_both_numbers():
    decision = decide(chain(rate=3000, lag=2_000_000, state=200 * 2**30, slots=2), bounds(), [], NOW)
    assert outcome(decision) == ("hold", 2, Cause.STATE_BOUND)
    assert "costs" in decision.reason and "brings" in decision.reason and "to restore" in decision.reason


def test_a_caught_up_copy_makes_a_move_cheap():
    measures = chain(lag=3_000_000, state=50 * 2**30)
    dear = decide(measures, bounds(horizon_seconds=1e6), [], NOW)
    everywhere = {task: frozenset(range(1, 24)) for task in measures.tasks}
    cheap = decide(replace(measures, copies=everywhere), bounds(), [], NOW)
    assert dear.price.bytes_restored > 0
    assert (cheap.action, cheap.price.bytes_restored, cheap.price.waves) == ("up", 0, 0)


def test_a_move_that_takes_long_is_part_of_the_demand_it_is_priced_for():
    quick = decide(chain(rate=6000, lag=500_000, slots=2), bounds(horizon_seconds=1e9), [], NOW)
    slow = decide(chain(rate=6000, lag=500_000, slots=2, state=40 * 2**30), bounds(horizon_seconds=1e9), [], NOW)
    assert slow.recommended > quick.recommended


@pytest.mark.parametrize(
    ("slot", "cause"),
    [
        (SlotMeasures(0.3, produce_share=0.6), Cause.DOWNSTREAM_BOUND),
        (SlotMeasures(0.3, broker_share=0.6), Cause.BROKER_BOUND),
    ],
)
def test_slots_that_wait_are_not_multiplied(slot, cause):
    decision = decide(replace(BUSY, slots={0: slot}), bounds(), [], NOW)
    assert outcome(decision) == ("hold", 1, cause) and "60%" in decision.reason


def test_a_scale_up_without_effect_is_not_repeated():
    decision = decide(replace(BUSY, last_scale_up=LastScaleUp(5000, 100)), bounds(), [], NOW)
    assert outcome(decision) == ("hold", 1, Cause.INEFFECTIVE) and "100 of 5000 records/s" in decision.reason
    assert decide(replace(BUSY, last_scale_up=LastScaleUp(5000, 3000)), bounds(), [], NOW).action == "up"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"taken_at": NOW - timedelta(minutes=5)}, "300 s old"),
        ({"taken_at": NOW + timedelta(minutes=5)}, "from the future"),
        ({"tasks": dict(list(BUSY.tasks.items())[1:])}, "1 tasks are not measured, first_0"),
        ({"tasks": {**BUSY.tasks, Task("third", 0): TaskMeasures(1.0, 1.0)}}, "third_0"),
        ({"placement": {0: frozenset(BUSY.tasks), 1: frozenset(BUSY.tasks)}}, "by two slots"),
        ({"placement": {0: frozenset()}}, "24 tasks have no slot"),
        ({"tasks": {**BUSY.tasks, Task("first", 0): TaskMeasures(-1.0, 1.0)}}, "below zero"),
        ({"tasks": {**BUSY.tasks, Task("first", 0): TaskMeasures(float("nan"), 1.0)}}, "below zero, or none"),
        ({"tasks": {**BUSY.tasks, Task("first", 0): TaskMeasures(5.0, 0.0)}}, "reports no time"),
    ],
)
def test_nothing_is_decided_on_measurements_that_cannot_be_trusted(change, words):
    decision = decide(replace(BUSY, **change), bounds(), [], NOW)
    assert (decision.action, decision.cause, decision.recommended) == (
        "hold",
        Cause.BLIND,
        None,
    ) and words in decision.reason


def test_a_freeze_holds_for_its_time():
    freeze = {"scale": {"freeze": ({"cron": "0 0 * * 3", "for": "14h", "reason": "release"},)}}
    decision = decide(BUSY, bounds(**freeze), [], NOW)
    assert outcome(decision) == ("hold", 1, Cause.FROZEN) and "release" in decision.reason
    later = NOW + timedelta(hours=3)
    after = replace(BUSY, taken_at=later)
    assert decide(after, bounds(**freeze), [], later).action == "up"


def test_the_clock_starts_when_the_group_is_stable():
    assert decide(replace(BUSY, stable_since=None), bounds(), [], NOW).cause is Cause.SETTLING
    assert decide(replace(BUSY, stable_since=NOW - timedelta(seconds=20)), bounds(), [], NOW).cause is Cause.SETTLING
    assert decide(replace(BUSY, stable_since=NOW - timedelta(seconds=60)), bounds(), [], NOW).action == "up"


def test_advice_is_marked_and_not_acted_on():
    decision = decide(BUSY, bounds(scale={"mode": "advise"}), [], NOW)
    assert decision.is_advice and decision.slots == 12


IDLE = chain(rate=1000, slots=12)


def test_slots_are_given_back_after_the_delay():
    decision = decide(IDLE, bounds(), history(2), NOW)
    assert outcome(decision) == ("down", 2, Cause.CPU_BOUND)


def test_slots_are_not_given_back_before_the_delay_is_over():
    assert decide(IDLE, bounds(), [], NOW).cause is Cause.DELAYED
    assert decide(IDLE, bounds(), history(2)[:6], NOW).cause is Cause.DELAYED


def test_the_highest_recommendation_within_the_delay_wins():
    peak = [*history(2), Recommendation(NOW - timedelta(minutes=50), 6)]
    assert decide(IDLE, bounds(), peak, NOW).slots == 6
    old = [*history(2), Recommendation(NOW - timedelta(minutes=70), 6)]
    assert decide(IDLE, bounds(), old, NOW).slots == 2
    full = [*history(2), Recommendation(NOW - timedelta(minutes=50), 12)]
    assert outcome(decide(IDLE, bounds(), full, NOW)) == ("hold", 12, Cause.DELAYED)


def test_nothing_is_given_back_during_a_backlog():
    measures = chain(rate=1000, lag=300_000, slots=12)
    decision = decide(measures, bounds(), history(2), NOW)
    assert decision.action == "hold" and "no scale-down during a backlog" in decision.reason


def test_nothing_is_given_back_within_the_band():
    decision = decide(chain(rate=12_500, slots=24), bounds(), history(12), NOW)
    assert outcome(decision) == ("hold", 24, Cause.STEADY) and "within the band" in decision.reason


@given(
    rate=st.floats(0, 50_000),
    lag=st.floats(0, 1e7),
    slots=st.integers(1, 12),
    partitions=st.integers(1, 8),
    maximum=st.integers(1, 20),
    minimum=st.integers(1, 4),
    state=st.sampled_from([0, 2**30, 2**36]),
    free=st.none() | st.integers(0, 5),
)
def test_every_decision_stays_within_its_bounds_and_gives_its_reason(
    rate, lag, slots, partitions, maximum, minimum, state, free
):
    measures = chain(rate=rate, lag=lag, slots=slots, partitions=partitions, state=state)
    limits = bounds(max(maximum, minimum), minimum, free_slots=free)
    decision = decide(measures, limits, history(1), NOW)
    assert decision.reason
    if decision.action == "hold":
        assert decision.slots == slots
    else:
        assert limits.scale.min <= decision.slots <= limits.scale.max
        assert (decision.slots > slots) == (decision.action == "up")
    assert decide(measures, limits, history(1), NOW) == decision


@given(rate=st.floats(100, 20_000), more=st.floats(1.0, 3.0))
def test_more_records_never_need_fewer_slots(rate, more):
    few, many = (
        decide(chain(rate=r, slots=3), bounds(move_seconds=30), [], NOW).recommended for r in (rate, rate * more)
    )
    assert many >= few
