"""What a line of the pinned list means: `group:artifact:version:sha256` becomes a Jar.

Read by jars.py; maven.py and ivy.py write their own project files from Jars.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Jar:
    """One artifact of the pinned list."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


def parse_jars(text: str) -> tuple[Jar, ...]:
    """The jars of a list; empty lines and lines that start with `#` are prose."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(_parse_line(line) for line in lines if line and not line.startswith("#"))


def _parse_line(line: str) -> Jar:
    parts = line.split(":")
    if len(parts) != 4 or not all(parts) or len(parts[3]) != 64:
        raise ValueError(f"not a pinned jar: {line!r}; write group:artifact:version:sha256")
    return Jar(*parts)
