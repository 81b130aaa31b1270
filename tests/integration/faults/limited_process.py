"""Starts the counting app in a process with less than it needs, and hears how it ended."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.integration.faults.limited_worker import NOBODY

ROOT = Path(__file__).parents[3]


class LimitedProcess:
    """A process with less than the app needs. `outcome()` is what it said at its end."""

    def __init__(self, app, state_dir, **limits):
        settings = {
            "app": app.bench.app,
            "bootstrap": app.bench.bootstrap,
            "source": app.source,
            "outputs": app.outputs,
            "state_dir": str(state_dir),
            **limits,
        }
        self._log = app.bench.directory / "limited.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.integration.faults.limited_worker", json.dumps(settings)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

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

    def outcome(self, timeout_seconds=40):
        with self._process as process:
            if not self.wait(timeout_seconds):
                process.kill()
                raise AssertionError(f"it still runs: {self._log.read_text()[-6000:]}")
            said = process.stdout.read()
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


def assert_said(outcome, kind, *words):
    """It ended by itself, with one typed sentence that names what to look at."""
    assert not outcome["stopped"] and kind in outcome["kinds"], outcome
    message = outcome["message"]
    assert "\n" not in message and "; " in message
    assert all(word in message for word in words), message
