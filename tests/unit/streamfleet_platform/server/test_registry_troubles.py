"""A registry that is locked, was restored from a backup, or is begun anew beside workers that run: they are left in peace, nothing
is done twice, and whoever leads can act.
"""

import shutil
import sqlite3
from contextlib import closing

import pytest
from starlette.testclient import TestClient
from tests.unit.streamfleet_platform.simulated_world import Lab

from streamfleet_platform import views
from streamfleet_platform.api.app import create_app
from streamfleet_platform.api.token_file import TokenFile
from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.registry import database


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    lab.deployed(min=1)
    yield lab
    lab.server.close()


def file_of(lab):
    return lab.settings.data / "registry.db"


def restore(lab, backup):
    """As a person does it: the server is gone, the file is put back."""
    lab.kill()
    for left in lab.settings.data.glob("registry.db*"):
        left.unlink()
    if backup is not None:
        shutil.copyfile(backup, file_of(lab))
    lab.start()


def test_after_a_backup_was_restored_workers_run_on_and_the_server_can_act(lab, tmp_path):
    lab.kill()
    shutil.copyfile(file_of(lab), tmp_path / "backup.db")
    for _ in range(3):  # each one leads with a newer token
        lab.start()
        lab.step()
        lab.kill()
    lab.start()
    lab.run(lab.operate(OperationKind.SCALE, slots=2).id)  # what the backup does not know of
    before, calls = lab.pids(), len(lab.runtime.calls)

    restore(lab, tmp_path / "backup.db")
    for _ in range(3):
        lab.step()
    assert lab.pids() == before and len(lab.runtime.calls) == calls, "nobody was started or stopped"
    assert {worker.slot for worker in lab.fleet.app("one").workers} == {0, 1}
    assert lab.run(lab.operate(OperationKind.SCALE, slots=2).id).state == "succeeded"
    assert lab.pids() == before
    assert lab.run(lab.operate(OperationKind.STOP).id).state == "succeeded" and lab.pids() == {}


def test_code_that_a_worker_runs_is_kept_though_the_registry_has_forgotten_it(lab, tmp_path):
    lab.kill()
    shutil.copyfile(file_of(lab), tmp_path / "backup.db")
    lab.start()
    (lab.source / "code.py").write_text("newer = True\n")
    lab.declare(entry="rolling")
    assert lab.run(lab.operate(OperationKind.UPGRADE).id).state == "succeeded"
    [worker] = lab.runtime.list("one")
    assert worker.code.is_dir()
    restore(lab, tmp_path / "backup.db")
    (lab.source / "code.py").write_text("newest = True\n")
    lab.fleet.plan(views.SourceRequest())
    assert (worker.code / "code.py").read_text() == "newer = True\n", "it would not come up again without it"


def test_a_registry_begun_anew_touches_no_worker_and_takes_no_topic_for_its_own(lab):
    lab.kill()
    lab.start()
    lab.run(lab.operate(OperationKind.SCALE, slots=2).id)  # by a second leader
    before, calls, topics = lab.pids(), len(lab.runtime.calls), set(lab.cluster.there)
    restore(lab, None)
    [operation] = lab.apply().operations
    ended = lab.run(operation.id)
    assert ended.state == "failed" and "topics are there that were not made for this app" in ended.error
    assert lab.pids() == before and len(lab.runtime.calls) == calls and set(lab.cluster.there) == topics
    lab.names = {"other": "two"}
    lab.declare("two", entry="other")
    assert lab.run(lab.apply(apps=("two",)).operations[0].id).state == "succeeded", "the server can act"


def test_a_locked_registry_is_said_so_and_the_same_intent_is_done_once_when_it_is_free(lab, monkeypatch):
    monkeypatch.setattr(database, "ATTEMPTS", 2)
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    lab.kill()
    lab.start()
    tokens = TokenFile(lab.settings.token_file)
    headers = {"Authorization": f"Bearer {tokens.create('test', 'admin', teams='all')}", "Idempotency-Key": "sale"}
    before = lab.pids()
    with (
        TestClient(create_app(lab.fleet, tokens), base_url="http://127.0.0.1", headers=headers) as client,
        closing(sqlite3.connect(file_of(lab), isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        answer = client.post("/v1/apps/one/scale", json={"slots": 2})
        assert answer.status_code == 503 and int(answer.headers["retry-after"]) >= 1, answer.text
        assert "the registry does not answer" in answer.json()["detail"]
        lab.step()
        assert lab.pids() == before and client.get("/v1/apps/one").json()["phase"] == "running", "looking goes on"
        other.execute("ROLLBACK")
        lab.step()
        ids = {client.post("/v1/apps/one/scale", json={"slots": 2}).json()["id"] for _ in range(2)}
        assert len(ids) == 1 and lab.run(ids.pop()).state == "succeeded"
    assert lab.pids().keys() == {0, 1} and lab.pids()[0] == before[0]
