"""Puts measured tables into docs/performance.md, between the marks that name them. Called by the benches with `--page`."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "performance.md"


def machine() -> str:
    """One sentence: when, on what, with what."""
    models = [line.partition(":")[2].strip() for line in _cpu_lines() if line.startswith("model name")]
    packages = ", ".join(f"{name} {version(name)}" for name in ("confluent-kafka", "rocksdict", "msgspec"))
    return (
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores of {models[0] if models else platform.machine()}, load "
        f"{os.getloadavg()[1]:.1f}, commit {_commit()}, Python {platform.python_version()}, {packages}."
    )


def put(section: str, lines: Sequence[str], page: Path = PAGE) -> None:
    """In place of what stands between `<!-- begin SECTION -->` and `<!-- end SECTION -->`."""
    begin, end = f"<!-- begin {section} -->", f"<!-- end {section} -->"
    before, found, rest = page.read_text("utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{page.name} has no section {section}: {begin} ... {end}")
    page.write_text("\n".join([before + begin, "", *lines, "", end + after]), "utf-8")


def _cpu_lines() -> list[str]:
    info = Path("/proc/cpuinfo")
    return info.read_text("utf-8").splitlines() if info.exists() else []


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"
