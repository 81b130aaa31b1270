"""The worker processes of a run: started, killed, stopped past their session, sent away, and looked after.

Used by the nemesis and by scenarios. Each worker has a state directory of its own, which survives its process, and one log file.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
LEAVE_SECONDS = 60.0


@dataclass
class Worker:
    """One slot: the process in it changes, name and state directory stay."""

    name: str
    directory: Path
    command: Sequence[str]
    process: subprocess.Popen[bytes] | None = None
    is_stopped: bool = False
    """By SIGSTOP, until it is continued."""
    must_live: bool = True
    """False: its end is part of the plan."""
    started_at: float = 0.0

    @property
    def state_directory(self) -> Path:
        return self.directory / "state"

    @property
    def log_path(self) -> Path:
        return self.directory / "worker.log"

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self, *extra: str) -> None:
        assert not self.is_running, f"{self.name} is running already"
        self.directory.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.command, "--state-dir", str(self.state_directory), *extra],
                cwd=REPOSITORY,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"},
            )
        self.is_stopped = False
        self.must_live = True
        self.started_at = time.time()

    def wait_until_listening(self, seconds: float = LEAVE_SECONDS) -> None:
        """A process that has just been started does not know yet what to do when it is asked to end."""
        deadline = time.monotonic() + seconds
        while self.is_running and time.monotonic() < deadline:
            if any(e.get("event") == "worker started" and e["timestamp"] >= self.started_at for e in self.events()):
                return
            time.sleep(0.1)

    def kill(self) -> None:
        """kill -9."""
        self.must_live = False
        self._signal(signal.SIGKILL)
        self._wait(LEAVE_SECONDS)
        self.is_stopped = False

    def stop(self) -> None:
        """SIGSTOP: alive, and silent."""
        self._signal(signal.SIGSTOP)
        self.is_stopped = True

    def resume(self) -> None:
        self._signal(signal.SIGCONT)
        self.is_stopped = False

    def probe(self) -> None:
        """Have it ask its group for a rebalance; nothing, if it is not there to ask."""
        if self.is_running and not self.is_stopped:
            self.wait_until_listening()
            self._signal(signal.SIGUSR1)

    def leave(self) -> int | None:
        """SIGTERM and wait; the status it ended with, None if it did not end in time (it is killed then)."""
        self.must_live = False
        self.wait_until_listening()
        self._signal(signal.SIGTERM)
        status = self._wait(LEAVE_SECONDS)
        if status is None:
            self.kill()
        return status

    def wait_for_end(self, seconds: float) -> int | None:
        return self._wait(seconds)

    def events(self) -> Iterator[dict[str, Any]]:
        """The lines of its log that the engine wrote."""
        if not self.log_path.exists():
            return
        for line in self.log_path.read_text("utf-8", "replace").splitlines():
            if line.startswith("{"):
                try:
                    yield json.loads(line)
                except ValueError:
                    continue  # the last line of a killed process may be cut off

    def tail(self, lines: int = 15) -> str:
        if not self.log_path.exists():
            return ""
        return "\n".join(line[:1500] for line in self.log_path.read_text("utf-8", "replace").splitlines()[-lines:])

    def _signal(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def _wait(self, seconds: float) -> int | None:
        if self.process is None:
            return None
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


@dataclass
class Fleet:
    directory: Path
    bootstrap: str
    application_id: str
    guarantee: str
    options: Sequence[str] = ()
    workers: list[Worker] = field(default_factory=list)
    deaths: list[str] = field(default_factory=list)
    """Workers that ended although nobody had asked them to."""

    def add(self) -> Worker:
        name = f"worker-{len(self.workers) + 1}"
        command = [sys.executable, "-m", "tests.ledger.worker", "--bootstrap", self.bootstrap]
        command += ["--app", self.application_id, "--guarantee", self.guarantee, *self.options]
        worker = Worker(name, self.directory / name, command)
        self.workers.append(worker)
        return worker

    def note_deaths(self) -> list[Worker]:
        """Workers that ended by themselves since the last call; each is told of once."""
        dead = [worker for worker in self.workers if worker.must_live and worker.process and not worker.is_running]
        for worker in dead:
            worker.must_live = False
            assert worker.process is not None
            self.deaths.append(f"{worker.name} ended with status {worker.process.returncode}:\n{worker.tail()}")
        return dead

    def close(self) -> list[str]:
        """Let all leave cleanly, at the same time; the names of those that did not."""
        self.note_deaths()
        leaving = [worker for worker in self.workers if worker.is_running]
        for worker in leaving:
            worker.must_live = False
            worker._signal(signal.SIGCONT)
            worker.wait_until_listening()
            worker._signal(signal.SIGTERM)
        return [worker.name for worker in leaving if worker._wait(LEAVE_SECONDS) != 0]

    def kill_all(self) -> None:
        for worker in self.workers:
            worker.kill()

    def wait_for_event(self, event: str, *, count: int, since: float, seconds: float) -> None:
        """Until that many lines of that name have been written by all workers together since then."""
        deadline = time.monotonic() + seconds
        while True:
            seen = sum(e.get("event") == event and e["timestamp"] >= since for w in self.workers for e in w.events())
            if seen >= count:
                return
            self.note_deaths()
            if self.deaths:
                raise RuntimeError(self.deaths[0])
            if time.monotonic() > deadline:
                raise TimeoutError(f"only {seen} of {count} times {event!r} in {seconds} s")
            time.sleep(0.1)
