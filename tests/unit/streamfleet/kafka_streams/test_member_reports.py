"""What a member tells the group about its tasks, and what a plan means to it."""

from types import SimpleNamespace

import pytest

from streamfleet.assignment.snapshot import MemberReport, Plan, TaskKey
from streamfleet.ids import TaskId
from streamfleet.kafka_streams.member_reports import MemberReports
from streamfleet.state.state_inventory import StateInventory
from streamfleet.task.phases import TaskPhase

COUNTS, JOIN = "c0ffee", "beef"


@pytest.fixture
def factory():
    part = SimpleNamespace(sources=("in",), changelog_topics=("app-s-changelog",))
    return SimpleNamespace(
        inventory=StateInventory(),
        content_ids=lambda: {0: COUNTS, 1: JOIN},
        partitions={"in": 3},
        plan=SimpleNamespace(sub_topologies={0: part, 1: part}),
    )


def reports(factory, active=(), wanted=(), standby=(), sums=()):
    """`active` are (task, phase)."""
    tasks = SimpleNamespace(
        owned=frozenset(wanted) | {task for task, _ in active},
        tasks={task: SimpleNamespace(phase=phase) for task, phase in active},
        standbys=SimpleNamespace(tasks=dict.fromkeys(standby)),
        offset_sums=lambda: dict(sums),
    )
    return MemberReports(factory, tasks, MemberReport(process_id="p", topology_hash="t", sub_topologies=()))


def test_tasks_that_do_not_run_yet_are_told_apart(factory):
    running, restoring, not_open = TaskId(0, 0), TaskId(0, 1), TaskId(1, 0)
    active = [(running, TaskPhase.RUNNING), (restoring, TaskPhase.RESTORING)]
    report = reports(factory, active, wanted=[not_open], standby=[TaskId(1, 2)]).report(False)
    assert report.owned == {TaskKey(COUNTS, 0), TaskKey(COUNTS, 1), TaskKey(JOIN, 0)}
    assert report.restoring == {TaskKey(COUNTS, 1), TaskKey(JOIN, 0)}
    assert report.standby == {TaskKey(JOIN, 2)}
    assert [info.changelogs for info in report.sub_topologies] == [("app-s-changelog",)] * 2


def test_state_of_closed_tasks_is_told_beside_that_of_open_ones(factory):
    factory.inventory.note((JOIN, 1), 40)
    factory.inventory.note((COUNTS, 0), 5)
    factory.inventory.note((COUNTS, 2), 0)
    report = reports(factory, sums={TaskId(0, 0): 70}).report(False)
    assert report.offset_sums == {TaskKey(JOIN, 1): 40, TaskKey(COUNTS, 0): 70}


def test_a_plan_is_read_by_what_tasks_are_not_by_their_numbers(factory):
    plan = Plan(
        active=(TaskKey(JOIN, 0),),
        standby=(TaskKey(COUNTS, 1),),
        warmup=(TaskKey(COUNTS, 2),),
        fence=(),
        follow_up=False,
        owners={},
        endpoints={},
        shutdown=False,
    )
    wanted = reports(factory).tasks_of(plan)
    assert (wanted.active, wanted.standby, wanted.warmup) == ({TaskId(1, 0)}, {TaskId(0, 1)}, {TaskId(0, 2)})
