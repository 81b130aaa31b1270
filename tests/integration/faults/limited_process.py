"""Starts the counting app in a process with less than it needs, and hears how it ended."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import ClassVar

import pytest
from tests.integration.faults.limited_worker import NOBODY

ROOT = Path(__file__).parents[3]


class LimitedProcess:
    """A process with less than the app needs. `outcome()` is what it said at its end. `around` is a command that it is run by."""

    started: ClassVar[list["LimitedProcess"]] = []
    """By the present test."""

    def __init__(self, app, state_dir, *, around=(), **limits):
        settings = {
            "app": app.bench.app,
            "bootstrap": app.bench.bootstrap,
            "source": app.source,
            "outputs": app.outputs,
            "state_dir": str(state_dir),
            **limits,
        }
        self._log = app.bench.directory / "limited.log"
        self._log.touch()
        self._process = subprocess.Popen(
            [*around, sys.executable, "-m", "tests.integration.faults.limited_worker", json.dumps(settings)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._keeper = threading.Thread(target=self._keep_log, daemon=True)
        self._keeper.start()
        self.started.append(self)

    def _keep_log(self):
        """Through a pipe: what limits the size of its files must not limit what it says."""
        with self._log.open("w") as log:
            for line in self._process.stderr:
                log.write(line)
                log.flush()

    def wait(self, seconds):
        """Whether it has ended by then."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end_code(self, timeout_seconds):
        """How it ended, by itself or by a signal; None if it has not."""
        if not self.wait(timeout_seconds):
            return None
        return self._ended()

    def _ended(self):
        self._keeper.join(10)
        with self._process as process:
            return process.returncode

    def lift_limit(self):
        self._process.stdin.write("lift\n")
        self._process.stdin.flush()

    def said(self, event):
        """How often it has said so in its log."""
        return self._log.read_text().count(event)

    def line(self, event):
        return next(line for line in self._log.read_text().splitlines() if event in line)

    def stop(self):
        """Ask it to end; how it went."""
        self._process.stdin.close()
        return self.outcome()

    def kill(self):
        self._process.kill()
        self._ended()

    def outcome(self, timeout_seconds=40):
        if not self.wait(timeout_seconds):
            self.kill()
            raise AssertionError(f"it still runs: {self._log.read_text()[-6000:]}")
        said = self._process.stdout.read()
        self._ended()
        assert said, self._log.read_text()[-6000:]
        return json.loads(said.splitlines()[-1])


@pytest.fixture
def open_directory(app):
    """A state directory for an unprivileged process; not below pytest's own, which every other run of pytest closes again."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root:
        app.bench.directory = Path(root)
        app.bench.directory.chmod(0o755)
        directory = app.bench.directory / "w"
        directory.mkdir()
        if os.geteuid() == 0:
            os.chown(directory, NOBODY, NOBODY)
        yield directory
        while LimitedProcess.started:  # a test that failed has not ended its own
            LimitedProcess.started.pop().kill()


def assert_said(outcome, kind, *words):
    """It ended by itself, with one typed sentence that names what to look at."""
    assert not outcome["stopped"] and kind in outcome["kinds"], outcome
    message = outcome["message"]
    assert "\n" not in message and "; " in message
    assert all(word in message for word in words), message
