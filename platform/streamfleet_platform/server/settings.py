"""Where a server has its things. Given by the command `streamfleet server`, and by tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streamfleet_platform.errors import InvalidRequestError


@dataclass(frozen=True)
class ServerSettings:
    """One server."""

    source: Path
    """A directory or Git repository: definitions and code."""
    data: Path
    """What the server keeps: registry, code of revisions, workers' state and logs."""
    fleet: str = "."
    """The directory below `source` that holds fleet.yaml."""
    registry: str | None = None
    """A database URL; None: SQLite below `data`."""
    host: str = "127.0.0.1"
    port: int = 8400
    hosts: Sequence[str] = ()
    """Names the server goes by, beside those of loopback."""
    tokens: Path | None = None
    """The tokens file; None: below `data`."""
    secrets: Path | None = None
    """The directory that secret references of the kind `file` are below."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Where else to look, for people: `dagster`."""
    lease_seconds: float = 15.0
    idle_seconds: float = 2.0
    """Between two passes while nothing is under way."""
    busy_seconds: float = 0.3

    @property
    def registry_url(self) -> str:
        return self.registry or f"sqlite:///{(self.data / 'registry.db').resolve()}"

    @property
    def code(self) -> Path:
        return self.data / "code"

    @property
    def workers(self) -> Path:
        return self.data / "workers"

    @property
    def token_file(self) -> Path:
        return self.tokens or self.data / "tokens.json"

    @property
    def snapshots(self) -> Path:
        """What bootstraps publish, for the workers."""
        return self.data / "snapshots"

    @property
    def runs(self) -> Path:
        """Where jobs keep what they compute."""
        return self.data / "runs"


def make_data_directory(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidRequestError(
            f"{path} cannot be the data directory: {error.strerror}", hint="name another one with --data"
        ) from error
