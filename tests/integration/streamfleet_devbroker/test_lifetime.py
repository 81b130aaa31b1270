"""No broker outlives the run that started it, whatever ends the run."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from streamfleet_devbroker import Cluster, ClusterSpec

OWNER = """
import os, sys, time
from streamfleet_devbroker.pytest_plugin import temporary_cluster
with temporary_cluster(nodes=1) as cluster:
    if "fork" in sys.argv and os.fork() == 0:
        time.sleep(600)  # a child that inherited the guard's pipe
    print(cluster.spec.directory, flush=True)
    time.sleep(600)
"""


def process_field(pid: int, field: str) -> str:
    """What `ps` says of a process; nothing when it is gone."""
    return subprocess.run(["ps", "-o", f"{field}=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()


def is_running(pid: int) -> bool:
    state = process_field(pid, "stat")
    return bool(state) and not state.startswith("Z")


def jvm_pid(directory: Path) -> int:
    return int((directory / "node-1" / "jvm.pid").read_text())


def wait_until(condition: Callable[[], bool], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


@pytest.fixture
def own_cluster(tmp_path):
    with Cluster.start(ClusterSpec(tmp_path)) as cluster:
        yield cluster


def test_stop_leaves_no_process_and_keeps_the_data(own_cluster, tmp_path):
    pid = jvm_pid(tmp_path)
    assert is_running(pid)
    own_cluster.stop()
    assert not is_running(pid)
    assert own_cluster.alive_nodes() == ()
    assert (tmp_path / "node-1" / "data" / "meta.properties").exists()
    own_cluster.stop()  # repeating it is harmless


@pytest.mark.parametrize("arguments", [[], ["fork"]], ids=["alone", "with a forked child that holds the pipe"])
def test_kill_9_of_the_owner_ends_the_jvm_and_removes_its_data(arguments):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, *arguments], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert owner.stdout is not None
    try:
        directory = Path(owner.stdout.readline().strip())
        pid = jvm_pid(directory)
        assert is_running(pid)
        owner.kill()
        owner.wait(10)
        wait_until(lambda: not is_running(pid))
        wait_until(lambda: not directory.exists())
    finally:
        os.killpg(owner.pid, signal.SIGKILL) if arguments else None  # the forked child
        owner.stdout.close()


if sys.platform == "linux":  # only Linux tells a process of its parent's death

    def test_kill_9_of_the_guard_ends_the_jvm(own_cluster, tmp_path):
        pid = jvm_pid(tmp_path)
        os.kill(int(process_field(pid, "ppid")), signal.SIGKILL)
        wait_until(lambda: not is_running(pid))


def test_a_start_that_is_interrupted_leaves_no_process(tmp_path):
    def interrupt(message: str) -> None:
        if message.startswith("starting"):
            signal.setitimer(signal.ITIMER_REAL, 1.0)

    def raise_interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, raise_interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            Cluster.start(ClusterSpec(tmp_path), interrupt)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not is_running(jvm_pid(tmp_path))
