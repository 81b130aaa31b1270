"""One runner as a process: started with the command line that every runner has, stopped by SIGTERM. Its output goes to a log."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.peers import process_tree
from tests.bench.peers.runners_built import ROOT

STOP_SECONDS = 30


class FailedRunError(Exception):
    """It ended, or did not finish in time."""


@dataclass(frozen=True)
class Place:
    """What a run works on: topics, its group, its directory."""

    app_id: str
    input: str
    output: str
    partner: str
    directory: Path


class RunnerProcess:
    """CPU and memory are those of the whole process tree."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log
        self._cpu_seconds = 0.0

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    @property
    def cpu_seconds(self) -> float:
        """The last that was seen: a process that has ended has none."""
        self._cpu_seconds = max(self._cpu_seconds, process_tree.cpu_seconds(self._process.pid))
        return self._cpu_seconds

    @property
    def peak_megabytes(self) -> float:
        return process_tree.peak_megabytes(self._process.pid)

    def require_life(self) -> None:
        if not self.lives:
            raise FailedRunError(f"it ended with {self._process.returncode}; see {self._log}")

    def stop(self) -> None:
        if self.lives:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()


@contextmanager
def started(command: Sequence[str], code: str, bootstrap: str, place: Place, log: Path) -> Iterator[RunnerProcess]:
    named = {
        "bootstrap": bootstrap,
        "app-id": place.app_id,
        "input": place.input,
        "output": place.output,
        "partner": place.partner,
        "state-dir": str(place.directory),
    }
    arguments = [part for name, value in named.items() for part in (f"--{name}", value)]
    with log.open("ab") as written:
        opened = subprocess.Popen([*command, code, *arguments], stdout=written, stderr=written, cwd=ROOT)
        process = RunnerProcess(opened, log)
        try:
            yield process
        finally:
            process.stop()
