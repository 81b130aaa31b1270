"""Local state that is in use, damaged, full, foreign, of a newer version, out of reach. Rows F18, F49 to F54, on the ledger app.

Either the state heals by itself, and then nothing is lost, repeated or torn; or it is refused with a typed error, left as it is,
and the app goes on where it was when it is put right.
"""

import json
import resource
import shutil
import time
import urllib.error
import urllib.request
from pathlib import Path

import msgspec
import pytest
from tests.e2e.faults.reduced_ledger import (
    FAILED,
    TASKS,
    ends_with,
    events_of,
    failure_of,
    kind_of_failure,
    reduced_ledger,
    wait_for,
)
from tests.integration.faults.damage import delete, flip_everywhere, identity_of, swap, truncate, without
from tests.ledger import topics
from tests.ledger.app import INPUT
from tests.ledger.bench import APPLICATION

from streamfleet.ids import TopicPartition
from streamfleet.state.engine_rows import FORMAT_VERSION

CORRUPTED = "task corrupted, its state is wiped and restored"
FULL, ROOM = "disk is full, tasks wait for room", "disk has room again, tasks are opened"
LITTLE_MEMORY = ("--setting", "rocksdb.memory.max.bytes=4194304")
LITTLE_FILE = 20_000
STALL_SECONDS = 2.0


def test_F18_a_second_worker_on_one_state_directory_is_refused_and_the_first_goes_on(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        began = time.time()
        first = ledger.started()
        ledger.wait_until_running(began)
        ledger.write_some(0.5)
        twin = ledger.doomed("--state-dir", str(first.state_directory))
        ends_with(twin, FAILED)
        assert kind_of_failure(twin) == "StateStoreError"
        assert f"is in use by another process (pid {first.process.pid})" in failure_of(twin)
        ledger.write_rest()
        ledger.finish()


@pytest.mark.parametrize("damage", [flip_everywhere, truncate, delete], ids=["flip", "truncate", "delete"])
def test_F50_damaged_tables_are_wiped_and_restored(damage, tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        worker = ledger.half_done()
        _damage_all(ledger, worker, damage)
        worker.start()
        ledger.write_rest()
        ledger.finish()
        assert len(events_of(worker, CORRUPTED)) == TASKS


@pytest.mark.parametrize(
    "damage",
    [without("MANIFEST-*"), without("CURRENT"), without("*"), shutil.rmtree],
    ids=["manifest", "current", "all-files", "directory"],
)
def test_F51_the_offset_goes_with_the_rows_and_the_restore_closes_the_gap(damage, tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        worker = ledger.half_done()
        restart = time.time()
        _damage_all(ledger, worker, damage)
        worker.start()
        ledger.write_rest()
        ledger.finish()
        restored = [event["records"] for event in events_of(worker, "task restored", restart)]
        assert len(restored) == TASKS and all(restored)


def test_F50_a_query_meets_the_damage_is_503_and_the_task_is_wiped_although_nothing_is_processed(tmp_path):
    with reduced_ledger(tmp_path, keys=40) as ledger:
        worker = ledger.half_done()
        worker.start("--http", "127.0.0.1:0")
        wait_for(lambda: _asked(worker)[0] == 200, "the store can be asked")
        whole = _asked(worker)[1]["partitions"]
        worker.leave()
        worker.start("--http", "127.0.0.1:0", "--setting", "statestore.object.cache.max.bytes=0")
        since = worker.started_at
        wait_for(lambda: len(events_of(worker, "task running", since)) >= TASKS, "all tasks run")
        for directory in ledger.task_directories(worker):
            for path in directory.glob("*.sst"):
                path.write_bytes(bytes(path.stat().st_size))
        status, answer = _asked(worker)
        assert (status, answer["code"]) == (503, "store_damaged"), answer
        wait_for(lambda: _asked(worker)[0] == 200, "the store can be asked again")
        assert _asked(worker)[1]["partitions"].keys() == whole.keys()
        assert _rows(_asked(worker)[1]["partitions"]) == _rows(whole)
        assert len(events_of(worker, CORRUPTED, since)) == TASKS, "the others are opened anew, and meet theirs then"
        ledger.write_rest()
        ledger.finish()


def _other_task(ledger, worker):
    one, other, *_ = ledger.task_directories(worker)
    swap(one, other)


def _identity(**change):
    def done(ledger, worker):
        for directory in ledger.task_directories(worker):
            identity_of(directory, lambda found: msgspec.structs.replace(found, **change))

    return done


@pytest.mark.parametrize(
    ("change", "undo", "said"),
    [
        pytest.param(_other_task, _other_task, "not to task", id="F52-of-another-task"),
        pytest.param(
            _identity(application_id="somebody-else"),
            _identity(application_id=APPLICATION),
            "of somebody-else",
            id="F52-of-another-app",
        ),
        pytest.param(
            _identity(format_version=FORMAT_VERSION + 1),
            _identity(format_version=FORMAT_VERSION),
            f"(format {FORMAT_VERSION + 1})",
            id="F54-of-a-newer-version",
        ),
    ],
)
def test_F52_F54_state_that_is_not_this_tasks_is_refused_and_left_as_it_is(change, undo, said, tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        worker = ledger.half_done()
        change(ledger, worker)
        before = _tables(ledger, worker)
        worker.start()
        worker.must_live = False
        ends_with(worker, FAILED)
        assert kind_of_failure(worker) == "ForeignStateError" and said in failure_of(worker), failure_of(worker)
        assert before and before <= _tables(ledger, worker)
        undo(ledger, worker)
        worker.start()
        ledger.write_rest()
        ledger.finish()
        assert not events_of(worker, CORRUPTED)


def test_F53_too_few_open_files_end_the_worker_with_the_limit_to_raise(tmp_path):
    with reduced_ledger(tmp_path) as ledger:
        began = time.time()
        first = ledger.started()
        second = ledger.doomed()
        wait_for(lambda: len(events_of(second, "task running", began)) == TASKS // 2, "each has half of the tasks")
        ledger.write_some(0.5)
        open_files = len(list(Path(f"/proc/{second.process.pid}/fd").iterdir()))
        _limit(second, resource.RLIMIT_NOFILE, open_files + 3)
        first.leave()  # and the second has no files for its tasks
        ends_with(second, FAILED)
        assert "oo many open files" in failure_of(second) and "ulimit -n" in failure_of(second), failure_of(second)
        second.start()
        ledger.write_rest()
        ledger.finish()


def test_F49_tasks_on_a_full_disk_wait_commit_nothing_and_go_on_when_it_has_room(tmp_path):
    with reduced_ledger(tmp_path, keys=100, records_per_key=150) as ledger:
        began = time.time()
        worker = ledger.started("--piped-log", *LITTLE_MEMORY)
        ledger.wait_until_running(began)
        _limit(worker, resource.RLIMIT_FSIZE, LITTLE_FILE)
        ledger.write_some(0.7, seconds=5)
        wait_for(lambda: events_of(worker, FULL), "the disk is full")
        before = _committed(ledger)
        ledger.write_some(0.8)
        time.sleep(STALL_SECONDS)  # in which it would commit, were it not waiting
        assert _committed(ledger) == before, "offsets were committed for rows that nobody wrote"
        _limit(worker, resource.RLIMIT_FSIZE, resource.RLIM_INFINITY)
        ledger.write_rest()
        ledger.finish()
        assert len(events_of(worker, FULL)) == len(events_of(worker, ROOM)) >= 1


def _damage_all(ledger, worker, damage):
    directories = ledger.task_directories(worker)
    assert len(directories) == TASKS
    for directory in directories:
        damage(directory)


def _tables(ledger, worker):
    return {path for directory in ledger.task_directories(worker) for path in directory.glob("*.sst")}


def _limit(worker, limit, value):
    """The soft limit alone, which can be lifted again."""
    _, hard = resource.prlimit(worker.process.pid, limit)
    resource.prlimit(worker.process.pid, limit, (value, hard))


def _committed(ledger):
    places = [TopicPartition(INPUT, number) for number in range(ledger.bench.spec.partitions)]
    return topics.committed_offsets(ledger.bench.bootstrap, APPLICATION, places)


def _asked(worker):
    """The status and the answer to a question for all rows of a store."""
    door = events_of(worker, "http door open", worker.started_at)
    if not door:
        return 0, {}
    try:
        with urllib.request.urlopen(f"{door[-1]['url']}/query/sum/range?limit=1000", timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.code, json.load(answer)


def _rows(partitions):
    return {number: part["rows"] for number, part in partitions.items()}
