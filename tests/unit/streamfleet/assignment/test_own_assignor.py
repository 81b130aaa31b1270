"""An app's own TaskAssignor: how it is named, what it can be built from, and what happens when it is wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.unit.streamfleet.assignment.simulated_cluster import Cluster, Process

from streamfleet.assignment import (
    AssignmentError,
    HighAvailabilityTaskAssignor,
    ProcessAssignment,
    StickyTaskAssignor,
    SubTopologyInfo,
    TaskAssignment,
    TaskKey,
    assign,
)
from streamfleet.assignment.assignor_names import task_assignor
from streamfleet.assignment.building_blocks import (
    assembled,
    identity_assignment,
    optimized_for_racks,
    place_standbys,
    previous_places,
)
from streamfleet.errors import ConfigError, InvalidAssignmentError

COUNTS = SubTopologyInfo("counts", {"words": 2}, True, ("counts-log",))
PLAIN = SubTopologyInfo("plain", {"lines": 1}, False)
C0, C1 = COUNTS.tasks()
(P0,) = PLAIN.tasks()
STRANGER = TaskKey("counts", 9)


class AllToOne:
    """Everything to the process with the first name, standbys to the others."""

    def __init__(self) -> None:
        self.told: list[AssignmentError] = []

    def assign(self, state):
        active = dict.fromkeys(state.tasks, min(state.processes)) | previous_places(state)
        active = optimized_for_racks(state, active, traffic_cost=10, non_overlap_cost=1)
        return assembled(state, active, place_standbys(state, active))

    def on_assignment_computed(self, assignment, error):
        self.told.append(error)


class Answers(AllToOne):
    def __init__(self, **processes: ProcessAssignment) -> None:
        super().__init__()
        self._answer = TaskAssignment(processes=processes)

    def assign(self, state):
        return self._answer


class Silent:
    """Does not want to know."""

    def assign(self, state):
        return AllToOne().assign(state)


instance = AllToOne()


def group(assignor) -> Cluster:
    return Cluster((COUNTS, PLAIN), [Process("a"), Process("b")], assignor=assignor, num_standby_replicas=1)


def test_an_app_decides_by_itself_and_is_told_that_it_was_good():
    assignor = AllToOne()
    cluster = group(assignor)
    cluster.settle()
    assert set(cluster.active_places().values()) == {"a"}
    assert cluster.copies("standby") == {C0: ["b"], C1: ["b"]}
    assert assignor.told == [AssignmentError.NONE]


def test_what_it_decides_is_still_carried_out_in_two_steps():
    cluster = group(StickyTaskAssignor())
    cluster.settle()
    cluster.assignor = Answers(a=ProcessAssignment(), b=ProcessAssignment(active=frozenset({C0, C1, P0})))
    decided = cluster.rebalance()
    assert decided.follow_up and len(cluster.active_places()) < 3
    cluster.rebalance()
    assert set(cluster.active_places().values()) == {"b"}


def tasks(*given: TaskKey) -> frozenset[TaskKey]:
    return frozenset(given)


ALL = ProcessAssignment(active=tasks(C0, C1, P0))
NONE = ProcessAssignment()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"a": ALL, "b": ProcessAssignment(active=tasks(C0))}, AssignmentError.ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES),
        ({"a": ProcessAssignment(active=tasks(C0)), "b": NONE}, AssignmentError.ACTIVE_TASK_NOT_ASSIGNED),
        ({"a": ALL, "b": ProcessAssignment(standby=tasks(P0))}, AssignmentError.INVALID_STANDBY_TASK),
        ({"a": ALL, "b": ProcessAssignment(warmup=tasks(P0))}, AssignmentError.INVALID_STANDBY_TASK),
        (
            {"a": ProcessAssignment(active=ALL.active, standby=tasks(C0)), "b": NONE},
            AssignmentError.TWO_COPIES_IN_ONE_PROCESS,
        ),
        (
            {"a": ALL, "b": ProcessAssignment(standby=tasks(C0), warmup=tasks(C0))},
            AssignmentError.TWO_COPIES_IN_ONE_PROCESS,
        ),
        ({"a": ALL}, AssignmentError.MISSING_PROCESS_ID),
        ({"a": ALL, "b": NONE, "c": NONE}, AssignmentError.UNKNOWN_PROCESS_ID),
        ({"a": ALL, "b": ProcessAssignment(standby=tasks(STRANGER))}, AssignmentError.UNKNOWN_TASK_ID),
    ],
    ids=lambda value: value.name if isinstance(value, AssignmentError) else "",
)
def test_an_answer_that_cannot_be_carried_out_is_refused_and_the_assignor_is_told(answer, error):
    assignor = Answers(**answer)
    with pytest.raises(InvalidAssignmentError, match="Answers cannot be carried out: .*; correct the assignor"):
        group(assignor).rebalance()
    assert assignor.told == [error]


def test_a_task_for_a_process_whose_topology_lacks_it_is_refused():
    assignor = Answers(a=NONE, b=ALL)
    cluster = group(assignor)
    cluster.processes["b"].sub_topologies = (PLAIN,)
    with pytest.raises(InvalidAssignmentError):
        cluster.rebalance()
    assert assignor.told == [AssignmentError.UNABLE_PROCESS]


def test_the_identity_leaves_everything_where_it_is():
    cluster = group(AllToOne())
    cluster.settle()
    before = cluster.decided.members

    class Identity(AllToOne):
        def assign(self, state):
            return identity_assignment(state)

    cluster.assignor = Identity()
    cluster.settle()
    assert cluster.decided.members == before


def test_the_assignor_of_the_documentation_is_one():
    page = (Path(__file__).parents[4] / "docs" / "assignment.md").read_text()
    names: dict = {}
    exec(page.partition("```python\n")[2].partition("```")[0], names)
    cluster = group(names["KeepAndFill"]())
    cluster.settle()
    assert sorted(Counter(cluster.active_places().values()).values()) == [1, 2]
    before = cluster.active_places()
    cluster.processes["c"] = Process("c")
    cluster.settle()
    assert cluster.active_places() == before and cluster.copies("standby")


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (None, HighAvailabilityTaskAssignor),
        ("high_availability", HighAvailabilityTaskAssignor),
        ("sticky", StickyTaskAssignor),
        (f"{__name__}:AllToOne", AllToOne),
        (f"{__name__}:instance", AllToOne),
        (AllToOne, AllToOne),
        pytest.param(instance, AllToOne, id="an object"),
        (Silent, Silent),
    ],
    ids=repr,
)
def test_an_assignor_is_named_by_a_word_by_its_module_or_is_an_object(setting, expected):
    assignor = task_assignor(setting)
    assert type(assignor).__name__ == expected.__name__
    cluster = Cluster((PLAIN,), [Process("a")])
    assert assign(cluster.snapshot(), assignor).members["a/0"].active == (P0,)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("no.such.module:Assignor", "cannot be loaded: No module named 'no'"),
        (f"{__name__}:Missing", "cannot be loaded: .*Missing"),
        (f"{__name__}:COUNTS", "has no method assign"),
    ],
)
def test_an_assignor_that_is_not_there_is_named(setting, message):
    with pytest.raises(ConfigError, match=message):
        task_assignor(setting)
