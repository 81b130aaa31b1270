"""A process of the demonstration that outlives the command which starts it, and is found and ended by the next one.

It is known by its number and its start time together, so that a number that was given to somebody else is never signalled.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from streamfleet_platform.runtime.keeper import identity, is_same, read_json, send_signal, write_json

STOP_SECONDS = 45.0


@dataclass(frozen=True)
class Background:
    """`NAME.json` says which process it is, `NAME.log` has what it wrote."""

    directory: Path
    name: str

    @property
    def log(self) -> Path:
        return self.directory / f"{self.name}.log"

    @property
    def is_running(self) -> bool:
        return is_same(self._who())

    @property
    def pid(self) -> int | None:
        """Its own, which is that of its group too."""
        who = self._who()
        return None if who is None else int(str(who["pid"]))

    def start(self, command: Sequence[str], *, cwd: Path, environment: dict[str, str]) -> None:
        with self.log.open("ab") as log, _interruptible():
            process = subprocess.Popen(  # noqa: S603 our own command
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=cwd,
                env=environment,
            )
        write_json(self._record, identity(process.pid))
        process.returncode = 0  # it is meant to outlive us: no exit code will be asked for

    def stop(self) -> bool:
        """Whether there was one. Its children end with it: they are of its group."""
        who, group = self._who(), self.pid
        if who is None or group is None or not send_signal(who, signal.SIGTERM):
            return False
        deadline = time.monotonic() + STOP_SECONDS
        while is_same(who) and time.monotonic() < deadline:
            time.sleep(0.1)
        # what has members keeps its number, so the group cannot be somebody else's
        while members(group):
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
            time.sleep(0.1)
        self._record.unlink(missing_ok=True)
        return True

    @property
    def _record(self) -> Path:
        return self.directory / f"{self.name}.json"

    def _who(self) -> dict[str, object] | None:
        return read_json(self._record)


@contextmanager
def _interruptible() -> Iterator[None]:
    """A shell starts its background jobs deaf to SIGINT, and that is inherited. Dagster treats SIGTERM as it finds SIGINT, and
    could only be killed.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def members(group: int) -> list[int]:
    """Processes of a group that have not ended."""
    told = subprocess.run(["ps", "-A", "-o", "pid=,pgid=,stat="], capture_output=True, text=True, check=True).stdout  # noqa: S607
    rows = [line.split(None, 2) for line in told.splitlines()]
    return [int(pid) for pid, of, state in rows if int(of) == group and not state.startswith("Z")]
