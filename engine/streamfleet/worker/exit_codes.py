"""How a worker ends, as the number its parent sees. Documented in docs/worker.md; scripts and supervisors rely on it."""

from __future__ import annotations

import enum

from streamfleet.errors import ConfigError


class ExitCode(enum.IntEnum):
    CLEAN = 0
    """Asked to stop: committed, closed, left the group."""
    FAILED = 1
    """The app could not start, ended by itself, or could not be closed in good order; the reason was told."""
    MISUSED = 2
    """The command or the configuration is wrong: starting again changes nothing."""
    DIRTY = 143
    """Ended without a last commit, because it was told to hurry or the grace period was over. 128 + SIGTERM."""


def exit_code_of(error: Exception) -> ExitCode:
    return ExitCode.MISUSED if isinstance(error, ConfigError) else ExitCode.FAILED
