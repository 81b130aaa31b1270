"""A process of the demonstration that outlives the command which starts it, and is found and ended by the next one.

It is known by its number and its start time together, so that a number that was given to somebody else is never signalled.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Sequence
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

    def start(self, command: Sequence[str], *, cwd: Path, environment: dict[str, str]) -> None:
        with self.log.open("ab") as log:
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
        """Whether there was one."""
        who = self._who()
        if not send_signal(who, signal.SIGTERM):
            return False
        deadline = time.monotonic() + STOP_SECONDS
        while is_same(who):
            if time.monotonic() > deadline:
                send_signal(who, signal.SIGKILL, group=True)
            time.sleep(0.1)
        self._record.unlink(missing_ok=True)
        return True

    @property
    def _record(self) -> Path:
        return self.directory / f"{self.name}.json"

    def _who(self) -> dict[str, object] | None:
        return read_json(self._record)
