from __future__ import annotations

import itertools

import pytest

from streamfleet.errors import StreamsError
from streamfleet.ids import TaskId
from streamfleet.task.phases import TRANSITIONS, TaskPhase, checked_transition, require

TASK = TaskId(1, 2)


@pytest.mark.parametrize(("current", "target"), list(itertools.product(TaskPhase, TaskPhase)))
def test_only_moves_of_the_table_are_possible(current, target):
    if target in TRANSITIONS[current]:
        assert checked_transition(TASK, current, target) is target
    else:
        with pytest.raises(StreamsError, match=f"task 1_2 cannot go from {current.value} to {target.value}"):
            checked_transition(TASK, current, target)


def test_every_task_can_be_closed_by_way_of_suspended():
    for phase in set(TaskPhase) - {TaskPhase.SUSPENDED, TaskPhase.CLOSED}:
        assert TaskPhase.SUSPENDED in TRANSITIONS[phase]
    assert TRANSITIONS[TaskPhase.CLOSED] == frozenset()


def test_refused_action_says_which_phase_it_needs():
    with pytest.raises(
        StreamsError, match="task 1_2 cannot commit while it is created; it must be running or suspended"
    ):
        require(TASK, TaskPhase.CREATED, TaskPhase.RUNNING, TaskPhase.SUSPENDED, action="commit")
