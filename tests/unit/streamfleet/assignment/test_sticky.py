from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.streamfleet.assignment.random_groups import carried_out, groups

from streamfleet.assignment import group_assignment
from streamfleet.assignment.snapshot import (
    AssignorSettings,
    GroupAssignment,
    Member,
    MemberReport,
    Snapshot,
    SubTopologyInfo,
    TaskKey,
)
from streamfleet.assignment.sticky import StickyTaskAssignor

ORDERS = SubTopologyInfo("orders", {"orders": 4}, stateful=True)
ALERTS = SubTopologyInfo("alerts", {"alerts": 3}, stateful=False)


def member(name: str, *infos: SubTopologyInfo, generation: int = 1, process: str | None = None, **report) -> Member:
    told = MemberReport(
        process_id=process or name,
        topology_hash="h",
        sub_topologies=infos or (ORDERS,),
        transactional_id=report.pop("transactional_id", f"id-{name}"),
        **{key: value for key, value in report.items() if key != "owned"},
        owned=frozenset(report.get("owned", ())),
    )
    return Member(member_id=name, report=told, generation_id=generation)


def assign(state: Snapshot) -> GroupAssignment:
    return group_assignment.assign(state, StickyTaskAssignor())


def tasks(info: SubTopologyInfo, *partitions: int) -> list[TaskKey]:
    return [TaskKey(info.content_id, partition) for partition in partitions]


def snapshot(*members: Member, num_standby_replicas: int = 0, **more) -> Snapshot:
    chosen = AssignorSettings(num_standby_replicas=num_standby_replicas)
    return Snapshot(members=members, settings=chosen, **more)


def active(assignment: GroupAssignment, name: str) -> set[TaskKey]:
    return set(assignment.members[name].active)


def settled(state: Snapshot, rounds: int = 3) -> tuple[Snapshot, GroupAssignment]:
    """The group after at most so many follow-ups, and what was decided last."""
    decided = assign(state)
    for _ in range(rounds):
        if not decided.follow_up:
            break
        state = carried_out(state, decided)
        decided = assign(state)
    assert not decided.follow_up, "the group does not come to rest"
    return state, decided


def test_a_single_member_gets_everything():
    decided = assign(snapshot(member("a", ORDERS, ALERTS)))
    assert active(decided, "a") == {*ORDERS.tasks(), *ALERTS.tasks()}
    assert not decided.follow_up


def test_tasks_are_spread_evenly_and_each_member_gets_some_of_each_sub_topology():
    decided = assign(snapshot(member("a", ORDERS, ALERTS), member("b", ORDERS, ALERTS)))
    for name, expected in (("a", 4), ("b", 3)):
        assert len(active(decided, name)) == expected
        assert {task.content_id for task in active(decided, name)} == {"orders", "alerts"}


def test_a_balanced_group_is_left_as_it_is():
    before = snapshot(member("b", owned=tasks(ORDERS, 0, 3)), member("a", owned=tasks(ORDERS, 1, 2)))
    decided = assign(before)
    assert (active(decided, "a"), active(decided, "b")) == ({*tasks(ORDERS, 1, 2)}, {*tasks(ORDERS, 0, 3)})
    assert not decided.follow_up


def test_a_task_that_moves_is_first_taken_and_only_then_given():
    before = snapshot(member("a", owned=ORDERS.tasks()), member("b"))
    first = assign(before)
    assert len(active(first, "a")) == 2 and active(first, "b") == set()
    assert first.follow_up
    second = assign(carried_out(before, first))
    assert active(second, "a") == active(first, "a")
    assert active(second, "b") == set(ORDERS.tasks()) - active(first, "a")
    assert not second.follow_up


def test_a_follow_up_goes_on_with_the_move_that_was_begun():
    free = snapshot(member("a"), member("b"), member("c"))
    promised = Member(member_id="c", report=free.members[2].report, promised=frozenset(tasks(ORDERS, 0)))
    decided = assign(snapshot(*free.members[:2], promised))
    assert tasks(ORDERS, 0)[0] in active(decided, "c") and tasks(ORDERS, 0)[0] in active(assign(free), "a")


def test_a_task_whose_owner_has_not_let_go_waits_even_if_others_have():
    before = snapshot(member("a", owned=ORDERS.tasks()), member("b"))
    kept = active(assign(before), "a")
    stubborn = snapshot(member("a", owned=[*kept, max(set(ORDERS.tasks()) - kept)], generation=2), member("b"))
    decided = assign(stubborn)
    assert len(active(decided, "b")) == 1
    assert decided.follow_up


def test_of_two_that_claim_a_task_the_one_with_the_newer_plan_keeps_it():
    claimed = tasks(ORDERS, 0, 1)
    for newer, older in (("a", "b"), ("b", "a")):
        members = [member(newer, generation=5, owned=claimed), member(older, generation=4, owned=claimed)]
        decided = assign(snapshot(*members))
        assert set(claimed) <= active(decided, newer)
        assert not set(claimed) & active(decided, older)


def test_whoever_has_the_state_gets_the_task():
    sums = dict.fromkeys(tasks(ORDERS, 2, 3), 100)
    decided = assign(snapshot(member("a"), member("b", offset_sums=sums)))
    assert set(sums) == active(decided, "b")


def test_most_state_wins():
    (task,) = tasks(ORDERS, 3)
    decided = assign(snapshot(member("a", offset_sums={task: 10}), member("b", offset_sums={task: 11})))
    assert task in active(decided, "b")


def test_a_task_is_never_given_to_a_member_whose_topology_lacks_it():
    decided = assign(snapshot(member("a", ORDERS), member("b", ALERTS), member("c", ALERTS)))
    assert active(decided, "a") == set(ORDERS.tasks())
    assert active(decided, "b") | active(decided, "c") == set(ALERTS.tasks())


def test_a_member_without_any_known_topology_gets_nothing_and_harms_nobody():
    decided = assign(snapshot(member("a"), member("b", SubTopologyInfo("none", {}, stateful=False))))
    assert active(decided, "a") == set(ORDERS.tasks())
    assert active(decided, "b") == set()


NEW_ORDERS = SubTopologyInfo("orders-by-day", {"orders": 4}, stateful=True)


def test_two_sub_topologies_that_read_the_same_topic_are_not_run_together():
    decided = assign(snapshot(member("a"), member("b"), member("c", NEW_ORDERS)))
    assert active(decided, "c") == set()
    assert decided.unassigned == tuple(sorted(NEW_ORDERS.tasks()))


def test_the_new_one_takes_over_when_it_has_the_majority_but_not_before_the_old_one_is_gone():
    before = snapshot(member("a", owned=ORDERS.tasks()), member("b", NEW_ORDERS), member("c", NEW_ORDERS))
    first = assign(before)
    assert all(not each.active for each in first.members.values()) and first.follow_up
    second = assign(carried_out(before, first))
    assert active(second, "b") | active(second, "c") == set(NEW_ORDERS.tasks())
    assert not second.follow_up


def test_a_member_that_has_both_in_turn_also_lets_go_first():
    before = snapshot(member("a", NEW_ORDERS, ORDERS, owned=tasks(ORDERS, 0)), member("b", NEW_ORDERS))
    decided = assign(before)
    assert tasks(NEW_ORDERS, 0)[0] not in active(decided, "a") | active(decided, "b")


def test_the_same_stores_fed_from_other_topics_are_not_the_same():
    refed = SubTopologyInfo("orders", {"orders-v2": 4}, stateful=True)
    decided = assign(snapshot(member("a"), member("b"), member("c", refed)))
    assert active(decided, "c") == set()


def test_a_topic_that_grew_is_seen_by_those_who_looked_later():
    wider = SubTopologyInfo("orders", {"orders": 6}, stateful=True)
    decided = assign(snapshot(member("a"), member("b", wider)))
    assert len(active(decided, "a") | active(decided, "b")) == 6


def test_the_last_owner_is_fenced_only_if_it_is_gone():
    owners = dict.fromkeys(tasks(ORDERS, 0, 1), "id-gone") | dict.fromkeys(tasks(ORDERS, 2, 3), "id-a")
    decided = assign(snapshot(member("a", owned=tasks(ORDERS, 2, 3)), member("b"), last_owners=owners))
    assert decided.members["b"].active == tuple(tasks(ORDERS, 0, 1))
    assert decided.members["b"].fence == ("id-gone",)
    assert decided.members["a"].fence == ()
    assert decided.owners == dict.fromkeys(tasks(ORDERS, 0, 1), "id-b") | dict.fromkeys(tasks(ORDERS, 2, 3), "id-a")


def test_a_task_on_its_way_still_has_its_old_owner():
    before = snapshot(member("a", owned=ORDERS.tasks()), member("b"), last_owners=dict.fromkeys(ORDERS.tasks(), "id-a"))
    state = before
    first = assign(state)
    assert set(first.owners.values()) == {"id-a"}
    second = assign(carried_out(state, first))
    assert Counter(second.owners.values()) == {"id-a": 2, "id-b": 2}
    assert all(each.fence == () for each in second.members.values())


def test_without_transactions_nobody_is_fenced():
    decided = assign(snapshot(member("a", transactional_id=None)))
    assert decided.owners == {} and decided.members["a"].fence == ()


def test_standbys_live_in_other_processes_than_their_task():
    members = [member(f"{p}{t}", ORDERS, ALERTS, process=p) for p in "xyz" for t in (1, 2)]
    decided = assign(snapshot(*members, num_standby_replicas=2))
    process = {each.member_id: each.report.process_id for each in members}
    for task in ORDERS.tasks():
        places = [process[n] for n, each in decided.members.items() if task in each.active or task in each.standby]
        assert sorted(places) == ["x", "y", "z"]
    assert not any(task.content_id == "alerts" for each in decided.members.values() for task in each.standby)


def test_with_too_few_processes_there_are_fewer_standbys():
    decided = assign(snapshot(member("a1", process="a"), member("a2", process="a"), num_standby_replicas=1))
    assert all(each.standby == () for each in decided.members.values())


def test_standbys_stay_where_they_are():
    before = snapshot(member("a"), member("b"), member("c"), num_standby_replicas=1)
    state, decided = settled(before)
    again = assign(carried_out(state, decided))
    assert again.members == decided.members


def test_an_empty_group_is_no_problem():
    assert assign(snapshot()) == GroupAssignment(members={})


# --- whatever the group looks like ---


@settings(max_examples=150, deadline=None)
@given(groups(same_topology=True))
def test_a_group_with_one_topology_ends_balanced_and_stays_so(state):
    state, decided = settled(state, rounds=1)
    loads = [len(each.active) for each in decided.members.values()]
    assert max(loads) - min(loads) <= 1
    again = assign(carried_out(state, decided))
    assert {name: each.active for name, each in again.members.items()} == {
        name: each.active for name, each in decided.members.items()
    }
    assert not again.follow_up


@settings(max_examples=100, deadline=None)
@given(groups(same_topology=True, shared_processes=False))
def test_no_more_tasks_move_than_balance_needs(state):
    _, decided = settled(state, rounds=1)
    total = sum(len(each.active) for each in decided.members.values())
    share, extra = divmod(total, len(state.members))
    owned = sorted((len(each.report.owned) for each in state.members), reverse=True)
    can_stay = sum(min(count, share + (place < extra)) for place, count in enumerate(owned))
    stayed = sum(len(each.report.owned & set(decided.members[each.member_id].active)) for each in state.members)
    assert stayed == can_stay


@given(groups(same_topology=False), st.randoms())
def test_the_order_of_the_members_does_not_matter(state, random):
    shuffled = list(state.members)
    random.shuffle(shuffled)
    assert assign(Snapshot(members=tuple(shuffled), settings=state.settings)) == assign(state)


@pytest.mark.parametrize("members", [1, 7, 50])
def test_a_large_group_is_assigned_quickly_enough_for_a_rebalance(members):
    wide = SubTopologyInfo("wide", {"wide": 1_000}, stateful=True)
    decided = assign(snapshot(*(member(f"m{number:02}", wide) for number in range(members))))
    assert sum(len(each.active) for each in decided.members.values()) == 1_000
