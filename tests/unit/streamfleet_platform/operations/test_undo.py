"""What is called off, or fails half-way, is undone: the app is what it was before, and free for the next operation."""

import shutil

import pytest
from sqlalchemy import text
from tests.unit.streamfleet_platform.simulated_world import Lab

from streamfleet_platform import views
from streamfleet_platform.errors import ConflictError, NotFoundError
from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.runtime.api import WorkerPhase


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    yield lab
    lab.server.close()


def numbers(lab):
    app = lab.fleet.app("one")
    return app.slots, sorted(lab.pids())


def test_a_deployment_that_waits_for_a_topic_nobody_makes_can_be_called_off(lab):
    lab.declare()
    del lab.cluster.there["one-in"]
    lab.start()
    [operation] = lab.apply().operations
    for _ in range(3):
        lab.step()
    assert "input topics are missing: one-in" in lab.fleet.operation(operation.id).step
    lab.fleet.cancel(operation.id, actor="eve")
    over = lab.run(operation.id)
    assert (over.state, over.error) == ("rolled_back", "called off by eve")
    with pytest.raises(NotFoundError):
        lab.fleet.app("one")
    lab.declare()  # the topic is there now
    [again] = lab.apply().operations
    assert lab.run(again.id).state == "succeeded"


def test_a_deployment_that_is_called_off_leaves_nothing(lab):
    lab.declare(min=2)
    lab.start()
    lab.observer.sick.add(lab.fleet.plan(views.SourceRequest()).revision)
    [operation] = lab.apply().operations
    for _ in range(3):
        lab.step()
    assert len(lab.pids()) == 2
    lab.fleet.cancel(operation.id, actor="eve")
    assert lab.run(operation.id).state == "rolled_back"
    assert lab.runtime.list() == [] and sorted(lab.cluster.there) == ["one-in", "one-out"]
    assert not list(lab.settings.code.iterdir())


def test_slots_that_do_not_come_up_are_taken_away_again(lab):
    lab.deployed()
    operation = lab.operate(OperationKind.SCALE, slots=3)
    lab.step()
    for _ in range(3):
        lab.runtime.end("one", 2, 1, "no such library")
    assert lab.runtime.describe("one", 2).phase is WorkerPhase.CRASH_LOOP
    over = lab.run(operation.id)
    assert over.state == "rolled_back" and "slot 2 crashes again and again" in over.error
    lab.step()
    assert numbers(lab) == (1, [0]) and lab.fleet.app("one").phase == "running"


def test_growing_can_be_called_off_and_shrinking_cannot(lab):
    lab.deployed()
    growing = lab.operate(OperationKind.SCALE, slots=3)
    lab.step()
    lab.fleet.cancel(growing.id, actor="eve")
    assert lab.run(growing.id).state == "rolled_back" and numbers(lab) == (1, [0])
    lab.run(lab.operate(OperationKind.SCALE, slots=2).id)
    shrinking = lab.operate(OperationKind.SCALE, slots=1)
    lab.step()
    lab.fleet.cancel(shrinking.id, actor="eve")
    assert lab.run(shrinking.id).state == "succeeded" and numbers(lab) == (1, [0])
    assert any("cannot be undone any more" in event.message for event in lab.fleet.events("one", 0, 100))


def test_an_upgrade_that_waits_at_its_gate_can_be_called_off(lab):
    lab.deployed(min=2)
    good = lab.fleet.app("one").revision
    lab.declare(min=2, entry="rolling")
    lab.observer.sick.add(lab.fleet.plan(views.SourceRequest()).revision)
    operation = lab.operate(OperationKind.UPGRADE)
    for _ in range(3):
        lab.step()
    lab.fleet.cancel(operation.id, actor="eve")
    assert lab.run(operation.id).state == "rolled_back"
    assert lab.fleet.app("one").revision == good and {w.revision for w in lab.runtime.list("one")} == {good}


def test_a_reset_cannot_be_called_off_once_it_has_begun(lab):
    lab.deployed()
    operation = lab.operate(OperationKind.RESET, confirm="one")
    lab.step()
    with pytest.raises(ConflictError, match="cannot be cancelled any more"):
        lab.fleet.cancel(operation.id, actor="eve")


def test_a_retirement_that_is_undone_leaves_a_stopped_app_stopped(lab):
    lab.deployed()
    lab.run(lab.operate(OperationKind.STOP).id)
    operation = lab.operate(OperationKind.RETIRE, confirm="one", undo_window_seconds=3600)
    for _ in range(4):
        lab.step()
    lab.fleet.cancel(operation.id, actor="ann")
    assert lab.run(operation.id).state == "rolled_back"
    lab.step()
    assert lab.fleet.app("one").desired == "stopped" and lab.pids() == {}


def test_an_upgrade_of_a_stopped_app_that_fails_starts_nobody(lab):
    lab.deployed()
    lab.run(lab.operate(OperationKind.STOP).id)
    lab.declare(entry="rolling")
    lab.cluster.there["one-by-country-repartition"] = lab.cluster.there["one-in"]  # of another id: not ours
    del lab.cluster.there["one-activity-by-minute-changelog"]
    lab.world.database.write(lambda session: session.execute(text("DELETE FROM internal_topic")))
    failed = lab.run(lab.operate(OperationKind.UPGRADE).id)
    lab.step()
    assert failed.state == "rolled_back" and "not made for this app" in failed.error
    assert lab.pids() == {} and [call for call in lab.runtime.calls if call[0] == "start"] == [("start", "one", 0)]


def test_a_stopped_app_whose_new_version_cannot_use_its_state_loses_it_before_it_starts(lab):
    lab.deployed()
    lab.run(lab.operate(OperationKind.STOP).id)
    lab.declare(entry="lossy")
    over = lab.run(lab.operate(OperationKind.UPGRADE, accept_lost_state=True).id)
    assert over.state == "succeeded" and over.result["deleted_topics"]
    assert lab.pids() == {} and lab.fleet.app("one").desired == "stopped"


def test_a_new_revision_starts_an_app_whose_deployment_came_to_no_worker(lab):
    lab.declare()
    lab.cluster.add("one-by-country-repartition")  # somebody else's
    lab.start()
    [operation] = lab.apply().operations
    assert lab.run(operation.id).state == "failed"
    lab.step()
    assert lab.fleet.app("one").phase == "failed"
    del lab.cluster.there["one-by-country-repartition"]
    lab.declare(entry="rolling")
    [again] = lab.apply().operations
    assert lab.run(again.id).state == "succeeded"
    lab.step()
    assert lab.fleet.app("one").phase == "running"


def test_what_was_retired_can_be_applied_again_with_its_code(lab):
    lab.deployed()
    lab.run(lab.operate(OperationKind.RETIRE, confirm="one", undo_window_seconds=0).id)
    [operation] = lab.apply().operations
    assert lab.run(operation.id).state == "succeeded"
    assert all(spec.code.is_dir() for spec in lab.runtime.specs.values())


def test_a_worker_whose_machine_was_restarted_while_the_app_starts_is_started_again(lab):
    lab.declare(min=2)
    lab.start()
    [operation] = lab.apply().operations
    lab.step()
    lab.runtime.lose("one", 1)
    assert lab.run(operation.id, steps=20).state == "succeeded"
    assert sorted(lab.pids()) == [0, 1]


def test_code_that_was_lost_is_said_so_and_comes_back_with_the_next_plan(lab):
    lab.deployed()
    [spec] = lab.runtime.specs.values()
    shutil.rmtree(spec.code)
    lab.fleet.plan(views.SourceRequest())
    assert (spec.code / "code.py").is_file()
