"""In which order workers get a new version, that all of them stop where two versions cannot share a group, and what a failed gate
leaves behind.
"""

import pytest
from tests.unit.streamfleet_platform.simulated_world import Lab

from streamfleet_platform import views
from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.registry import apps

UPGRADE = OperationKind.UPGRADE


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    yield lab
    lab.server.close()


def deployed(lab, **more):
    lab.deployed(min=3, **more)
    lab.observer.placed = {0: 0, 1: 1, 2: 0, 3: 1}
    lab.step()
    lab.runtime.calls.clear()
    return lab


def acts(lab, *verbs):
    return [(verb, slot) for verb, _, slot in lab.runtime.calls if verb in verbs]


@pytest.mark.parametrize(
    ("leader", "order"),
    [
        pytest.param(0, [2, 1, 0], id="without active stateful tasks first, the leader last"),
        pytest.param(2, [0, 1, 2], id="the leader last, whatever it runs"),
        pytest.param(1, [2, 0, 1], id="in the order of slots otherwise"),
    ],
)
def test_who_can_be_missed_most_is_replaced_first(lab, leader, order):
    deployed(lab)
    lab.observer.leader = leader
    lab.step()
    lab.declare(min=3, entry="rolling")
    over = lab.run(lab.operate(UPGRADE).id)
    assert over.state == "succeeded"
    assert [slot for _, slot in acts(lab, "start")] == order
    gates = [step.name for step in over.steps if step.name.startswith(("replace-slot", "pass-gate"))]
    assert gates == [name for slot in order for name in (f"replace-slot {slot}", f"pass-gate {slot}")]


def test_by_ordinal_where_the_definition_says_so(lab):
    ordinal = "rollout: {order: ordinal}"
    deployed(lab, more=ordinal)
    lab.declare(min=3, entry="rolling", more=ordinal)
    lab.run(lab.operate(UPGRADE).id)
    assert [slot for _, slot in acts(lab, "start")] == [0, 1, 2]


def test_a_store_more_stops_all_before_it_starts_any(lab):
    deployed(lab)
    lab.declare(min=3, entry="restart")
    [change] = lab.fleet.plan(views.SourceRequest()).changes
    assert (change.verdict, change.lost_state) == ("RESTART", ())
    over = lab.run(lab.operate(UPGRADE).id)
    assert over.state == "succeeded"
    assert [verb for verb, _ in acts(lab, "stop", "start")] == ["stop"] * 3 + ["start"] * 3
    assert [order[2] for order in lab.doors.orders] == ["drain"] * 3, (
        "no member of the old version is left in the group"
    )
    names = [step.name for step in over.steps]
    assert names.index("stop-slot 2") < names.index("wait-for-empty-group") < names.index("start-slot 0")
    assert "one-more-changelog" in lab.cluster.there and lab.cluster.deleted == []
    lab.step()
    assert lab.fleet.app("one").phase == "running"


def test_going_back_from_a_store_more_stops_all_as_well(lab):
    deployed(lab)
    good = lab.fleet.app("one").revision
    lab.declare(min=3, entry="restart")
    lab.observer.sick.add(lab.fleet.plan(views.SourceRequest()).revision)
    operation = lab.operate(UPGRADE)
    for _ in range(20):
        lab.clock.advance(10)
        lab.step()
    assert lab.run(operation.id).state == "rolled_back"
    assert [verb for verb, _ in acts(lab, "stop", "start")] == (["stop"] * 3 + ["start"] * 3) * 2
    lab.step()
    assert {worker.revision for worker in lab.runtime.list()} == {good}
    assert lab.fleet.app("one").phase == "running"


def test_a_gate_that_fails_leaves_everything_as_it_is_where_the_definition_says_pause(lab):
    paused = "rollout: {onGateFail: pause}"
    deployed(lab, more=paused)
    good = lab.fleet.app("one").revision
    lab.declare(min=3, entry="rolling", more=paused)
    bad = lab.fleet.plan(views.SourceRequest()).revision
    lab.observer.sick.add(bad)
    operation = lab.operate(UPGRADE)
    for _ in range(10):
        lab.clock.advance(10)
        lab.step()
    over = lab.run(operation.id)
    assert over.state == "failed" and "not well within 1 m" in over.error
    revisions = {worker.slot: worker.revision for worker in lab.runtime.list()}
    assert sorted(revisions.values()) == sorted([good, good, bad]), "one was replaced, and nobody else is"
    pids = lab.pids()
    for _ in range(5):
        lab.step()
    assert lab.pids() == pids, "it waits for a person"
    lab.declare(min=3, entry="topology", more=paused)
    (lab.source / "code.py").write_text("cure = 1\n")
    assert lab.run(lab.operate(UPGRADE).id).state == "succeeded"
    assert len({worker.revision for worker in lab.runtime.list()}) == 1


def test_a_gate_is_not_passed_on_a_lag_that_nobody_knows(lab):
    deployed(lab)
    lab.declare(min=3, entry="rolling")
    lab.observer.unknown_lag = True
    operation = lab.operate(UPGRADE)
    for _ in range(5):
        lab.step()
    told = lab.fleet.operation(operation.id)
    assert told.state == "running" and "lag is not known" in told.step
    lab.observer.unknown_lag = False
    assert lab.run(operation.id).state == "succeeded"


def left_as_it_failed(lab, entry="restart", *, more="rollout: {onGateFail: pause}"):
    """The revision that the failed upgrade left the app at."""
    lab.declare(min=3, entry=entry, more=more)
    bad = lab.fleet.plan(views.SourceRequest()).revision
    lab.observer.sick.add(bad)
    operation = lab.operate(UPGRADE)
    for _ in range(10):
        lab.clock.advance(10)
        lab.step()
    assert lab.run(operation.id).state == "failed"
    return bad


@pytest.mark.parametrize("entry", ["rolling", "restart"])
def test_a_revision_that_was_left_as_it_failed_is_not_gone_back_to(lab, entry):
    deployed(lab)
    good = lab.fleet.app("one").revision
    bad = left_as_it_failed(lab)
    assert lab.fleet.app("one").revision == bad
    lab.declare(min=3, entry=entry)
    (lab.source / "code.py").write_text("worse = 1\n")
    lab.observer.sick.add(lab.fleet.plan(views.SourceRequest()).revision)
    operation = lab.operate(UPGRADE, accept_lost_state=True)  # one of them takes the store away again
    for _ in range(12):
        lab.clock.advance(10)
        lab.step()
    assert lab.run(operation.id).state == "rolled_back"
    lab.step()
    assert {worker.revision for worker in lab.runtime.list()} == {good}
    assert (lab.fleet.app("one").revision, lab.fleet.app("one").phase) == (good, "running")


def test_settings_that_no_worker_sees_make_no_revision_good(lab):
    deployed(lab)
    good = lab.fleet.app("one").revision
    left_as_it_failed(lab)
    lab.declare(min=3, entry="restart", more="health: {noProgress: 9m}")
    same = lab.fleet.plan(views.SourceRequest()).revision
    assert lab.run(lab.operate(UPGRADE).id).state == "succeeded"
    with lab.world.database.read() as session:
        row = apps.get_app(session, "one")
    assert (row.revision, row.good_revision) == (same, good)


def test_where_nothing_ever_ran_well_what_was_there_before_comes_back(lab):
    lab.declare(min=2)
    lab.start()
    first = lab.fleet.plan(views.SourceRequest()).revision
    lab.observer.sick.add(first)
    [operation] = lab.apply().operations
    for _ in range(10):
        lab.clock.advance(10)
        lab.step()
    assert lab.run(operation.id).state == "failed"
    lab.declare(min=2, entry="rolling")
    lab.observer.sick.add(lab.fleet.plan(views.SourceRequest()).revision)
    lab.observer.sick.remove(first)  # it took longer than the gate of its deployment, and is well by now
    operation = lab.operate(UPGRADE)
    for _ in range(10):
        lab.clock.advance(10)
        lab.step()
    assert lab.run(operation.id).state == "rolled_back"
    assert {worker.revision for worker in lab.runtime.list()} == {first} == {lab.fleet.app("one").revision}


def test_what_starts_well_is_good_and_what_was_never_started_is_not(lab):
    deployed(lab)
    good = lab.fleet.app("one").revision
    lab.run(lab.operate(OperationKind.STOP).id)
    lab.declare(min=3, entry="rolling")
    lab.run(lab.operate(UPGRADE).id)

    def told():
        with lab.world.database.read() as session:
            row = apps.get_app(session, "one")
        return row.good_revision == good, row.good_revision == row.revision

    assert told() == (True, False)
    lab.run(lab.operate(OperationKind.START).id)
    assert told() == (False, True)


def test_a_revision_whose_state_was_deleted_is_not_gone_back_to(lab):
    deployed(lab)
    lab.declare(min=3, entry="lossy")
    lossy = lab.fleet.plan(views.SourceRequest()).revision
    lab.observer.sick.add(lossy)
    operation = lab.operate(UPGRADE, accept_lost_state=True)
    for _ in range(12):
        lab.clock.advance(10)
        lab.step()
    assert lab.run(operation.id).state == "failed"
    with lab.world.database.read() as session:
        row = apps.get_app(session, "one")
    assert (row.revision, row.good_revision) == (lossy, None)
