"""How a job tells what it is doing: a line per step, a bar where somebody watches. Called by both jobs.

On a terminal counts are drawn as one bar that moves; elsewhere a line is written now and then.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from streamfleet_jobs.secrets import hidden

Report = Callable[[str], None]

_WIDTH = 30
_SECONDS_BETWEEN_LINES = 10.0


def to_stderr(message: str) -> None:
    sys.stderr.write(hidden(message) + "\n")
    sys.stderr.flush()


class Bar:
    """Counts towards a total that is known. `report` gets the lines where nobody sees a bar move."""

    def __init__(self, what: str, total: int, report: Report) -> None:
        self._what = what
        self._total = max(total, 1)
        self._report = report
        self._is_drawn = sys.stderr.isatty()
        self._told_at = time.monotonic()

    def at(self, done: int) -> None:
        now = time.monotonic()
        if self._is_drawn:
            filled = _WIDTH * min(done, self._total) // self._total
            sys.stderr.write(f"\r{self._what} [{'█' * filled}{'·' * (_WIDTH - filled)}] {done:,}")
            sys.stderr.flush()
        elif now - self._told_at >= _SECONDS_BETWEEN_LINES:
            self._told_at = now
            self._report(f"{self._what}: {100 * done // self._total} %, {done:,} of {self._total:,}")

    def close(self, done: int) -> None:
        if self._is_drawn:
            self.at(done)
            sys.stderr.write("\n")
        self._report(f"{self._what}: done, {done:,}")
