"""What of an assignment can be carried out at once, and whom a new owner has to fence first.

Called by group_assignment.py. A task moves in two rebalances: one that another member has not let go of, or whose partitions
another task still reads, is given to nobody yet but promised, and a follow-up is announced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from streamfleet.assignment.runnable import Runnable
from streamfleet.assignment.snapshot import Member, TaskKey
from streamfleet.ids import TopicPartition

Claim = tuple[str, TaskKey]
"""A member, and a task that it has."""


def possible_now(
    members: Sequence[Member],
    runnable: Mapping[str, Runnable],
    owners: Mapping[TaskKey, str],
    target: Mapping[TaskKey, str],
) -> dict[TaskKey, str]:
    """The part of the target that nobody is in the way of."""
    readers, claimants = _readers(members), _claimants(members)
    possible: dict[TaskKey, str] = {}
    for task, member_id in target.items():
        partitions = runnable[task.content_id].info.partitions_of(task)
        in_the_way = {reader for partition in partitions for reader in readers.get(partition, ())}
        in_the_way |= {(other, task) for other in claimants.get(task, ())}
        in_the_way.discard((member_id, task))
        if owners.get(task) == member_id:
            # It runs the task by the newest plan; whoever still claims it by an older one is told to let go.
            in_the_way = {(other, held) for other, held in in_the_way if held != task}
        if not in_the_way:
            possible[task] = member_id
    return possible


def _readers(members: Sequence[Member]) -> dict[TopicPartition, set[Claim]]:
    """Who reads a partition now, for which task: by what each member's own topology says about the tasks it has."""
    readers: dict[TopicPartition, set[Claim]] = {}
    for member in members:
        infos = {info.content_id: info for info in member.report.sub_topologies}
        for task in member.report.owned:
            if task.content_id in infos:
                for partition in infos[task.content_id].partitions_of(task):
                    readers.setdefault(partition, set()).add((member.member_id, task))
    return readers


def _claimants(members: Sequence[Member]) -> dict[TaskKey, list[str]]:
    claimants: dict[TaskKey, list[str]] = {}
    for member in members:
        for task in member.report.owned:
            claimants.setdefault(task, []).append(member.member_id)
    return claimants


def to_fence(
    members: Sequence[Member], given: Mapping[str, Iterable[TaskKey]], last_owners: Mapping[TaskKey, str]
) -> dict[str, tuple[str, ...]]:
    """By member. Never the id of one that is alive: in a hand-over the old owner ends its transaction by itself. A leader that was
    not there before does not know who ran a task; then it is every dead one that somebody remembers.
    """
    alive = {member.report.transactional_id for member in members}
    remembered = {peer for member in members for peer in member.peers}
    fences = {}
    for member in members:
        new = [task for task in given[member.member_id] if task not in member.report.owned]
        owners = {last_owners[task] for task in new if task in last_owners}
        if any(task not in last_owners for task in new):
            owners |= remembered
        fences[member.member_id] = tuple(sorted(owners - alive))
    return fences


def next_owners(
    members: Sequence[Member], now: Mapping[TaskKey, str], last_owners: Mapping[TaskKey, str]
) -> dict[TaskKey, str]:
    """Tasks that are given to nobody yet keep the owner they had."""
    ids = {member.member_id: member.report.transactional_id for member in members}
    running = {task: ids[member_id] for task, member_id in now.items()}
    return dict(last_owners) | {task: owner for task, owner in running.items() if owner is not None}
