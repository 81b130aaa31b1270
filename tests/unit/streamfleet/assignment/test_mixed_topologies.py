"""During a rolling upgrade members have different topologies: whatever the mix and the assignor, nothing is run twice or lost."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.streamfleet.assignment.random_groups import carried_out, check_safe, groups

from streamfleet.assignment import HighAvailabilityTaskAssignor, StickyTaskAssignor, TaskAssignor, assign
from streamfleet.assignment.snapshot import GroupAssignment, Snapshot

assignors = st.sampled_from([HighAvailabilityTaskAssignor(), StickyTaskAssignor()])


def settled(state: Snapshot, assignor: TaskAssignor) -> tuple[Snapshot, GroupAssignment]:
    """The group after at most one follow-up, and what was decided last."""
    decided = assign(state, assignor)
    if decided.follow_up:
        state = carried_out(state, decided)
        decided = assign(state, assignor)
    assert not decided.follow_up, "the group does not come to rest"
    return state, decided


@settings(max_examples=150, deadline=None)
@given(groups(same_topology=False, conflicts=True), assignors, st.booleans())
def test_no_generation_ever_gives_a_task_twice_or_too_early_or_to_the_wrong_member(state, assignor, copies_catch_up):
    for _ in range(4):
        decided = assign(state, assignor)
        check_safe(state, decided)
        state = carried_out(state, decided, copies_catch_up=copies_catch_up)


@settings(max_examples=150, deadline=None)
@given(groups(same_topology=False, conflicts=True), assignors)
def test_every_group_comes_to_rest_after_at_most_one_follow_up_and_nothing_is_read_twice(state, assignor):
    state, decided = settled(state, assignor)
    for _ in range(2):
        state = carried_out(state, decided)
        again = assign(state, assignor)
        assert {n: e.active for n, e in again.members.items()} == {n: e.active for n, e in decided.members.items()}
        assert not again.follow_up
    read = Counter(
        partition
        for each in state.members
        for info in each.report.sub_topologies
        for task in decided.members[each.member_id].active
        if task.content_id == info.content_id
        for partition in info.partitions_of(task)
    )
    assert max(read.values(), default=0) <= 1


@settings(max_examples=150, deadline=None)
@given(groups(same_topology=False), assignors)
def test_every_task_that_somebody_can_run_is_run_after_at_most_one_follow_up(state, assignor):
    wanted = {task for each in state.members for info in each.report.sub_topologies for task in info.tasks()}
    _, decided = settled(state, assignor)
    assert {task for each in decided.members.values() for task in each.active} == wanted
