"""Where copies of state are kept warm.

Called by sticky.py. A standby is of use only in another process than its active task and its sibling copies. Holders
keep theirs up to an even share; then whoever has most of the state, then whoever has fewest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamfleet.assignment.runnable import Runnable
from streamfleet.assignment.snapshot import Member, TaskKey


def place_standbys(
    members: Sequence[Member], runnable: Mapping[str, Runnable], active: Mapping[TaskKey, str], replicas: int
) -> dict[str, set[TaskKey]]:
    """Standby tasks by member id. With too few processes there are fewer copies than asked for."""
    standbys: dict[str, set[TaskKey]] = {member.member_id: set() for member in members}
    stateful = sorted(task for task in active if runnable[task.content_id].info.stateful)
    share = -(-len(stateful) * replicas // len(members)) if members else 0
    process_of = {member.member_id: member.report.process_id for member in members}
    for task in stateful:
        used = {process_of[active[task]]}
        for _ in range(replicas):
            candidates = [
                member
                for member in members
                if member.report.process_id not in used and member.member_id in runnable[task.content_id].eligible
            ]
            if not candidates:
                break
            chosen = min(candidates, key=lambda member: _preference(member, task, standbys, share))
            standbys[chosen.member_id].add(task)
            used.add(chosen.report.process_id)
    return standbys


def _preference(
    member: Member, task: TaskKey, standbys: Mapping[str, set[TaskKey]], share: int
) -> tuple[bool, bool, int, int]:
    load = len(standbys[member.member_id])
    return load >= share, task not in member.report.standby, -member.report.offset_sums.get(task, 0), load
