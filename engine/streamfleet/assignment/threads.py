"""Tasks of a process go to its threads.

Called by group_assignment.py. Active tasks with state are dealt first, then copies, then the rest, both so that they even out
what was dealt first. A thread keeps what it has; a copy that becomes active, or the other way round, stays on its thread, so
that its stores can stay open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from streamfleet.assignment.balance import Balance
from streamfleet.assignment.load_order import Place
from streamfleet.assignment.runnable import Runnable
from streamfleet.assignment.snapshot import Member, TaskKey
from streamfleet.assignment.task_assignor import ProcessAssignment


@dataclass
class ThreadTasks:
    """What one member is to have in the end, whether it can have it now or not."""

    active: list[TaskKey] = field(default_factory=list)
    standby: list[TaskKey] = field(default_factory=list)
    warmup: list[TaskKey] = field(default_factory=list)


def over_threads(
    members: Sequence[Member],
    assigned: ProcessAssignment,
    runnable: Mapping[str, Runnable],
    owners: Mapping[TaskKey, str],
) -> dict[str, ThreadTasks]:
    """By member id, for the members of one process."""
    places = [
        Place(
            member.member_id,
            1,
            frozenset(content for content, entry in runnable.items() if member.member_id in entry.eligible),
        )
        for member in members
    ]
    stateful = {task for task in assigned.active if runnable[task.content_id].info.stateful}
    homes = _homes(members, owners)
    result = {member.member_id: ThreadTasks() for member in members}
    heavy = _dealt(places, stateful, homes, {})
    load = Counter(heavy.values())
    copies = _dealt(places, assigned.standby | assigned.warmup, homes, load)
    for task, member_id in sorted(copies.items()):
        own = result[member_id]
        (own.warmup if task in assigned.warmup else own.standby).append(task)
    for task, member_id in sorted((heavy | _dealt(places, assigned.active - stateful, homes, load)).items()):
        result[member_id].active.append(task)
    return result


def _homes(members: Sequence[Member], owners: Mapping[TaskKey, str]) -> dict[TaskKey, str]:
    """Which of the threads has something of a task: best its owner, then who was promised it, who has a copy, who had it."""
    homes: dict[TaskKey, str] = {}
    for tasks_of in map(attrgetter, ("previous_standby", "previous", "report.standby", "promised")):
        for member in members:
            homes |= dict.fromkeys(tasks_of(member), member.member_id)
    for member in members:
        for task in member.report.owned:
            if owners[task] == member.member_id:
                homes[task] = member.member_id
    return homes


def _dealt(
    places: Sequence[Place], tasks: Collection[TaskKey], homes: Mapping[TaskKey, str], load: Mapping[str, int]
) -> dict[TaskKey, str]:
    balance = Balance(places, heavy=(), base=load)
    in_order = sorted(tasks)
    for task in in_order:
        if (home := homes.get(task)) is not None and balance.can_run(home, task):
            balance.keep(task, home)
    for task in in_order:
        if task not in balance.place_of:
            balance.add(task, (), 0)
    balance.even_out()
    return balance.place_of
