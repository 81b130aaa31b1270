"""HighAvailabilityTaskAssignor (KIP-441): a task with state runs where its state is, until it is where it should be.

The default TaskAssignor. Pure: no clock, no randomness, the same answer for the same input. In this order:

1. where stateful tasks should be: in equal shares per thread. Who has a task keeps it, as far as that allows; in the
   original every task is dealt anew. So little moves when a process comes or goes, and nothing when all start again.
2. where standbys should be (standbys.py, standby_racks.py)
3. what of it can be done now: a process that is not ready (more than `acceptable.recovery.lag` behind) gets a warm-up, and
   somebody who is ready, or nearly, runs the task meanwhile (movements.py)
4. where stateless tasks should be: so that the shares are equal again. They go by where stateful tasks should be, not by
   where they are for now, so that they move once.

What waits for a warm-up is looked at again after `probing.rebalance.interval.ms`, or when the warm-up says that it is ready.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from streamfleet.assignment.balance import Balance
from streamfleet.assignment.movements import Movements
from streamfleet.assignment.placing import (
    STATELESS_NON_OVERLAP_COST,
    STATELESS_TRAFFIC_COST,
    by_process,
    holders_by_lag,
    keep_homes,
    lag_of,
    places,
    room_per_thread,
)
from streamfleet.assignment.racks import optimized_for_racks
from streamfleet.assignment.snapshot import TaskKey
from streamfleet.assignment.standby_racks import standbys_optimized_for_racks
from streamfleet.assignment.standbys import place_standbys
from streamfleet.assignment.task_assignor import ApplicationState, AssignmentError, TaskAssignment

BLIND_PROBE_MS = 10_000
"""Until the next attempt, when the ends of the changelogs could not be found out."""
TRAFFIC_COST = 10
NON_OVERLAP_COST = 1


class HighAvailabilityTaskAssignor:
    def assign(self, state: ApplicationState) -> TaskAssignment:
        ideal = _stateful_places(state)
        traffic_cost, non_overlap_cost = state.settings.rack_costs(TRAFFIC_COST, NON_OVERLAP_COST)
        standbys = standbys_optimized_for_racks(
            state,
            ideal,
            place_standbys(state, ideal),
            traffic_cost=traffic_cost,
            non_overlap_cost=non_overlap_cost,
        )
        moves = Movements(state, standbys)
        for task, name in moves.in_order(ideal):
            moves.decide(task, name)
        moves.decide_standbys()
        active = moves.active | _stateless_places(state, ideal)
        return TaskAssignment(
            processes=by_process(state, active, moves.standbys, moves.warmups),
            next_probe_ms=_next_probe_ms(state, moves),
        )

    def on_assignment_computed(self, assignment: TaskAssignment, error: AssignmentError) -> None:
        pass


def _stateful_places(state: ApplicationState) -> dict[TaskKey, str]:
    tasks = list(state.stateful())
    acceptable = state.settings.acceptable_recovery_lag
    heavy = {task for task in tasks if (lag := state.tasks[task].full_lag) is None or lag > acceptable}
    balance = Balance(places(state), heavy=heavy)
    holders = holders_by_lag(state)
    keep_homes(state, balance, tasks)
    room = room_per_thread(state, len(tasks))
    # What has state somewhere comes first, or its place there could be taken by a task that has none anywhere.
    for task in sorted(tasks, key=lambda task: (task not in holders, task)):
        if task not in balance.place_of:
            ready = [name for name in holders.get(task, ()) if state.is_ready(state.processes[name], task)]
            if task in heavy and (ready := [name for name in ready if balance.can_run(name, task)]):
                balance.add_among(task, ready)  # it will run there for now, whatever is decided
            else:
                balance.add(task, holders.get(task, ()), room)
    if not state.lags_known:
        return balance.place_of
    # What anybody can have at once moves before what needs a warm-up: so a follow-up finds nothing more to move.
    balance.even_out(light_only=True)
    balance.prefer(_cheap_moves(state, holders, balance.place_of))
    balance.even_out()
    traffic_cost, non_overlap_cost = state.settings.rack_costs(TRAFFIC_COST, NON_OVERLAP_COST)
    return optimized_for_racks(state, balance.place_of, traffic_cost=traffic_cost, non_overlap_cost=non_overlap_cost)


def _cheap_moves(
    state: ApplicationState, holders: Mapping[TaskKey, list[str]], place_of: Mapping[TaskKey, str]
) -> Iterator[tuple[TaskKey, str]]:
    """To processes that have state of the task, the least behind first: a move that was begun goes on."""
    moves = [
        (lag_of(state, state.processes[name], task), task, name)
        for task, names in holders.items()
        for name in names
        if place_of.get(task) != name
    ]
    return ((task, name) for _, task, name in sorted(moves))


def _stateless_places(state: ApplicationState, stateful: Mapping[TaskKey, str]) -> dict[TaskKey, str]:
    balance = Balance(places(state), heavy=(), base=Counter(stateful.values()))
    tasks = [task for task, info in state.tasks.items() if not info.stateful]
    keep_homes(state, balance, tasks)
    for task in tasks:
        if task not in balance.place_of:
            balance.add(task, (), 0)
    balance.even_out()
    return optimized_for_racks(
        state,
        balance.place_of,
        traffic_cost=STATELESS_TRAFFIC_COST,
        non_overlap_cost=STATELESS_NON_OVERLAP_COST,
    )


def _next_probe_ms(state: ApplicationState, moves: Movements) -> int | None:
    if not state.lags_known:
        return BLIND_PROBE_MS
    return state.settings.probing_interval_ms if moves.waiting else None
