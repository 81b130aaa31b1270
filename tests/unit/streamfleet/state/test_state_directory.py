"""The state directory of an app: one process at a time, named by content, cleaned of what is no longer needed."""

import errno
import os
import resource
import shutil
import threading
from pathlib import Path

import pytest

from streamfleet.errors import StateStoreError, TaskLockedError
from streamfleet.state.process_id import load_process_id
from streamfleet.state.state_directory import StateDirectory


@pytest.fixture
def directory(tmp_path):
    owned = StateDirectory(tmp_path, "app")
    owned.lock()
    yield owned
    owned.unlock()


def make_task(directory, content_id, partition, age_ms, now_ms):
    path = directory.task_directory(content_id, partition)
    path.mkdir()
    written_at = (now_ms - age_ms) / 1000
    os.utime(path, (written_at, written_at))
    return path


def test_a_locked_directory_is_refused_with_the_owner(directory, tmp_path):
    with pytest.raises(StateStoreError, match=rf"in use by another process \(pid {os.getpid()}\); give every worker"):
        StateDirectory(tmp_path, "app").lock()


def test_another_app_has_its_own_lock(directory, tmp_path):
    other = StateDirectory(tmp_path, "other")
    other.lock()
    other.unlock()


def test_the_lock_is_free_after_unlock(directory, tmp_path):
    directory.unlock()
    again = StateDirectory(tmp_path, "app")
    again.lock()
    again.unlock()


def test_a_root_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StateStoreError, match="cannot be used .*set state.dir"):
        StateDirectory(tmp_path / "file", "app").lock()


def test_room_is_tried_not_calculated_and_nothing_is_left_behind(directory):
    before = set(directory.path.iterdir())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    assert directory.has_room(10_000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, hard))
    try:
        assert not directory.has_room(10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert set(directory.path.iterdir()) == before


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_takes_nothing_is_named_at_the_start(tmp_path, monkeypatch, code):
    def refuse(self, *_, **__):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StateStoreError, match=rf"{os.strerror(code)}\); set state.dir"):
        StateDirectory(tmp_path, "app").lock()


def test_global_stores_begin_with_nothing_of_the_last_run(directory):
    rows = directory.emptied_global() / "rows"
    rows.parent.mkdir()
    rows.touch()
    assert directory.emptied_global() == rows.parent
    assert not rows.exists()


@pytest.mark.parametrize(
    "delete",
    [
        lambda directory: directory.wipe_task("aa" * 8, 0),
        lambda directory: directory.set_task_aside("aa" * 8, 0),
        lambda directory: directory.drop_outdated(0, now_ms=10**13),
    ],
    ids=["wiped", "set aside", "outdated"],
)
def test_state_that_cannot_be_deleted_is_an_error_that_names_it(directory, monkeypatch, delete):
    path = make_task(directory, "aa" * 8, 0, age_ms=1000, now_ms=10**12)

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(shutil, "rmtree", refuse)
    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(
        StateStoreError, match=rf"^local state in app/{path.name} cannot be deleted \(Permission denied"
    ):
        delete(directory)
    assert path.exists()


def test_state_that_is_set_aside_can_be_read_until_it_is_dropped(directory):
    path = make_task(directory, "aa", 0, age_ms=0, now_ms=10_000_000)
    (path / "rows").write_text("old")
    directory.set_task_aside("aa", 0)
    former = directory.former_task("aa", 0)
    assert not path.exists() and (former / "rows").read_text() == "old"
    assert directory.tasks() == [] and directory.clean({path}, delay_ms=0, now_ms=10_000_000) == []
    directory.set_task_aside("aa", 0)
    assert directory.former_task("aa", 0) is None, "there was nothing to set aside, and what was before is dropped"
    path.mkdir()
    directory.set_task_aside("aa", 0)
    directory.drop_former_task("aa", 0)
    assert directory.former_task("aa", 0) is None


def test_state_set_aside_of_a_task_that_is_elsewhere_is_cleaned(directory):
    make_task(directory, "aa" * 8, 0, age_ms=2_000, now_ms=10_000_000)
    directory.set_task_aside("aa" * 8, 0)
    assert directory.clean(set(), delay_ms=1_000, now_ms=10_000_000) == [f"{'aa' * 8}_0.former"]


def test_cleaning_spares_what_is_kept_young_or_not_a_task(directory):
    now_ms = 10_000_000
    kept = make_task(directory, "aa" * 8, 0, age_ms=9_000, now_ms=now_ms)
    young = make_task(directory, "aa" * 8, 1, age_ms=500, now_ms=now_ms)
    old = make_task(directory, "bb" * 8, 7, age_ms=1_000, now_ms=now_ms)
    of_java = make_task(directory, "0", 1, age_ms=9_000, now_ms=now_ms)
    (directory.path / "global").mkdir()
    assert directory.clean({kept}, delay_ms=1_000, now_ms=now_ms) == [f"{'bb' * 8}_7"]
    assert kept.exists()
    assert young.exists()
    assert not old.exists()
    assert of_java.exists()
    assert (directory.path / "global").exists()


def test_a_task_that_is_cleaned_cannot_be_opened_until_it_is_gone(directory, monkeypatch):
    """Another StreamThread of the process takes the task over at the very moment in which it is deleted."""
    path = make_task(directory, "aa" * 8, 0, age_ms=2_000, now_ms=10_000_000)
    delete, claims = shutil.rmtree, []

    def delete_while_another_thread_claims(entry, **options):
        thread = threading.Thread(target=lambda: claims.append(claim(directory, "aa" * 8, 0)))
        thread.start()
        thread.join(10)
        delete(entry, **options)

    monkeypatch.setattr(shutil, "rmtree", delete_while_another_thread_claims)
    assert directory.clean(set(), delay_ms=1_000, now_ms=10_000_000) == [path.name]
    assert [type(each) for each in claims] == [TaskLockedError]
    assert directory.claim_task("aa" * 8, 0) == path and not path.exists()


def claim(directory, content_id, partition):
    try:
        return directory.claim_task(content_id, partition)
    except TaskLockedError as error:
        return error


def test_a_task_that_is_open_is_not_cleaned(directory):
    path = make_task(directory, "aa" * 8, 0, age_ms=2_000, now_ms=10_000_000)
    directory.claim_task("aa" * 8, 0)
    assert directory.clean(set(), delay_ms=1_000, now_ms=10_000_000) == [] and path.exists()
    directory.give_up_task(path)
    assert directory.clean(set(), delay_ms=1_000, now_ms=10_000_000) == [path.name]


def test_what_is_too_young_to_be_cleaned_can_be_opened_afterwards(directory):
    path = make_task(directory, "aa" * 8, 0, age_ms=500, now_ms=10_000_000)
    assert directory.clean(set(), delay_ms=1_000, now_ms=10_000_000) == []
    assert directory.claim_task("aa" * 8, 0) == path


def test_state_that_was_not_used_for_too_long_is_dropped(directory):
    now_ms, age_ms = 10_000_000, 1_000
    old = make_task(directory, "aa" * 8, 0, age_ms=age_ms + 1, now_ms=now_ms)
    old_former = make_task(directory, "aa" * 8, 1, age_ms=age_ms + 1, now_ms=now_ms)
    directory.set_task_aside("aa" * 8, 1)
    young = make_task(directory, "bb" * 8, 0, age_ms=age_ms, now_ms=now_ms)
    written = make_task(directory, "bb" * 8, 1, age_ms=0, now_ms=now_ms)
    (written / "000007.sst").write_text("")
    os.utime(written, (0, 0))
    of_java = make_task(directory, "0", 1, age_ms=9_000, now_ms=now_ms)
    assert directory.drop_outdated(age_ms, now_ms) == [old.name, f"{old_former.name}.former"]
    assert not old.exists() and directory.former_task("aa" * 8, 1) is None
    assert young.exists() and written.exists() and of_java.exists()


def test_wiping_leaves_the_lock_and_the_identity(directory):
    identity = load_process_id(directory.path)
    make_task(directory, "aa", 0, age_ms=0, now_ms=0)
    directory.wipe()
    assert not directory.task_directory("aa", 0).exists()
    assert load_process_id(directory.path) == identity


def test_an_unreadable_identity_is_refused(directory):
    (directory.path / "process-id").write_text("not an id")
    with pytest.raises(StateStoreError, match="does not hold a process id; delete the file"):
        load_process_id(directory.path)
