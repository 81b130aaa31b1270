"""assign(snapshot) -> assignment: sticky and balanced. Pure: no clock, no randomness, the same answer for the same input.

Called by streams_protocol.py on the group's leader; anybody else may call it to see what would happen.

In this order:
1. which tasks are run (runnable.py)
2. where each should be (placement.py)
3. what of it can be done now: a task that another member has not let go of, or whose partitions another task still
   reads, is given to nobody yet, and a follow-up is announced
4. where standbys go (standbys.py)
5. whom to fence: last owners of newly given tasks that are no longer in the group
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamfleet.assignment.placement import place
from streamfleet.assignment.runnable import Runnable, current_owners, runnable_sub_topologies
from streamfleet.assignment.snapshot import GroupAssignment, Member, MemberAssignment, Snapshot, TaskKey
from streamfleet.assignment.standbys import place_standbys
from streamfleet.ids import TopicPartition


def assign(snapshot: Snapshot) -> GroupAssignment:
    # Sorted by process first: where nothing else decides, tasks are dealt over processes in a fixed order.
    members = sorted(snapshot.members, key=lambda member: (member.report.process_id, member.member_id))
    owners = current_owners(members)
    runnable, unassigned = runnable_sub_topologies(members)
    target = place(members, runnable, owners)
    now = _possible_now(members, runnable, owners, target)
    standbys = place_standbys(members, runnable, target, snapshot.settings.num_standby_replicas)
    return GroupAssignment(
        members={
            member.member_id: MemberAssignment(
                active=_tasks_of(member, now),
                standby=tuple(sorted(standbys[member.member_id])),
                promised=tuple(task for task in _tasks_of(member, target) if task not in now),
                fence=_to_fence(member, now, members, snapshot.last_owners),
            )
            for member in members
        },
        owners=_next_owners(members, now, snapshot.last_owners),
        follow_up=len(now) < len(target),
        unassigned=unassigned,
    )


def _tasks_of(member: Member, placed: Mapping[TaskKey, str]) -> tuple[TaskKey, ...]:
    return tuple(sorted(task for task, member_id in placed.items() if member_id == member.member_id))


def _possible_now(
    members: Sequence[Member],
    runnable: Mapping[str, Runnable],
    owners: Mapping[TaskKey, str],
    target: Mapping[TaskKey, str],
) -> dict[TaskKey, str]:
    """The part of the target that nobody is in the way of."""
    readers = _readers(members)
    possible: dict[TaskKey, str] = {}
    for task, member_id in target.items():
        partitions = runnable[task.content_id].info.partitions_of(task)
        in_the_way = {reader for partition in partitions for reader in readers.get(partition, ())}
        in_the_way |= {(other, task) for other in _claimants(members, task)}
        in_the_way.discard((member_id, task))
        if owners.get(task) == member_id:
            # It runs the task by the newest plan; whoever still claims it by an older one is told to let go.
            in_the_way = {(other, held) for other, held in in_the_way if held != task}
        if not in_the_way:
            possible[task] = member_id
    return possible


def _readers(members: Sequence[Member]) -> dict[TopicPartition, set[tuple[str, TaskKey]]]:
    """Who reads a partition now, for which task: by what each member's own topology says about the tasks it has."""
    readers: dict[TopicPartition, set[tuple[str, TaskKey]]] = {}
    for member in members:
        infos = {info.content_id: info for info in member.report.sub_topologies}
        for task in member.report.owned:
            if task.content_id in infos:
                for partition in infos[task.content_id].partitions_of(task):
                    readers.setdefault(partition, set()).add((member.member_id, task))
    return readers


def _claimants(members: Sequence[Member], task: TaskKey) -> list[str]:
    return [member.member_id for member in members if task in member.report.owned]


def _to_fence(
    member: Member, now: Mapping[TaskKey, str], members: Sequence[Member], last_owners: Mapping[TaskKey, str]
) -> tuple[str, ...]:
    """Never a live member's id: in a hand-over the old owner ends its transaction by itself."""
    alive = {other.report.transactional_id for other in members}
    new = (task for task, member_id in now.items() if member_id == member.member_id and task not in member.report.owned)
    return tuple(sorted({last_owners[task] for task in new if task in last_owners} - alive))


def _next_owners(
    members: Sequence[Member], now: Mapping[TaskKey, str], last_owners: Mapping[TaskKey, str]
) -> dict[TaskKey, str]:
    """Tasks that are given to nobody yet keep the owner they had."""
    ids = {member.member_id: member.report.transactional_id for member in members}
    running = {task: ids[member_id] for task, member_id in now.items()}
    return dict(last_owners) | {task: owner for task, owner in running.items() if owner is not None}
