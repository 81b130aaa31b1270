"""StickyTaskAssignor: tasks stay where they are, as far as equal shares per thread allow; whether there is state does not count.

A TaskAssignor for apps whose state is small or quick to restore: a task that moves goes at once, and restores where it
arrives. There are standbys, and no warm-ups. What is nowhere goes to whoever has most of its state and room for it.
"""

from __future__ import annotations

from streamfleet.assignment.balance import Balance
from streamfleet.assignment.placing import (
    STATELESS_NON_OVERLAP_COST,
    STATELESS_TRAFFIC_COST,
    by_process,
    holders_by_lag,
    keep_homes,
    places,
    room_per_thread,
)
from streamfleet.assignment.racks import optimized_for_racks
from streamfleet.assignment.snapshot import TaskKey
from streamfleet.assignment.standby_racks import standbys_optimized_for_racks
from streamfleet.assignment.standbys import place_standbys
from streamfleet.assignment.task_assignor import ApplicationState, AssignmentError, TaskAssignment

TRAFFIC_COST = 1
NON_OVERLAP_COST = 10


class StickyTaskAssignor:
    def assign(self, state: ApplicationState) -> TaskAssignment:
        traffic_cost, non_overlap_cost = state.settings.rack_costs(TRAFFIC_COST, NON_OVERLAP_COST)
        even = _even_places(state)
        stateful = {task: even[task] for task in state.stateful()}
        stateless = {task: name for task, name in even.items() if task not in stateful}
        active = optimized_for_racks(
            state, stateful, traffic_cost=traffic_cost, non_overlap_cost=non_overlap_cost
        ) | optimized_for_racks(
            state, stateless, traffic_cost=STATELESS_TRAFFIC_COST, non_overlap_cost=STATELESS_NON_OVERLAP_COST
        )
        standbys = standbys_optimized_for_racks(
            state,
            active,
            place_standbys(state, active),
            traffic_cost=traffic_cost,
            non_overlap_cost=non_overlap_cost,
        )
        return TaskAssignment(processes=by_process(state, active, standbys, {}))

    def on_assignment_computed(self, assignment: TaskAssignment, error: AssignmentError) -> None:
        pass


def _even_places(state: ApplicationState) -> dict[TaskKey, str]:
    balance = Balance(places(state), heavy=set(state.stateful()))
    holders = holders_by_lag(state)
    keep_homes(state, balance, state.tasks)
    room = room_per_thread(state, len(state.tasks))
    for task in sorted(state.tasks, key=lambda task: (task not in holders, not state.tasks[task].stateful, task)):
        if task not in balance.place_of:
            balance.add(task, holders.get(task, ()), room)
    balance.even_out()
    return balance.place_of
