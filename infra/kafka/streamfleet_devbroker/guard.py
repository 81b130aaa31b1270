"""A tiny process between a test run and a JVM: the JVM never outlives the run, not even one that was killed with
-9.

Started by node.py as a plain script (it imports nothing of ours): `guard.py DIRECTORY COMMAND...`. Its standard
input is a pipe that only the owner holds open; when that closes, or the parent changes, the JVM is killed and
DIRECTORY removed. The byte `k` in the pipe kills the JVM and keeps its data, as a power cut would. SIGTERM is
passed on, so a normal stop is Kafka's own clean shutdown. The JVM's end ends the guard, with the same exit code.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

LOOK_SECONDS = 0.2
PR_SET_PDEATHSIG = 1
KILL = "k"
CLOSED = "closed"


def main(arguments: list[str]) -> int:
    """Run the command until it ends, or until the owner is gone.

    The parent is looked at besides the pipe because a process that the owner forked may hold the pipe's other end.
    """
    owner = os.getppid()
    directory = Path(arguments[0])
    jvm = subprocess.Popen(arguments[1:], stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent)  # noqa: PLW1509
    (directory / "jvm.pid").write_text(f"{jvm.pid}\n", "utf-8")
    signal.signal(signal.SIGTERM, lambda *_: jvm.terminate())
    while jvm.poll() is None:
        word = _word_of_owner()
        if word or os.getppid() != owner:
            jvm.kill()
            jvm.wait()
            if word != KILL:
                _remove(directory)
    return jvm.returncode if jvm.returncode >= 0 else 128 - jvm.returncode


def _word_of_owner() -> str:
    """What the pipe says: nothing yet, `k`, or that its other end is closed."""
    readable, _, _ = select.select([0], [], [], LOOK_SECONDS)
    return (os.read(0, 1).decode() or CLOSED) if readable else ""


def _remove(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    with contextlib.suppress(OSError):  # the cluster's directory goes with its last node
        directory.parent.rmdir()


def _die_with_parent() -> None:
    # Where the kernel offers it (Linux), the JVM dies even if this guard is the one that is killed.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
