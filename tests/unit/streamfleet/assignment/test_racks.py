"""Tasks go where their input is: as cheap as can be for the shares that balance gives."""

from __future__ import annotations

import itertools
from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.streamfleet.assignment.simulated_cluster import Cluster, Process

from streamfleet.assignment import HighAvailabilityTaskAssignor, StickyTaskAssignor, SubTopologyInfo, TaskKey
from streamfleet.assignment.racks import optimized_for_racks
from streamfleet.assignment.snapshot import AssignorSettings
from streamfleet.assignment.standby_racks import standbys_optimized_for_racks
from streamfleet.assignment.task_assignor import ApplicationState, ProcessState, TaskInfo
from streamfleet.ids import TopicPartition

PLAIN = SubTopologyInfo("plain", {"lines": 4}, False)
COUNTS = SubTopologyInfo("counts", {"words": 4}, True, ("counts-log",))


def state(
    racks: dict[str, str | None], inputs: list[list[set[str]]], places: list[str], strategy="min_traffic"
) -> ApplicationState:
    """One task per entry of `inputs`, whose partitions have replicas in those racks; and who has it, or an empty name."""
    tasks: dict[TaskKey, TaskInfo] = {}
    partition_racks: dict[TopicPartition, frozenset[str]] = {}
    for number, partitions in enumerate(inputs):
        key = TaskKey("s", number)
        sources = tuple(TopicPartition(f"t{index}", number) for index in range(len(partitions)))
        partition_racks |= {p: frozenset(where) for p, where in zip(sources, partitions, strict=True)}
        tasks[key] = TaskInfo(key, False, sources, (), None)
    processes = {
        name: ProcessState(
            process_id=name,
            threads=1,
            can_run=frozenset({"s"}),
            rack=rack,
            active=frozenset(task for task, place in zip(tasks, places, strict=True) if place == name),
        )
        for name, rack in racks.items()
    }
    chosen = AssignorSettings(rack_aware_strategy=strategy)
    return ApplicationState(processes=processes, tasks=tasks, settings=chosen, partition_racks=partition_racks)


def cost(app: ApplicationState, after, traffic: int, non_overlap: int) -> int:
    total = 0
    for task, name in after.items():
        rack = app.processes[name].rack
        total += traffic * sum(rack not in app.partition_racks[p] for p in app.tasks[task].sources)
        owners = {process.process_id for process in app.processes.values() if task in process.active}
        total += non_overlap * (owners not in (set(), {name}))
    return total


def test_tasks_change_places_where_that_saves_traffic():
    app = state({"a": "r1", "b": "r2"}, [[{"r2"}], [{"r1"}], [{"r1", "r2"}], [{"r2"}]], ["a", "b", "a", "b"])
    before = dict(zip(app.tasks, ["a", "b", "a", "b"], strict=True))
    after = optimized_for_racks(app, before, traffic_cost=10, non_overlap_cost=1)
    assert list(after.values()) == ["b", "a", "a", "b"]


def test_nothing_moves_where_a_move_costs_more_than_it_saves():
    racks, inputs = {"a": "r1", "b": "r2"}, [[{"r2"}], [{"r1"}]]
    for places, stays in ((["a", "b"], True), (["", ""], False)):  # what is nowhere yet moves for nothing
        app = state(racks, inputs, places)
        before = dict(zip(app.tasks, ["a", "b"], strict=True))
        assert (optimized_for_racks(app, before, traffic_cost=1, non_overlap_cost=10) == before) is stays


def test_what_a_move_costs_goes_by_who_has_the_task_and_not_by_where_balance_would_have_it_go():
    """Each of two tasks is wanted back by who has it; for two that are nowhere else it makes no difference who moves."""
    racks, anywhere = {"a": "r1", "b": "r2"}, [{"r1", "r2"}]
    app = state(racks, [anywhere, anywhere], ["a", "b"])
    crossed = dict(zip(app.tasks, ["b", "a"], strict=True))
    assert list(optimized_for_racks(app, crossed, traffic_cost=1, non_overlap_cost=10).values()) == ["a", "b"]
    app = state(racks, [[{"r2"}], [{"r1"}]], ["a", "a"])  # one of them has to move: the one that then reads nearby
    for placed in (["a", "b"], ["b", "a"]):
        before = dict(zip(app.tasks, placed, strict=True))
        assert list(optimized_for_racks(app, before, traffic_cost=1, non_overlap_cost=10).values()) == ["b", "a"]


def test_without_a_strategy_or_without_racks_nothing_moves():
    inputs, nowhere = [[{"r2"}], [{"r1"}]], ["", ""]
    for app in (
        state({"a": "r1", "b": "r2"}, inputs, nowhere, strategy="none"),
        state({"a": "r1", "b": None}, inputs, nowhere),
        state({"a": "r1", "b": "r2"}, [[{"r2"}], [set()]], nowhere),
    ):
        before = dict(zip(app.tasks, ["a", "b"], strict=True))
        assert optimized_for_racks(app, before, traffic_cost=10, non_overlap_cost=1) == before


@st.composite
def problems(draw):
    names = [f"p{number}" for number in range(draw(st.integers(1, 4)))]
    racks = {name: draw(st.sampled_from(["r1", "r2", "r3"])) for name in names}
    replicas = st.sets(st.sampled_from(["r1", "r2", "r3"]), min_size=1)
    inputs = draw(st.lists(st.lists(replicas, min_size=1, max_size=2), min_size=1, max_size=6))
    places = [draw(st.sampled_from(names)) for _ in inputs]
    app = state(
        racks, inputs, [draw(st.sampled_from([place, "", *names])) for place in places]
    )  # not always where it is
    return app, dict(zip(app.tasks, places, strict=True))


@settings(max_examples=300, deadline=None)
@given(problems(), st.integers(0, 10), st.integers(0, 10))
def test_no_other_placement_with_the_same_shares_is_cheaper(problem, traffic, non_overlap):
    app, before = problem
    after = optimized_for_racks(app, before, traffic_cost=traffic, non_overlap_cost=non_overlap)
    assert Counter(after.values()) == Counter(before.values())
    seats = set(itertools.permutations(before.values()))
    best = min(cost(app, dict(zip(app.tasks, seat, strict=True)), traffic, non_overlap) for seat in seats)
    assert cost(app, after, traffic, non_overlap) == best


def racked(assignor=None, **more) -> Cluster:
    processes = [Process(f"p{number}", rack=f"r{number % 2}") for number in range(2)]
    cluster = Cluster((PLAIN, COUNTS), processes, **({"assignor": assignor} if assignor else {}), **more)
    for topic in ("lines", "words", "counts-log"):
        for partition in range(4):  # the way round that dealing in order does not hit
            cluster.racks[TopicPartition(topic, partition)] = frozenset({f"r{(partition + 1) % 2}"})
    return cluster


def test_both_assignors_place_tasks_in_the_rack_of_their_input_and_come_to_rest():
    for assignor in (None, StickyTaskAssignor()):
        cluster = racked(assignor, rack_aware_strategy="min_traffic")
        cluster.settle()
        assert all(name == f"p{(task.partition + 1) % 2}" for task, name in cluster.active_places().items())
        before = cluster.active_places()
        cluster.settle()
        assert cluster.active_places() == before


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["r1", "r2"]), st.sampled_from("ab")), min_size=2, max_size=6),
    st.lists(st.sampled_from(["r1", "r2"]), min_size=8, max_size=8),
    st.sampled_from(["none", "min_traffic"]),
)
def test_standbys_read_less_from_other_racks_and_stay_apart(places, changelogs, strategy):
    def settled(strategy):
        processes = [Process(f"p{n}", rack=rack, tags={"zone": zone}) for n, (rack, zone) in enumerate(places)]
        wide = SubTopologyInfo("wide", {"in": 8}, True, ("log",))
        chosen = {"rack_aware_strategy": strategy, "rack_aware_tags": ("zone",)}
        cluster = Cluster((wide,), processes, num_standby_replicas=1, max_warmup_replicas=20, **chosen)
        for partition, rack in enumerate(changelogs):
            cluster.racks[TopicPartition("in", partition)] = frozenset({"r1", "r2"})
            cluster.racks[TopicPartition("log", partition)] = frozenset({rack})
        cluster.settle()
        cluster.converge(5)
        return cluster

    plain, racked = settled("none"), settled(strategy)
    assert _crossing(racked) <= _crossing(plain)
    zones = {zone for _, zone in places}
    for task, (standby,) in racked.copies("standby").items():
        home = racked.active_places()[task]
        assert standby != home
        if len(zones) > 1:
            assert racked.processes[standby].tags != racked.processes[home].tags


def _crossing(cluster: Cluster) -> int:
    return sum(
        cluster.processes[name].rack not in cluster.racks[TopicPartition("log", task.partition)]
        for task, names in cluster.copies("standby").items()
        for name in names
    )


def test_standbys_change_places_where_that_saves_traffic():
    processes = [Process(f"p{number}", rack=f"r{number % 2}") for number in range(4)]
    wide = SubTopologyInfo("wide", {"in": 8}, True, ("log",))
    crossings = {}
    for strategy in ("none", "min_traffic"):
        cluster = Cluster((wide,), processes, num_standby_replicas=1, rack_aware_strategy=strategy)
        for partition in range(8):
            cluster.racks[TopicPartition("in", partition)] = frozenset({"r0", "r1"})
            cluster.racks[TopicPartition("log", partition)] = frozenset({f"r{partition // 4}"})
        for process in processes:
            process.plans.clear()
            process.memory.clear()
            process.sums.clear()
        cluster.settle()
        crossings[strategy] = _crossing(cluster)
    assert crossings["min_traffic"] == 0 < crossings["none"]


def test_sub_topologies_keep_their_shares_if_the_app_says_so():
    cluster = racked(rack_aware_strategy="balance_subtopology")
    for partition in range(4):  # all input of one, none of the other
        cluster.racks[TopicPartition("lines", partition)] = frozenset({"r0"})
        cluster.racks[TopicPartition("words", partition)] = frozenset({"r1"})
    cluster.settle()
    shares = Counter((task.content_id, name) for task, name in cluster.active_places().items())
    assert set(shares.values()) == {2}


def changes_places(assignor, *, stateful: bool, inputs: int, **settings) -> bool:
    """Whether two tasks do, with so many input partitions each, when these have gone to each other's racks."""
    info = SubTopologyInfo("s", {f"t{number}": 2 for number in range(inputs)}, stateful, ("log",) * stateful)
    processes = [Process(f"p{number}", rack=f"r{number}") for number in range(2)]
    cluster = Cluster((info,), processes, assignor=assignor, rack_aware_strategy="min_traffic", **settings)

    def read_from(racks):
        for task in info.tasks():
            cluster.racks |= {p: frozenset({racks[task.partition]}) for p in info.partitions_of(task)}
            cluster.racks |= {p: frozenset({"r0", "r1"}) for p in info.changelogs_of(task)}
        cluster.settle()
        cluster.converge(5)
        return cluster.active_places()

    before = read_from(["r0", "r1"])
    assert sorted(before.values()) == ["p0", "p1"]
    after = read_from(["r1", "r0"])
    assert after in (before, {task: before[other] for task, other in itertools.permutations(before, 2)})
    return after != before


HA, STICKY = HighAvailabilityTaskAssignor(), StickyTaskAssignor()


@pytest.mark.parametrize(
    ("assignor", "inputs", "settings", "moves"),
    [
        # Each moves where the traffic it saves costs more than its move: 10 per partition against 1 ...
        (HA, 1, {}, True),
        (HA, 1, {"rack_aware_non_overlap_cost": 9}, True),
        (HA, 1, {"rack_aware_non_overlap_cost": 10}, False),
        (HA, 1, {"rack_aware_traffic_cost": 1}, False),
        (HA, 1, {"rack_aware_traffic_cost": 2}, True),
        # ... and with the sticky assignor 1 against 10.
        (STICKY, 10, {}, False),
        (STICKY, 11, {}, True),
        (STICKY, 1, {"rack_aware_non_overlap_cost": 1}, False),
        (STICKY, 2, {"rack_aware_non_overlap_cost": 1}, True),
        (STICKY, 1, {"rack_aware_traffic_cost": 11}, True),
    ],
)
def test_costs_are_the_assignors_own_unless_the_app_has_others(assignor, inputs, settings, moves):
    assert changes_places(assignor, stateful=True, inputs=inputs, **settings) is moves


@pytest.mark.parametrize("assignor", [HA, STICKY], ids=["high_availability", "sticky"])
def test_a_task_without_state_moves_for_nothing_whatever_the_app_says_of_moves(assignor):
    assert changes_places(assignor, stateful=False, inputs=1, rack_aware_non_overlap_cost=100)


def test_a_standby_is_wanted_back_by_who_has_it():
    """Going home saves moves as well as traffic."""
    tasks = [TaskKey("s", 0), TaskKey("s", 1)]
    app = state({"a": "r1", "b": "r1", "c": "r2"}, [[{"r1"}]] * 2, ["a", "a"])
    logs = [TopicPartition("log", number) for number in range(2)]
    infos = {
        task: msgspec.structs.replace(app.tasks[task], stateful=True, changelogs=(logs[task.partition],))
        for task in tasks
    }
    holders = {"b": frozenset({tasks[0]}), "c": frozenset({tasks[1]})}
    processes = {
        name: msgspec.structs.replace(process, standby=holders.get(name, frozenset()))
        for name, process in app.processes.items()
    }
    racks = app.partition_racks | {logs[0]: frozenset({"r1"}), logs[1]: frozenset({"r1", "r2"})}
    app = msgspec.structs.replace(app, tasks=infos, processes=processes, partition_racks=racks)
    crossed = {tasks[0]: {"c"}, tasks[1]: {"b"}}
    active = dict.fromkeys(tasks, "a")
    found = standbys_optimized_for_racks(app, active, crossed, traffic_cost=1, non_overlap_cost=10)
    assert found == {tasks[0]: {"b"}, tasks[1]: {"c"}}
