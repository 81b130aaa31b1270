"""One running node: its process started in one of two ways, asked whether it lives, stopped.

Called by cluster.py. `start_guarded` is for tests: the node dies with its owner. `start_detached` is for people:
the node outlives the command that started it, and holds a file lock for as long as it lives, so that liveness is a
fact of the kernel and not a process id that may have been given to somebody else.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streamfleet_devbroker.guard import KILL
from streamfleet_devbroker.storage import NodeSpec

STOP_SECONDS = 20.0


@dataclass(frozen=True)
class NodeProcess:
    """The process of a node that this Python started."""

    spec: NodeSpec
    process: subprocess.Popen[bytes] = field(repr=False)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def ask_to_stop(self) -> None:
        """Begin Kafka's clean shutdown."""
        if self.alive:
            self.process.terminate()

    def kill(self) -> None:
        """End it at once, as a power cut would; its data stays."""
        if not self.alive:
            return
        if self.process.stdin is None:
            self.process.kill()
        else:
            self.process.stdin.write(KILL.encode())
            self.process.stdin.flush()

    def wait(self, seconds: float) -> bool:
        """Whether it ended within `seconds`."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        if self.process.stdin is not None:
            self.process.stdin.close()
        return True

    def detach(self) -> None:
        """Leave the process to itself: no exit code will be asked for."""
        self.process.returncode = 0


def start_guarded(spec: NodeSpec, command: Sequence[str]) -> NodeProcess:
    """The node as a child that cannot outlive this process; its directory goes with it."""
    guard = [sys.executable, "-I", str(Path(__file__).with_name("guard.py")), str(spec.directory)]
    with spec.log_path.open("wb") as log:
        process = subprocess.Popen(
            [*guard, *command], stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    return NodeProcess(spec, process)


def start_detached(spec: NodeSpec, command: Sequence[str]) -> NodeProcess:
    """The node in a session of its own, holding its lock file open and locked."""
    with lock_path(spec.directory).open("w") as lock, spec.log_path.open("wb") as log:
        fcntl.flock(lock, fcntl.LOCK_EX)  # waits for nobody but a `detached_pid` that is just looking
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=[lock.fileno()],
        )
        lock.write(f"{process.pid}\n")
    return NodeProcess(spec, process)


def lock_path(directory: Path) -> Path:
    """The file that a detached node keeps locked; its text is the process id."""
    return directory / "node.lock"


def detached_pid(directory: Path) -> int | None:
    """The process id of the detached node that lives in `directory`, or None."""
    try:
        with lock_path(directory).open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(lock.read() or 0) or None
    except FileNotFoundError:
        pass
    return None


def stop_detached(directories: Sequence[Path], *, seconds: float = STOP_SECONDS) -> bool:
    """End the detached nodes together; whether all of them shut down by themselves in time."""
    _signal_all(directories, signal.SIGTERM)
    if _all_gone(directories, seconds):
        return True
    _signal_all(directories, signal.SIGKILL)
    _all_gone(directories, STOP_SECONDS)
    return False


def _signal_all(directories: Sequence[Path], number: signal.Signals) -> None:
    for directory in directories:
        pid = detached_pid(directory)
        if pid is not None:
            os.kill(pid, number)


def _all_gone(directories: Sequence[Path], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while any(detached_pid(directory) is not None for directory in directories):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
