from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.streamfleet_platform.scaling.measured_apps import bounds, chain

from streamfleet_platform.scaling.demand import demands
from streamfleet_platform.scaling.measures import Task, TaskMeasures
from streamfleet_platform.scaling.price import price_move
from streamfleet_platform.scaling.simulation import effective_steps, simulate


@given(st.integers(1, 60), st.integers(1, 60))
def test_only_effective_steps_take_a_task_from_the_fullest_slot(tasks, high):
    steps = list(effective_steps(tasks, 1, high))
    assert steps[0] == 1
    shares = [-(-tasks // slots) for slots in steps]
    assert shares == sorted(set(shares), reverse=True)
    assert min(-(-tasks // slots) for slots in range(1, min(tasks, high) + 1)) == shares[-1]


@given(
    slots=st.integers(1, 8),
    to=st.integers(1, 10),
    partitions=st.integers(1, 6),
    standbys=st.integers(0, 1),
    stateful=st.booleans(),
)
def test_every_task_has_one_slot_and_slots_are_even(slots, to, partitions, standbys, stateful):
    measures = chain(slots=slots, partitions=partitions, stateful=stateful)
    placement = simulate(measures, to, standbys)
    placed = [task for tasks in placement.values() for task in tasks]
    assert sorted(placed) == sorted(measures.tasks) and len(placement) == to
    sizes = sorted(len(tasks) for tasks in placement.values())
    assert sizes[-1] - sizes[0] <= 1


@given(slots=st.integers(1, 12), partitions=st.integers(1, 6))
def test_nothing_moves_while_the_number_of_slots_stays(slots, partitions):
    measures = chain(slots=slots, partitions=partitions)
    assert simulate(measures, slots) == measures.placement
    assert price_move(measures, measures.placement, {}, bounds()).tasks_moved == 0


def test_a_scale_up_moves_no_more_than_it_must():
    measures = chain(slots=4)
    placement = simulate(measures, 6)
    assert price_move(measures, placement, {}, bounds()).tasks_moved == 8


def test_a_scale_down_empties_the_slots_with_the_highest_ordinals():
    measures = chain(slots=6)
    placement = simulate(measures, 4)
    assert sorted(placement) == [0, 1, 2, 3]
    kept = sum(len(placement[slot] & measures.placement[slot]) for slot in placement)
    assert kept == 16


def test_a_repartition_source_is_skewed_as_it_is_measured():
    measures = chain(partitions=2, rate=1000, ratio=1.0)
    hot = Task("second", 1)
    measures = replace(measures, tasks={**measures.tasks, hot: TaskMeasures(0.0, 0.0003, relayed_per_second=1500)})
    demand = demands(measures, target=1.0, move_seconds=0, catch_up_seconds=60)
    assert (demand[Task("second", 0)], demand[hot]) == (250, 750)


def test_a_backlog_behind_a_repartition_counts():
    measures = chain(partitions=1, rate=0)
    task = Task("second", 0)
    measures = replace(measures, tasks={**measures.tasks, task: TaskMeasures(0.0, 0.0003, lag_records=6000)})
    assert demands(measures, target=0.7, move_seconds=0, catch_up_seconds=60)[task] == 100
