"""Starts the counting app in a process with less than it needs, and hears how it ended."""

import json
import os
import stat
import subprocess
import sys
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
    """A state directory that an unprivileged process may use."""
    directory = app.bench.directory / "w"
    directory.mkdir()
    for path in [directory, *list(directory.parents)[:3]]:
        path.chmod(path.stat().st_mode | stat.S_IXOTH | stat.S_IROTH)
    if os.geteuid() == 0:
        os.chown(directory, NOBODY, NOBODY)
    return directory


def assert_said(outcome, kind, *words):
    """It ended by itself, with one typed sentence that names what to look at."""
    assert not outcome["stopped"] and kind in outcome["kinds"], outcome
    message = outcome["message"]
    assert "\n" not in message and "; " in message
    assert all(word in message for word in words), message
