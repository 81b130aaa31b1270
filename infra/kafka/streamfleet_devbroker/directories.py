"""Where things lie: the cache (can be deleted at any time) and the state (a person's broker data and logs).

The XDG variables decide, as for any other program of the user; tests pass their own directories instead.
"""

from __future__ import annotations

import os
from pathlib import Path

from streamfleet_devbroker.errors import BrokerError

KAFKA_VERSION = "4.3.1"


def cache_directory() -> Path:
    """`$XDG_CACHE_HOME/streamfleet`, by default `~/.cache/streamfleet`."""
    return _user_directory("XDG_CACHE_HOME", ".cache") / "streamfleet"


def state_directory() -> Path:
    """`$XDG_STATE_HOME/streamfleet/broker`, by default `~/.local/state/streamfleet/broker`."""
    return _user_directory("XDG_STATE_HOME", ".local/state") / "streamfleet" / "broker"


def _user_directory(variable: str, default: str) -> Path:
    configured = os.environ.get(variable, "")
    if configured and Path(configured).is_absolute():  # the XDG rule: relative values are to be ignored
        return Path(configured)
    return Path.home() / default


def make_directory(path: Path) -> Path:
    """The directory, created if need be; a refusal of the file system becomes a sentence."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BrokerError(
            f"the directory {path} cannot be created: {error.strerror or error}",
            hint="point XDG_CACHE_HOME and XDG_STATE_HOME to places you may write to",
        ) from error
    return path
