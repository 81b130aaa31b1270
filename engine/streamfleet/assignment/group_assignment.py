"""assign(snapshot) -> assignment: everything between the members' reports and what each is to do.

Called by streams_protocol.py on the group's leader; anybody else may call it to see what would happen. Pure, if the
assignor is: no clock, no randomness, the same answer for the same input. In this order:

1. which tasks are run (runnable.py), and what is known of them and of the processes (application_state.py)
2. which process has which: the TaskAssignor decides, validation.py looks it over
3. which thread has which (threads.py)
4. what of it can be done now, and whom to fence (handover.py)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from streamfleet.assignment.application_state import application_state
from streamfleet.assignment.handover import next_owners, possible_now, to_fence
from streamfleet.assignment.high_availability import HighAvailabilityTaskAssignor
from streamfleet.assignment.runnable import Runnable, current_owners, runnable_sub_topologies
from streamfleet.assignment.snapshot import GroupAssignment, Member, MemberAssignment, Snapshot, TaskKey
from streamfleet.assignment.task_assignor import TaskAssignment, TaskAssignor
from streamfleet.assignment.threads import ThreadTasks, over_threads
from streamfleet.assignment.validation import checked

HIGH_AVAILABILITY = HighAvailabilityTaskAssignor()


def assign(snapshot: Snapshot, assignor: TaskAssignor = HIGH_AVAILABILITY) -> GroupAssignment:
    """Who runs what; see GroupAssignment. Raises InvalidAssignmentError if the assignor's answer is none."""
    # Sorted by process first: where nothing else decides, tasks are dealt over processes in a fixed order.
    members = sorted(snapshot.members, key=lambda member: (member.report.process_id, member.member_id))
    if not members:
        return GroupAssignment(members={})
    owners = current_owners(members)
    runnable, unassigned = runnable_sub_topologies(members)
    state = application_state(snapshot, members, runnable, owners)
    decided = checked(assignor, state, assignor.assign(state))
    threads = _threads(members, decided, runnable, owners)
    target = {task: member_id for member_id, own in threads.items() for task in own.active}
    now = possible_now(members, runnable, owners, target)
    plans = {member.member_id: _plan(member, threads[member.member_id], now) for member in members}
    fences = to_fence(members, {name: plan.active for name, plan in plans.items()}, snapshot.last_owners)
    for name, plan in plans.items():
        probe = decided.next_probe_ms if name == members[0].member_id else None  # one is enough
        plans[name] = msgspec.structs.replace(plan, fence=fences[name], next_probe_ms=probe)
    return GroupAssignment(
        members=plans,
        owners=next_owners(members, now, snapshot.last_owners),
        follow_up=len(now) < len(target),
        unassigned=unassigned,
    )


def _threads(
    members: Sequence[Member],
    decided: TaskAssignment,
    runnable: Mapping[str, Runnable],
    owners: Mapping[TaskKey, str],
) -> dict[str, ThreadTasks]:
    by_process: dict[str, list[Member]] = {}
    for member in members:
        by_process.setdefault(member.report.process_id, []).append(member)
    threads: dict[str, ThreadTasks] = {}
    for process_id, group in by_process.items():
        threads |= over_threads(group, decided.processes[process_id], runnable, owners)
    return threads


def _plan(member: Member, tasks: ThreadTasks, now: Mapping[TaskKey, str]) -> MemberAssignment:
    promised = [task for task in tasks.active if task not in now]
    # A copy goes on until the task it becomes is given: closing and opening it again would only cost time.
    kept = [task for task in promised if task in member.report.standby]
    return MemberAssignment(
        active=tuple(task for task in sorted(tasks.active) if task in now),
        standby=tuple(tasks.standby),
        warmup=tuple(sorted([*tasks.warmup, *kept])),
        promised=tuple(sorted(promised)),
    )
