"""Rows F49 and F53 on a disk of their own: full, without inodes, and read-only.

Needs the right to mount, which containers often lack; tests/integration/faults shows the same rows without it.
"""

import os
import shutil
import subprocess

import pytest
from tests.integration.faults.conftest import COLOURS, KEYS, CountingApp
from tests.integration.faults.limited_process import LimitedProcess, assert_said, open_directory
from tests.integration.faults.limited_worker import NOBODY
from tests.integration.faults.test_full_disk import FULL, ROOM, fill
from tests.integration.streamfleet.kafka_streams.conftest import Bench

__all__ = ["open_directory"]  # a fixture

ALL = len(KEYS) * len(COLOURS)


class Disk:
    """A file system in memory, mounted on the state directory."""

    def __init__(self, directory):
        self.directory = directory

    def mount(self, options):
        owner = f"mode=700,uid={NOBODY},gid={NOBODY}"
        return _ran("mount", "-t", "tmpfs", "-o", f"{owner},{options}", "tmpfs", str(self.directory))

    def change(self, options):
        answer = _ran("mount", "-o", f"remount,{options}", str(self.directory))
        assert answer.returncode == 0, answer.stderr

    def unmount(self):
        _ran("umount", "--lazy", str(self.directory))


def _ran(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


@pytest.fixture
def app(broker, tmp_path):
    return CountingApp(Bench(broker, tmp_path))


@pytest.fixture
def disk(open_directory):
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a disk for this test")
    disk = Disk(open_directory)
    answer = disk.mount("size=8m")
    if answer.returncode != 0:
        pytest.skip(f"mounting is refused here: {answer.stderr.strip()}")
    yield disk
    disk.unmount()


def test_F49_a_disk_that_is_full_is_waited_out(app, disk):
    process = LimitedProcess(app, disk.directory)
    fill(app, process)
    disk.change("size=256m")
    app.write(ALL)
    app.wait_until_counted(timeout_seconds=90)
    assert "No space left on device" in process.line(FULL) and process.said(ROOM)
    outcome = process.stop()
    assert outcome["stopped"] and not outcome["message"], outcome
    app.assert_state_is_its_changelog("keys")


def test_F53_a_disk_without_inodes_is_waited_out_like_a_full_one(app, disk):
    disk.change("size=256m,nr_inodes=24")
    process = LimitedProcess(app, disk.directory)
    fill(app, process)
    disk.change("nr_inodes=10000")
    app.write(ALL)
    app.wait_until_counted(timeout_seconds=90)
    outcome = process.stop()
    assert outcome["stopped"] and not outcome["message"], outcome


def test_F53_a_read_only_disk_ends_the_app_with_its_path_and_nothing_is_lost(app, disk):
    disk.change("size=256m")
    app.write(ALL)
    process = LimitedProcess(app, disk.directory)
    app.wait_until_counted(timeout_seconds=60)
    assert process.stop()["stopped"]
    disk.change("ro")
    outcome = LimitedProcess(app, disk.directory).outcome()
    assert_said(outcome, "StateStoreError", app.bench.app, "Read-only file system", "state.dir")
    disk.change("rw")
    app.write(ALL)
    process = LimitedProcess(app, disk.directory)
    app.wait_until_counted(timeout_seconds=60)
    assert process.stop()["stopped"]
