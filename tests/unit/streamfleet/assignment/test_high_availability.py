from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.streamfleet.assignment.simulated_cluster import Cluster, Process

from streamfleet.assignment.high_availability import BLIND_PROBE_MS
from streamfleet.assignment.snapshot import SubTopologyInfo, TaskKey

ORDERS = SubTopologyInfo("orders", {"orders": 6}, True, ("orders-changelog",))
ALERTS = SubTopologyInfo("alerts", {"alerts": 4}, False)
FULL = 1_000_000


def orders(*partitions: int) -> list[TaskKey]:
    return [TaskKey("orders", partition) for partition in partitions]


def cluster(*names: str, **more) -> Cluster:
    return Cluster((ORDERS,), [Process(name) for name in names], **more)


def running(*names: str, **more) -> Cluster:
    """A group that has run for a while."""
    group = cluster(*names, **more)
    group.settle()
    group.converge(20)
    return group


# --- single cases ---


def test_a_new_group_shares_all_tasks_at_once_as_nobody_has_state():
    group = cluster("a", "b", "c")
    group.settle()
    assert sorted(Counter(group.active_places().values()).values()) == [2, 2, 2]
    assert group.probe_ms() is None and not group.copies("warmup")


def test_a_new_process_gets_warm_ups_and_the_tasks_stay_until_these_are_ready():
    group = running("a")
    group.processes["b"] = Process("b")
    group.settle(restored=False)
    assert set(group.active_places().values()) == {"a"}
    assert {name for names in group.copies("warmup").values() for name in names} == {"b"}
    assert len(group.copies("warmup")) == 2
    assert group.probe_ms() == 600_000


def test_a_probe_while_a_warm_up_is_not_ready_moves_nothing_and_keeps_the_warm_up():
    group = running("a")
    group.processes["b"] = Process("b")
    group.settle(restored=False)
    begun = group.copies("warmup")
    for lag in (900_000, 10_001):
        group.processes["b"].sums = dict.fromkeys(begun, FULL - lag)
        group.settle(restored=False)
        assert group.copies("warmup") == begun
        assert set(group.active_places().values()) == {"a"}


def test_a_task_moves_as_soon_as_its_warm_up_is_within_the_acceptable_lag_and_the_next_ones_are_begun():
    group = running("a")
    group.processes["b"] = Process("b")
    group.settle(restored=False)
    begun = set(group.copies("warmup"))
    group.processes["b"].sums = dict.fromkeys(begun, FULL - 10_000)
    group.settle(restored=False)
    assert {task for task, name in group.active_places().items() if name == "b"} == begun
    assert len(group.copies("warmup")) == 1
    assert not begun & set(group.copies("warmup"))


def test_a_copy_runs_on_between_the_two_rebalances_that_make_it_active():
    group = running("a")
    group.processes["b"] = Process("b")
    group.settle()
    begun = set(group.copies("warmup"))
    group.rebalance()
    told = group.decided.members["b/0"]
    assert group.decided.follow_up and set(told.promised) == begun
    assert begun <= set(told.warmup) and not begun & set(told.active)


def test_state_that_is_small_is_no_reason_to_wait():
    group = running("a", ends=dict.fromkeys(ORDERS.tasks(), 10_000))
    group.processes["b"] = Process("b")
    group.settle(restored=False)
    assert Counter(group.active_places().values()) == {"a": 3, "b": 3}
    assert group.probe_ms() is None


def test_when_a_process_dies_its_standby_runs_on_at_once():
    group = running("a", "b", "c", num_standby_replicas=1)
    lost = {task for task, name in group.active_places().items() if name == "a"}
    standby = {task: names[0] for task, names in group.copies("standby").items()}
    group.leave("a")
    group.settle(restored=False)
    assert {task: group.active_places()[task] for task in lost} == {task: standby[task] for task in lost}


def test_whoever_is_least_behind_runs_a_task_that_nobody_is_ready_for():
    group = cluster("a", "b", max_warmup_replicas=1)
    (task,) = orders(0)
    group.processes["a"].sums = dict.fromkeys(ORDERS.tasks(), 10)
    group.processes["b"].sums = dict.fromkeys(ORDERS.tasks(), 20)
    group.settle(restored=False)
    assert group.active_places()[task] == "b"


def test_a_process_that_still_restores_a_task_gives_it_to_a_standby_that_is_ready():
    group = running("a", "b", num_standby_replicas=1)
    (task,) = orders(0)
    owner, other = ("a", "b") if group.active_places()[task] == "a" else ("b", "a")
    group.processes[owner].sums[task] = 5
    group.restoring = {task}
    group.rebalance()
    group.restoring.clear()
    group.settle(restored=False)
    assert group.active_places()[task] == other


def test_without_end_offsets_everything_stays_and_is_tried_again_soon():
    group = running("a", "b")
    before = group.active_places()
    group.processes["c"] = Process("c")
    group.ends = None
    group.settle(restored=False)
    assert group.active_places() == before
    assert group.probe_ms() == BLIND_PROBE_MS and not group.copies("warmup")


def test_without_end_offsets_tasks_of_the_dead_go_to_whoever_has_most_of_them():
    group = running("a", "b", "c", num_standby_replicas=1)
    standby = {task: names[0] for task, names in group.copies("standby").items()}
    lost = {task for task, name in group.active_places().items() if name == "a"}
    group.leave("a")
    group.ends = None
    group.settle(restored=False)
    assert {task: group.active_places()[task] for task in lost} == {task: standby[task] for task in lost}


def test_state_beyond_the_end_of_the_changelog_counts_as_none():
    group = cluster("a", "b")
    (task,) = orders(0)
    group.processes["a"].sums = {task: FULL + 1}
    group.processes["b"].sums = {task: FULL - 20_000}
    group.settle(restored=False)
    assert group.active_places()[task] == "b"


def test_a_full_restart_moves_nothing():
    group = running("a", "b", "c")
    group.processes["d"] = Process("d", threads=2)
    group.settle()
    group.converge(10)
    before = group.active_places()
    group.restart()
    group.settle()
    assert group.active_places() == before and group.probe_ms() is None


def test_processes_that_stopped_in_turn_have_their_own_tasks_when_all_are_back():
    group = running("a", "b", "c", num_standby_replicas=1)
    before = group.active_places()
    group.stop_in_turn()
    group.settle()
    assert group.active_places() == before


@pytest.mark.parametrize(("tasks", "processes", "standbys"), [(40, 4, 0), (40, 4, 1), (400, 20, 0), (400, 20, 1)])
def test_one_more_process_moves_only_its_share_and_each_task_once(tasks, processes, standbys):
    wide = SubTopologyInfo("wide", {"wide": tasks}, True, ("log",))
    names = [f"p{number:02}" for number in range(processes)]
    group = Cluster((wide,), [Process(name) for name in names], num_standby_replicas=standbys)
    group.settle()
    group.processes["new"] = Process("new")
    share, moves, rounds = tasks // (processes + 1), 0, 0
    while rounds == 0 or group.probe_ms() is not None:
        before = group.active_places()
        group.settle()
        moves += sum(before[task] != name for task, name in group.active_places().items())
        rounds += 1
    assert moves == share
    assert rounds <= -(-share // 2) * (1 + standbys) + 1


def test_a_process_with_more_threads_gets_more():
    group = Cluster((ORDERS,), [Process("a", threads=2), Process("b")])
    group.settle()
    assert Counter(group.active_places().values()) == {"a": 4, "b": 2}
    assert group.thread_loads() == [2, 2, 2]


def test_stateless_tasks_move_at_once():
    group = Cluster((ALERTS,), [Process("a")])
    group.settle()
    group.processes["b"] = Process("b")
    group.settle()
    assert Counter(group.active_places().values()) == {"a": 2, "b": 2}


# --- whatever the group looks like ---


RACKS = st.sampled_from(["r0", "r1", "r2"])


@st.composite
def clusters(draw, *, max_replicas: int = 2, racks: bool = True):
    """New processes, with leftovers of state here and there; in racks and zones that may count or not, at any price."""
    infos = tuple(
        SubTopologyInfo(f"s{number}", {f"t{number}": draw(st.integers(1, 8))}, stateful, (f"c{number}",) * stateful)
        for number, stateful in enumerate(draw(st.lists(st.booleans(), min_size=1, max_size=4)))
    )
    tasks = [task for info in infos if info.stateful for task in info.tasks()]
    ends = {task: draw(st.sampled_from([0, 5_000, FULL])) for task in tasks}
    strategy = draw(st.sampled_from(["none", "min_traffic", "balance_subtopology"])) if racks else "none"
    tags = draw(st.sampled_from([(), ("zone",), ("zone", "cluster")]))
    processes = [
        Process(
            f"p{number}",
            threads=draw(st.integers(1, 3)),
            sums={task: draw(st.integers(0, ends[task])) for task in tasks if draw(st.booleans())},
            tags={tag: draw(st.sampled_from("ab")) for tag in tags if draw(st.booleans())},
            rack=draw(RACKS),
        )
        for number in range(draw(st.integers(1, 6)))
    ]
    cluster = Cluster(
        infos,
        processes,
        ends,
        num_standby_replicas=draw(st.integers(0, max_replicas)),
        max_warmup_replicas=draw(st.integers(1, 4)),
        rack_aware_strategy=strategy,
        rack_aware_tags=tags,
        rack_aware_traffic_cost=draw(st.sampled_from([None, 1, 10])),
        rack_aware_non_overlap_cost=draw(st.sampled_from([None, 1, 10])),
    )
    if strategy != "none":
        read = {
            p for info in infos for task in info.tasks() for p in (*info.partitions_of(task), *info.changelogs_of(task))
        }
        cluster.racks = {partition: frozenset({draw(RACKS)}) for partition in sorted(read)}
    return cluster


def check_safe(group: Cluster, before) -> None:
    """What must hold in every single generation."""
    decided = group.decided
    given_to = Counter(task for plan in decided.members.values() for task in plan.active)
    assert max(given_to.values(), default=0) <= 1
    for member in before.members:
        for task in member.report.owned:
            holders = [name for name, plan in decided.members.items() if task in plan.active]
            assert holders in ([], [member.member_id])
    stateful = set(group.stateful)
    for process in group.processes.values():
        held = Counter(
            task
            for plan in process.plans.values()
            for task in {*plan.active, *plan.promised, *plan.standby} | set(plan.warmup)
        )
        assert max(held.values(), default=0) <= 1, "two copies in one process"
        for plan in process.plans.values():
            assert not set(plan.standby) & {*plan.warmup, *plan.active, *plan.promised}
            assert stateful >= {*plan.standby, *plan.warmup}


def check_budget(group: Cluster) -> None:
    """Copies beyond those asked for."""
    promised = {task for plan in group.decided.members.values() for task in plan.promised}
    standbys, warmups = group.copies("standby"), group.copies("warmup")
    extra = 0
    for task in group.stateful:
        if task not in promised:
            asked = min(group.settings.num_standby_replicas, len(group.processes) - 1)
            extra += max(0, len(standbys.get(task, ())) + len(warmups.get(task, ())) - asked)
    assert extra <= group.settings.max_warmup_replicas


def play(group: Cluster, *, restored: bool = True) -> None:
    """A rebalance with its follow-ups, each looked at. One is enough nearly always; an exchange between racks may take more."""
    for _ in range(3 if group.settings.rack_aware_strategy == "none" else 5):
        before = group.snapshot()
        group.rebalance()
        check_safe(group, before)
        check_budget(group)
        if not group.decided.follow_up:
            break
    assert not group.decided.follow_up, "the group does not come to rest"
    if restored:
        group.catch_up()


def play_until_ready(group: Cluster) -> None:
    """Until nothing waits: so many rounds as it takes to deal out one warm-up per task, and two more; with standbys, too."""
    play(group)
    for _ in range(-(-len(group.stateful) // group.settings.max_warmup_replicas) + 2):
        if group.probe_ms() is None:
            return
        play(group)
    assert group.probe_ms() is None, "it does not converge"


def check_even(group: Cluster) -> None:
    loads = group.thread_loads(stateful=True)
    assert max(loads) - min(loads) <= 1
    loads = group.thread_loads()
    assert max(loads) - min(loads) <= 1
    assert set(group.active_places()) == set(group.tasks)
    copies = group.copies("standby")
    for task in group.stateful:
        places = [group.active_places()[task], *copies.get(task, ())]
        assert len(places) == len(set(places)) == min(1 + group.settings.num_standby_replicas, len(group.processes))


@settings(max_examples=150, deadline=None)
@given(clusters())
def test_every_group_ends_even_with_all_its_copies_in_bounded_rounds_and_stays_so(group):
    play_until_ready(group)
    check_even(group)
    before = group.decided.members
    play(group)
    if group.decided.members != before and are_swapped_for_racks(group):
        before = group.decided.members
        play(group)
    assert group.decided.members == before


def are_swapped_for_racks(group: Cluster) -> bool:
    """Of standbys a good placement is sought, not the best one: from where they are then, another step may be found."""
    return group.settings.num_standby_replicas > 0 and group.settings.rack_aware_strategy != "none"


@settings(max_examples=150, deadline=None)
@given(clusters(), st.data())
def test_whatever_comes_and_goes_a_group_comes_to_rest(group, data):
    play_until_ready(group)
    for number in range(data.draw(st.integers(1, 4))):
        names = sorted(group.processes)
        if data.draw(st.booleans()) or len(names) == 1:
            threads, rack = data.draw(st.integers(1, 3)), data.draw(st.none() | RACKS)
            group.processes[f"n{number}"] = Process(f"n{number}", threads=threads, rack=rack)
        else:
            group.leave(data.draw(st.sampled_from(names)))
        if data.draw(st.booleans()):
            play(group, restored=data.draw(st.booleans()))
    play_until_ready(group)
    check_even(group)


@settings(max_examples=100, deadline=None)
@given(clusters())
def test_a_full_restart_with_the_same_slots_moves_nothing_not_even_copies(group):
    play_until_ready(group)
    before = group.decided.members
    group.restart()
    play(group)
    plans = group.decided.members
    assert {name: plan.active for name, plan in plans.items()} == {name: plan.active for name, plan in before.items()}
    if not are_swapped_for_racks(group):
        assert {name: plan.standby for name, plan in plans.items()} == {
            name: plan.standby for name, plan in before.items()
        }
    assert group.probe_ms() is None and not group.copies("warmup")


@settings(max_examples=100, deadline=None)
@given(clusters(max_replicas=0, racks=False))
def test_without_a_memory_of_who_ran_what_state_alone_brings_tasks_back(group):
    play_until_ready(group)
    before = group.active_places()
    for process in group.processes.values():  # only what it runs is on its disk
        process.sums = {task: end for task, end in process.sums.items() if before.get(task) == process.name}
        process.memory.clear()
    group.restart()
    play(group)
    grown = {task for task in group.stateful if group.ends[task]}
    assert {task: name for task, name in group.active_places().items() if task in grown} == {
        task: name for task, name in before.items() if task in grown
    }


@settings(max_examples=100, deadline=None)
@given(clusters(), st.data())
def test_tasks_whose_state_is_nowhere_else_never_leave_a_process_that_runs_them(group, data):
    play_until_ready(group)
    before = group.active_places()
    group.processes["new"] = Process("new", threads=2, rack="r0")
    play(group, restored=False)
    for task in group.stateful:
        if group.active_places()[task] != before[task]:
            target = group.processes[group.active_places()[task]]
            assert group.ends[task] - target.sums.get(task, 0) <= group.settings.acceptable_recovery_lag
