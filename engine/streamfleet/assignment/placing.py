"""What the built-in assignors have in common: processes as places, who has state of what, and decisions as an assignment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streamfleet.assignment.balance import Balance
from streamfleet.assignment.load_order import Place
from streamfleet.assignment.snapshot import TaskKey
from streamfleet.assignment.task_assignor import ApplicationState, ProcessAssignment, ProcessState

STATELESS_TRAFFIC_COST = 1
STATELESS_NON_OVERLAP_COST = 0
"""Moving a task without state costs nothing, whatever the app says about the others."""


def places(state: ApplicationState) -> list[Place]:
    return [Place(name, process.threads, process.can_run) for name, process in state.processes.items()]


def room_per_thread(state: ApplicationState, tasks: int) -> int:
    threads = sum(process.threads for process in state.processes.values() if process.can_run)
    return -(-tasks // threads) if threads else 0


def keep_homes(state: ApplicationState, balance: Balance, tasks: Iterable[TaskKey]) -> None:
    """Tasks stay in the process that has them."""
    homes = {task: name for name, process in state.processes.items() for task in process.active}
    for task in tasks:
        if (home := homes.get(task)) is not None and balance.can_run(home, task):
            balance.keep(task, home)


def lag_of(state: ApplicationState, process: ProcessState, task: TaskKey) -> int:
    """How far behind a process is with a stateful task, whether it has any of it or not."""
    return process.lags.get(task, state.tasks[task].full_lag or 0)


def holders_by_lag(state: ApplicationState) -> dict[TaskKey, list[str]]:
    """Processes that have state of a task: the least behind first, then those that keep it up to date."""
    found: dict[TaskKey, list[tuple[int, bool, str]]] = {}
    for name, process in state.processes.items():
        for task in process.lags.keys() | process.standby:
            found.setdefault(task, []).append((lag_of(state, process, task), task not in process.standby, name))
    return {task: [name for _, _, name in sorted(entries)] for task, entries in found.items()}


def by_process(
    state: ApplicationState,
    active: Mapping[TaskKey, str],
    standbys: Mapping[TaskKey, Iterable[str]],
    warmups: Mapping[TaskKey, Iterable[str]],
) -> dict[str, ProcessAssignment]:
    tasks: dict[str, tuple[set[TaskKey], set[TaskKey], set[TaskKey]]]
    tasks = {name: (set(), set(), set()) for name in state.processes}
    for task, name in active.items():
        tasks[name][0].add(task)
    for kind, copies in ((1, standbys), (2, warmups)):
        for task, names in copies.items():
            for name in names:
                tasks[name][kind].add(task)
    return {
        name: ProcessAssignment(active=frozenset(own[0]), standby=frozenset(own[1]), warmup=frozenset(own[2]))
        for name, own in tasks.items()
    }
