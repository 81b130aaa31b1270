"""Members become processes: what an assignor decides by, made from what members report.

Called by group_assignment.py. Threads of one process share a state directory, so where state is is a question of processes;
which of its threads runs what is decided later (threads.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from streamfleet.assignment.runnable import Runnable
from streamfleet.assignment.snapshot import Member, Snapshot, TaskKey
from streamfleet.assignment.task_assignor import ApplicationState, ProcessState, TaskInfo


def application_state(
    snapshot: Snapshot, members: Sequence[Member], runnable: Mapping[str, Runnable], owners: Mapping[TaskKey, str]
) -> ApplicationState:
    ends = snapshot.end_offset_sums
    tasks = {
        task: TaskInfo(
            task,
            entry.info.stateful,
            tuple(entry.info.partitions_of(task)),
            tuple(entry.info.changelogs_of(task)),
            None if ends is None else ends.get(task),
        )
        for _, entry in sorted(runnable.items())
        for task in entry.info.tasks()
    }
    by_process: dict[str, list[Member]] = {}
    for member in members:
        by_process.setdefault(member.report.process_id, []).append(member)
    state = ApplicationState(
        processes={
            process_id: _process(process_id, group, tasks, runnable, owners)
            for process_id, group in sorted(by_process.items())
        },
        tasks=tasks,
        settings=snapshot.settings,
        lags_known=ends is not None,
        partition_racks=snapshot.partition_racks,
    )
    taken = {task for process in state.processes.values() for task in process.active}
    return _with_previous(state, {name: _claims(group, tasks.keys() - taken) for name, group in by_process.items()})


def _claims(members: Sequence[Member], free: Collection[TaskKey]) -> set[TaskKey]:
    """What the process had, and nobody has now."""
    return {task for member in members for task in member.previous if task in free}


def _with_previous(state: ApplicationState, claims: Mapping[str, set[TaskKey]]) -> ApplicationState:
    """Processes that stopped one after the other had the tasks of those before them in the end. So of several that claim a task,
    if they are ready for it alike, it is the one that claims fewest.
    """
    owners: dict[TaskKey, tuple[bool, int, str]] = {}
    for name, tasks in claims.items():
        for task in tasks:
            if task.content_id in state.processes[name].can_run:
                ready = not state.tasks[task].stateful or state.is_ready(state.processes[name], task)
                claim = (not ready, len(tasks), name)
                owners[task] = min(owners.get(task, claim), claim)
    if not owners:
        return state
    processes = {
        name: msgspec.structs.replace(
            process, active=process.active | {task for task, owner in owners.items() if owner[2] == name}
        )
        for name, process in state.processes.items()
    }
    return msgspec.structs.replace(state, processes=processes)


def _process(
    process_id: str,
    members: Sequence[Member],
    tasks: Mapping[TaskKey, TaskInfo],
    runnable: Mapping[str, Runnable],
    owners: Mapping[TaskKey, str],
) -> ProcessState:
    ids = {member.member_id for member in members}
    owned = {task for member in members for task in member.report.owned if owners[task] == member.member_id}
    restoring = {task for member in members for task in member.report.restoring if owners.get(task) == member.member_id}
    promised = {task for member in members for task in member.promised if task not in owners}
    first = members[0].report
    return ProcessState(
        process_id=process_id,
        threads=len(members),
        can_run=frozenset(content_id for content_id, entry in runnable.items() if entry.eligible & ids),
        active=frozenset((owned | promised) & tasks.keys()),
        standby=frozenset(
            task for member in members for task in member.report.standby | member.previous_standby if task in tasks
        ),
        lags=_lags(members, tasks, owned - restoring),
        ready=frozenset(((owned - restoring) | promised) & tasks.keys()),
        endpoint=first.endpoint,
        tags=first.tags,
        rack=first.rack,
    )


def _lags(members: Sequence[Member], tasks: Mapping[TaskKey, TaskInfo], running: set[TaskKey]) -> dict[TaskKey, int]:
    lags: dict[TaskKey, int] = {}
    for member in members:
        for task, offset_sum in member.report.offset_sums.items():
            if (info := tasks.get(task)) is not None and info.stateful:
                lag = _lag(offset_sum, info.full_lag)
                lags[task] = min(lag, lags.get(task, lag))
    for task in running:
        if task in tasks and tasks[task].stateful:
            lags[task] = 0 if tasks[task].full_lag is not None else min(-1, lags.get(task, 0))
    return lags


def _lag(offset_sum: int, end: int | None) -> int:
    if end is None:
        return -offset_sum
    # State from beyond the end is of another topic, or of a log that lost its end: it is not a beginning of this one.
    return end - offset_sum if offset_sum <= end else end
