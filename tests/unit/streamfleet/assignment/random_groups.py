"""Groups of any kind for hypothesis: members with and without the same topology, with plans of the past; and what every generation
of such a group must be.
"""

from __future__ import annotations

from hypothesis import strategies as st

from streamfleet.assignment.snapshot import (
    AssignorSettings,
    GroupAssignment,
    Member,
    MemberAssignment,
    MemberReport,
    Snapshot,
    SubTopologyInfo,
    TaskKey,
)


def carried_out(before: Snapshot, decided: GroupAssignment, *, copies_catch_up: bool = False) -> Snapshot:
    """The group when everybody has done what it was told and joins again."""
    members = []
    for each in before.members:
        report = each.report
        told = MemberReport(
            process_id=report.process_id,
            topology_hash=report.topology_hash,
            sub_topologies=report.sub_topologies,
            transactional_id=report.transactional_id,
            owned=frozenset(decided.members[each.member_id].active),
            standby=frozenset((*decided.members[each.member_id].standby, *decided.members[each.member_id].warmup)),
            offset_sums=dict(report.offset_sums) | _caught_up(before, decided.members[each.member_id], copies_catch_up),
        )
        generation = max(m.generation_id for m in before.members) + 1
        promised = frozenset(decided.members[each.member_id].promised)
        members.append(Member(member_id=each.member_id, report=told, generation_id=generation, promised=promised))
    return Snapshot(
        members=tuple(members),
        settings=before.settings,
        last_owners=decided.owners,
        end_offset_sums=before.end_offset_sums,
    )


def _caught_up(before: Snapshot, told: MemberAssignment, copies: bool) -> dict[TaskKey, int]:
    there = (*told.active, *told.standby, *told.warmup) if copies else told.active
    ends = before.end_offset_sums or {}
    return {task: ends[task] for task in there if task in ends}


def infos(*, conflicts: bool):
    """With conflicts, several of them may read the same topic, and some of them the same topic with more partitions."""
    return st.builds(
        lambda number, topic, partitions, stateful: SubTopologyInfo(
            f"s{number}", {f"t{topic if conflicts else number}": partitions}, stateful
        ),
        st.integers(0, 3),
        st.integers(0, 2),
        st.integers(1, 6),
        st.booleans(),
    )


@st.composite
def groups(draw, *, same_topology: bool, conflicts: bool = False, shared_processes: bool = True):
    """Members with plans of the past: nobody owns what another does."""
    unique_by = (lambda i: (i.content_id, *i.sources)) if conflicts else (lambda i: i.content_id)
    pool = draw(st.lists(infos(conflicts=conflicts), min_size=1, max_size=4, unique_by=unique_by))
    names = [f"m{number}" for number in range(draw(st.integers(1, 6)))]
    topologies = {
        name: pool if same_topology else draw(st.lists(st.sampled_from(pool), unique_by=lambda i: i.content_id))
        for name in names
    }
    owned: dict[str, set[TaskKey]] = {name: set() for name in names}
    for task in sorted({task for info in pool for task in info.tasks()}):
        owner = draw(st.none() | st.sampled_from(names))
        if owner is not None and any(info.content_id == task.content_id for info in topologies[owner]):
            owned[owner].add(task)
    members = tuple(
        Member(
            member_id=name,
            report=MemberReport(
                process_id=f"p{draw(st.integers(0, 3))}" if shared_processes else f"p-{name}",
                topology_hash="h",
                sub_topologies=tuple(topologies[name]),
                owned=frozenset(owned[name]),
                transactional_id=f"id-{name}",
            ),
        )
        for name in names
    )
    ends = {task: draw(st.sampled_from([0, 1_000_000])) for info in pool for task in info.tasks() if info.stateful}
    chosen = AssignorSettings(num_standby_replicas=draw(st.integers(0, 2)))
    return Snapshot(members=members, settings=chosen, end_offset_sums=ends)


def check_safe(state: Snapshot, decided: GroupAssignment) -> None:
    """What must hold in every single generation."""
    given_to: dict[TaskKey, str] = {}
    assert set(decided.members) == {each.member_id for each in state.members}
    for each in state.members:
        can_run = {info.content_id for info in each.report.sub_topologies}
        for task in decided.members[each.member_id].active:
            assert task.content_id in can_run
            assert task not in given_to
            given_to[task] = each.member_id
        assert not set(decided.members[each.member_id].standby) & set(decided.members[each.member_id].active)
    for each in state.members:
        for task in each.report.owned:
            assert given_to.get(task, each.member_id) == each.member_id
