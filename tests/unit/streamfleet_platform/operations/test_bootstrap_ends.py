"""How bootstraps end that are not adopted: by a reset or the end of their app, and without leaving records of users on disk.

The job's side of the fence is the job's own code (streamfleet_jobs), on the directory that the server made.
"""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.streamfleet_platform.operations.bootstrap_lab import (
    EPOCH_1,
    STATES,
    begin,
    deployed,
    finish,
    now,
    report,
)
from tests.unit.streamfleet_platform.simulated_world import Lab

from streamfleet_jobs.bootstrap.spec import read_spec
from streamfleet_jobs.bootstrap.steps import RunDirectory
from streamfleet_jobs.errors import RefusedError
from streamfleet_platform.errors import ConflictError, NotFoundError
from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.model.phase import Phase
from streamfleet_platform.operations.bootstrap_runs import KEEP_DAYS
from streamfleet_platform.registry import apps


@pytest.fixture
def lab(tmp_path):
    lab = deployed(Lab(tmp_path))
    yield lab
    lab.server.close()


def files_of(lab, run):
    """As a job leaves them: what it computed, and table files."""
    directory, table = Path(run.spec["directory"]), lab.settings.snapshots / EPOCH_1 / "0"
    for path in (directory / "computed" / "partition=0" / "rows.parquet", directory / "computed.json", table / "0.sst"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("ada, 17 orders")
    return directory


def of_users(lab):
    """Files that say something of records. What fences a run is not among them."""
    places = (lab.settings.runs, lab.settings.snapshots)
    return sorted(p.name for place in places for p in place.rglob("*") if p.is_file() and "ada" in p.read_text())


def failed(lab):
    """It was verified, with the group's offsets set, and could not be published."""
    run = begin(lab)
    for state in STATES:
        report(lab, run, state)
    lab.cluster.add(EPOCH_1)
    assert lab.run(run.operation).state == "failed"
    return run


def job_of(tmp_path, run):
    """An attempt of the run, as the real job begins."""
    path = tmp_path / f"spec-{run.token}.json"
    store = {**run.spec["store"], "kind": "timestamped_key_value", "key_serde": "string", "value_serde": "long"}
    path.write_text(json.dumps({**run.spec, "store": store}))  # the lab's store is a windowed one, which no job takes
    return RunDirectory(read_spec(path))


def test_after_a_reset_nobody_puts_back_the_offsets_of_the_state_that_was_deleted(lab, tmp_path):
    run = failed(lab)
    files_of(lab, run)
    del lab.cluster.there[EPOCH_1]
    assert lab.run(lab.operate(OperationKind.RESET, confirm="one").id).state == "succeeded"
    assert now(lab).state == "aborted" and "ended by reset-" in now(lab).detail["aborted"]["told"]
    with pytest.raises(ConflictError, match="no bootstrap under way"):
        begin(lab, abort=True)
    with pytest.raises(RefusedError, match="fenced"), job_of(tmp_path, run).held():
        pass
    assert of_users(lab) == [], "rows of users go with the state they were computed for"
    assert begin(lab).epoch == 2, "the next one may begin"


def test_a_reset_waits_for_an_attempt_that_may_be_setting_offsets_in_this_moment(lab, tmp_path):
    run = failed(lab)
    del lab.cluster.there[EPOCH_1]
    with job_of(tmp_path, run).held():
        reset = lab.operate(OperationKind.RESET, confirm="one")
        for _ in range(3):
            lab.step()
        assert "has not ended" in lab.fleet.operation(reset.id).step
        assert "one-activity-by-minute-changelog" in lab.cluster.there, "nothing was deleted yet"
    assert lab.run(reset.id).state == "succeeded"


def test_an_app_that_was_reset_before_its_published_state_was_taken_over_never_says_it_was(lab):
    assert finish(lab, begin(lab)).state == "succeeded"
    lab.run(lab.operate(OperationKind.RESET, confirm="one").id)
    assert now(lab).state == "aborted"
    lab.run(lab.operate(OperationKind.START).id)
    assert now(lab).state == "aborted"


@pytest.mark.parametrize("is_aborting", [False, True])
def test_a_run_that_lost_the_app_in_an_older_registry_does_not_block_the_next_for_ever(lab, tmp_path, is_aborting):
    run = failed(lab)
    if is_aborting:
        run = begin(lab, abort=True)
    lab.world.database.write(lambda session: setattr(apps.get_app(session, "one"), "fenced_by", None))
    with pytest.raises(ConflictError, match="no longer holds app one, and must not put offsets back"):
        begin(lab, abort=True)
    new = begin(lab)
    former = next(each for each in lab.fleet.bootstraps("one") if each.id == run.id)
    assert (new.id != run.id, new.epoch, former.state) == (True, 2, "aborted")
    with pytest.raises(RefusedError, match="fenced"), job_of(tmp_path, run).held():
        pass


def test_a_retirement_that_is_called_off_leaves_a_failed_bootstrap_its_hold(lab):
    run = failed(lab)
    lab.step()
    retirement = lab.operate(OperationKind.RETIRE, confirm="one", undo_window_seconds=3600)
    for _ in range(4):
        lab.step()
    lab.fleet.cancel(retirement.id, actor="ann")
    assert lab.run(retirement.id).state == "rolled_back"
    lab.step()
    assert lab.fleet.app("one").phase is Phase.FENCED
    with pytest.raises(ConflictError, match="held by"):
        lab.operate(OperationKind.START)
    assert begin(lab, abort=True).id == run.id, "its offsets can still be put back"


def test_the_end_of_an_app_ends_its_bootstraps_and_deletes_their_files(lab):
    files_of(lab, failed(lab))
    lab.run(lab.operate(OperationKind.RETIRE, confirm="one", undo_window_seconds=0).id)
    with pytest.raises(NotFoundError):
        lab.fleet.app("one")
    assert of_users(lab) == []
    [operation] = lab.apply().operations
    assert lab.run(operation.id).state == "succeeded"
    assert now(lab).state == "aborted", "an app of the same name has nothing to do with it"


def test_an_aborted_run_leaves_no_files(lab):
    run = begin(lab)
    files_of(lab, run)
    aborting = begin(lab, abort=True)
    report(lab, aborting, "aborted")
    assert lab.run(run.operation).state == "rolled_back"
    assert of_users(lab) == []


def test_a_run_that_is_aborted_when_its_operation_is_over_leaves_no_files_when_the_app_starts(lab):
    run = failed(lab)
    files_of(lab, run)
    report(lab, begin(lab, abort=True), "aborted")
    started = lab.run(lab.operate(OperationKind.START).id)
    assert started.state == "succeeded" and started.steps[-1].name.startswith("delete-dead-files")
    assert of_users(lab) == []
    lab.run(lab.operate(OperationKind.STOP).id)
    assert len(lab.run(lab.operate(OperationKind.START).id).steps) == len(started.steps) - 1, "once"


def test_what_was_computed_goes_when_it_was_adopted_and_table_files_stay_for_slots_to_come(lab):
    run = begin(lab, start=True)
    directory = files_of(lab, run)
    assert finish(lab, run).state == "succeeded"
    assert now(lab).state == "adopted" and of_users(lab) == ["0.sst"]
    assert [path.name for path in directory.iterdir() if not path.name.endswith("lock")] == ["fence.json"]


def test_files_of_a_former_epoch_go_by_age_and_the_fence_too(lab):
    first = begin(lab, start=True)
    directory = files_of(lab, first)
    finish(lab, first)
    lab.run(lab.operate(OperationKind.STOP).id)
    lab.world.database.write(lambda session: setattr(apps.get_app(session, "one"), "epochs", {"activity-by-minute": 2}))
    lab.run(lab.operate(OperationKind.START).id)
    assert of_users(lab) == ["0.sst"], "somebody may want to go back"
    lab.run(lab.operate(OperationKind.STOP).id)
    lab.clock.now += timedelta(days=KEEP_DAYS + 1)
    lab.step()
    lab.run(lab.operate(OperationKind.START).id)
    assert of_users(lab) == [] and not directory.exists()
