"""Bootstraps as operations: journalled, fenced, published in one step, aborted without a trace. Kills are in the integration set.

The job's part is played by the test: it reports states, as the real one does by the command line.
"""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.streamfleet_platform.operations.bootstrap_lab import (
    EPOCH_1,
    STATES,
    STORE,
    begin,
    deployed,
    finish,
    now,
    report,
    topics,
)
from tests.unit.streamfleet_platform.simulated_world import Lab

from streamfleet_platform.errors import ConflictError, StaleError
from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.model.phase import Phase


@pytest.fixture
def lab(tmp_path):
    lab = deployed(Lab(tmp_path))
    yield lab
    lab.server.close()


def test_what_was_verified_is_published_and_then_adopted(lab):
    run = begin(lab)
    lab.step()
    assert lab.fleet.app("one").phase is Phase.FENCED
    assert finish(lab, run).state == "succeeded"
    assert (now(lab).state, now(lab).epoch) == ("published", 1)
    assert topics(lab) == {f"one-{STORE}-changelog": True, EPOCH_1: False}
    lab.runtime.logs = lambda *_: json.dumps(
        {"event": "snapshot not used, the changelog is replayed", "store": STORE, "partition": 2, "why": "checksum"}
    )
    assert lab.run(lab.operate(OperationKind.START).id).state == "succeeded"
    [worker] = lab.runtime.list("one")
    assert f"{STORE}:1" in json.dumps(lab.runtime.specs["one", worker.slot].settings, default=str)
    assert now(lab).state == "adopted"
    assert now(lab).detail["adopted"]["replayed"] == ["partition 2: checksum"]


def test_the_job_is_told_which_code_will_run_on_what_it_builds(lab):
    code = begin(lab).spec["app"]["code"]
    assert (Path(code["directory"]) / f"{code['entrypoint'].partition(':')[0].replace('.', '/')}.py").is_file()
    assert code["settings"]["processing.exception.handler"] == "fail"
    assert "${" not in str(code["settings"]), "no reference to a secret"


def said(partition, event="snapshot taken over", **more):
    return json.dumps({"event": event, "store": STORE, "partition": partition, **more})


def test_what_workers_no_longer_say_is_unknown_and_what_they_said_before_is_of_another_epoch(lab):
    finish(lab, begin(lab))
    long_ago, since = (lab.clock.now - timedelta(hours=1)).isoformat(), (lab.clock.now + timedelta(hours=1)).isoformat()
    lines = [said(0, timestamp=since), said(1, timestamp=long_ago), '{"snapshot cut short']
    lab.runtime.logs = lambda *_: "\n".join(lines)
    lab.run(lab.operate(OperationKind.START).id)
    adopted = now(lab).detail["adopted"]
    assert (adopted["by_files"], adopted["replayed"], adopted["unknown"]) == (1, [], 3)
    assert adopted["told"] == "1 partitions by files, of 3 it is unknown: their workers' logs do not say"


def test_the_start_can_be_part_of_it(lab):
    assert finish(lab, begin(lab, start=True)).state == "succeeded"
    assert now(lab).state == "adopted"
    lab.step()
    assert lab.fleet.app("one").phase is Phase.RUNNING


def test_it_is_refused_while_the_app_runs(lab):
    lab.run(lab.operate(OperationKind.START).id)
    with pytest.raises(ConflictError, match="stop it"):
        begin(lab)
    assert lab.fleet.bootstraps("one") == []


def test_nothing_else_is_done_with_the_app_meanwhile(lab):
    begin(lab)
    for kind, params in ((OperationKind.START, {}), (OperationKind.SCALE, {"slots": 2})):
        with pytest.raises(ConflictError):
            lab.operate(kind, **params)


def test_a_new_attempt_fences_the_former(lab):
    first, second = begin(lab), begin(lab)
    assert (first.id, first.operation) == (second.id, second.operation)
    assert second.token > first.token
    assert second.spec["token"] == second.token
    with pytest.raises(StaleError):
        report(lab, first, "computed")
    assert finish(lab, second).state == "succeeded"
    with pytest.raises(ConflictError):
        report(lab, second, "computed")


def test_an_aborted_one_frees_the_app_and_the_next_takes_another_epoch(lab):
    run = begin(lab)
    for state in STATES:
        report(lab, run, state)
    aborting = begin(lab, abort=True)
    for _ in range(3):
        lab.step()
    assert now(lab).state == "aborting", "while its job puts offsets back, nothing is published"
    assert topics(lab) == {f"one-{STORE}-changelog": False, EPOCH_1: True}
    with pytest.raises(ConflictError):
        begin(lab)
    report(lab, aborting, "aborted")
    assert lab.run(run.operation).state == "rolled_back"
    lab.step()
    assert (now(lab).state, lab.fleet.app("one").phase) == ("aborted", Phase.STOPPED)
    assert begin(lab).epoch == 2


def test_a_topic_that_was_made_again_is_not_published(lab):
    run = begin(lab)
    for state in STATES:
        report(lab, run, state)
    lab.cluster.add(EPOCH_1)
    assert "not the one that was verified" in lab.run(run.operation).error
    lab.step()
    assert lab.fleet.app("one").phase is Phase.FENCED
    aborting = begin(lab, abort=True)
    report(lab, aborting, "aborted")
    lab.step()
    assert lab.fleet.app("one").phase is Phase.STOPPED
