"""An app that a reset has left half done is started by nobody and nothing, until it is reset to the end."""

import pytest
from tests.unit.streamfleet_platform.simulated_world import Lab

from streamfleet_platform.errors import ConflictError
from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.registry import apps

LEFT = "one-by-country-repartition"


@pytest.fixture
def lab(tmp_path):
    """Two slots; the reset failed because a topic of another id has the name of a recorded one."""
    lab = Lab(tmp_path).deployed(min=2)
    lab.cluster.add(LEFT)
    assert lab.run(lab.operate(OperationKind.RESET, confirm="one").id).state == "failed"
    lab.step()
    lab.runtime.calls.clear()
    yield lab
    lab.server.close()


def hold(lab, by):
    def change(session):
        apps.get_app(session, "one").fenced_by = by

    lab.world.database.write(change)


def starts(lab):
    return [slot for verb, _, slot in lab.runtime.calls if verb == "start"]


@pytest.mark.parametrize(
    ("kind", "params"),
    [(OperationKind.START, {}), (OperationKind.SCALE, {"slots": 3}), (OperationKind.PROBE, {})],
)
def test_what_would_start_or_move_its_tasks_is_refused(lab, kind, params):
    with pytest.raises(ConflictError, match="held by reset-"):
        lab.operate(kind, **params)
    lab.step()
    assert lab.pids() == {} and starts(lab) == []


def test_an_upgrade_waits_and_one_without_the_state_is_a_way_out(lab):
    lab.declare(min=2, entry="rolling")
    result = lab.apply()
    assert result.operations == () and "held by reset-" in result.plan.changes[0].blocked
    with pytest.raises(ConflictError, match="held by reset-"):
        lab.operate(OperationKind.UPGRADE)
    assert starts(lab) == []
    del lab.cluster.there[LEFT]
    lab.declare(min=2, entry="lossy")
    assert lab.run(lab.operate(OperationKind.UPGRADE, accept_lost_state=True).id).state == "succeeded"
    assert sorted(lab.pids()) == [0, 1]


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        (OperationKind.SCALE, {"slots": 3}),
        (OperationKind.PROBE, {}),
        (OperationKind.START, {}),
        (OperationKind.UPGRADE, {}),
    ],
)
def test_what_was_asked_for_before_it_was_held_fails_without_a_start(lab, kind, params):
    with lab.world.database.read() as session:
        holder = apps.get_app(session, "one").fenced_by
    hold(lab, None)
    lab.declare(min=2, entry="rolling")
    operation = lab.operate(kind, **params)
    hold(lab, holder)
    over = lab.run(operation.id)
    assert over.state == "failed" and "held by reset-" in over.error
    lab.step()
    assert lab.pids() == {} and starts(lab) == []


def test_a_step_that_starts_a_worker_looks_for_itself(lab):
    lab.cluster.there.pop(LEFT)
    assert lab.run(lab.operate(OperationKind.RESET, confirm="one").id).state == "succeeded"
    lab.declare(min=2, entry="rolling")
    operation = lab.operate(OperationKind.UPGRADE)
    lab.observer.unknown_lag = True  # it waits at the gate of its first slot
    lab.step()
    hold(lab, "reset-of-another-server")
    lab.runtime.calls.clear()
    lab.observer.unknown_lag = False
    over = lab.run(operation.id)
    assert over.state == "rolled_back" and "held by reset-of-another-server" in over.error
    lab.step()
    assert starts(lab) == [] and lab.pids() == {}


def test_a_retirement_that_is_called_off_keeps_it_and_starts_nobody(lab):
    operation = lab.operate(OperationKind.RETIRE, confirm="one", undo_window_seconds=3600)
    for _ in range(8):
        lab.step()
    lab.fleet.cancel(operation.id, actor="ann")
    over = lab.run(operation.id)
    lab.step()
    assert over.state == "rolled_back" and lab.pids() == {} and starts(lab) == []
    assert lab.fleet.app("one").phase == "fenced"
    del lab.cluster.there[LEFT]
    assert lab.run(lab.operate(OperationKind.RESET, confirm="one").id).state == "succeeded"
    assert sorted(lab.pids()) == [0, 1]
