"""Rows F49 and F53 on a disk of their own: full, without inodes, and read-only.

The disk is mounted in a namespace of the process that needs it, for which no rights are needed, or, where namespaces are refused,
by root. Where both are refused these tests fail; `make e2e` leaves them out there, and says so.
"""

import os
import subprocess
from pathlib import Path

import pytest
from tests.integration.faults.conftest import COLOURS, KEYS, CountingApp, wait_for
from tests.integration.faults.limited_process import ROOT, LimitedProcess, assert_said, open_directory
from tests.integration.faults.limited_worker import NOBODY
from tests.integration.faults.test_full_disk import FULL, ROOM, committed, fill
from tests.integration.streamfleet.kafka_streams.conftest import Bench

__all__ = ["open_directory"]  # a fixture

ALL = len(KEYS) * len(COLOURS)


class Disk:
    """A file system in memory, mounted on the state directory: for everybody, which only root can do."""

    def __init__(self, directory, options):
        self.directory = self.seen = directory
        _must("mount", "-t", "tmpfs", "-o", f"mode=700,uid={NOBODY},gid={NOBODY},{options}", "tmpfs", str(directory))

    def process(self, app, **limits):
        return LimitedProcess(app, self.directory, **limits)

    def change(self, options):
        self.must("mount", "-o", f"remount,{options}", str(self.directory))

    def fill(self):
        _ran(*self._around(), "dd", "if=/dev/zero", f"of={self.directory}/filler", "bs=4k")
        assert _ran(*self._around(), "touch", f"{self.directory}/more").returncode == 0, (
            "it is for data that there is no room"
        )

    def must(self, *command):
        _must(*self._around(), *command)

    def unmount(self):
        _ran("umount", "--lazy", str(self.directory))

    def _around(self):
        return ()


class OwnDisk(Disk):
    """... for the processes of a namespace, in which any user is root. It lasts as long as its first process."""

    def __init__(self, directory, options):
        script = 'mount -t tmpfs -o "$1" tmpfs "$2" && echo mounted && exec cat'
        self._first = subprocess.Popen(
            ["unshare", "-Urm", "sh", "-c", script, "sh", f"mode=700,{options}", str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if self._first.stdout.readline() != "mounted\n":
            raise OSError(f"no disk in a namespace: {self._first.communicate()[1].strip()}")
        self.directory = directory
        self.seen = Path(f"/proc/{self._first.pid}/root{directory}")

    def process(self, app, **limits):
        return LimitedProcess(app, self.directory, around=self._around(), keeps_rights=True, **limits)

    def unmount(self):
        self._first.communicate()

    def _around(self):
        target = ("--target", str(self._first.pid))
        return ("nsenter", "--user", "--mount", "--preserve-credentials", f"--wd={ROOT}", *target)


def _ran(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def _must(*command):
    answer = _ran(*command)
    if answer.returncode:
        raise OSError(f"{' '.join(command)}: {answer.stderr.strip()}")


@pytest.fixture
def app(broker, tmp_path):
    return CountingApp(Bench(broker, tmp_path))


@pytest.fixture
def disk(open_directory):
    disk = _any_disk(open_directory)
    yield disk
    disk.unmount()


def _any_disk(directory):
    refusals = []
    for kind in (OwnDisk, Disk) if os.geteuid() == 0 else (OwnDisk,):
        try:
            return kind(directory, "size=8m")
        except OSError as error:
            refusals.append(str(error))
    pytest.fail(f"no disk can be mounted here: {'; '.join(refusals)}")


def test_F49_a_disk_that_is_full_is_waited_out(app, disk):
    process = disk.process(app)
    fill(app, process)
    disk.change("size=256m")
    app.write(ALL)
    app.wait_until_counted(timeout_seconds=90)
    assert "No space left on device" in process.line(FULL) and process.said(ROOM)
    outcome = process.stop()
    assert outcome["stopped"] and not outcome["message"], outcome
    app.bench.directory = disk.seen.parent
    app.assert_state_is_its_changelog("keys")


def test_F49_databases_that_cannot_be_opened_on_a_full_disk_are_opened_when_it_has_room(app, disk):
    app.write(ALL)
    process = disk.process(app)
    app.wait_until_counted(timeout_seconds=60)
    assert process.stop()["stopped"]
    disk.fill()
    before = committed(app)
    process = disk.process(app)
    wait_for(lambda: process.said(FULL) or process.wait(0))
    app.write(ALL)
    assert not process.wait(2), process.outcome()
    assert "No space left on device" in process.line(FULL) and not process.said("task running")
    assert committed(app) == before
    disk.change("size=256m")
    app.wait_until_counted(timeout_seconds=90)
    assert process.said(ROOM) == 1
    outcome = process.stop()
    assert outcome["stopped"] and not outcome["message"], outcome


def test_F53_a_disk_without_inodes_is_waited_out_like_a_full_one(app, disk):
    disk.change("size=256m,nr_inodes=24")
    process = disk.process(app)
    fill(app, process)
    disk.change("nr_inodes=10000")
    app.write(ALL)
    app.wait_until_counted(timeout_seconds=90)
    outcome = process.stop()
    assert outcome["stopped"] and not outcome["message"], outcome


def test_F53_a_read_only_disk_ends_the_app_with_its_path_and_nothing_is_lost(app, disk):
    disk.change("size=256m")
    app.write(ALL)
    process = disk.process(app)
    app.wait_until_counted(timeout_seconds=60)
    assert process.stop()["stopped"]
    disk.change("ro")
    outcome = disk.process(app).outcome()
    assert_said(outcome, "StateStoreError", app.bench.app, "Read-only file system", "state.dir")
    disk.change("rw")
    app.write(ALL)
    process = disk.process(app)
    app.wait_until_counted(timeout_seconds=60)
    assert process.stop()["stopped"]
