"""What a process and its children use, from /proc: CPU seconds, peak memory, and what everybody else uses meanwhile."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def pids_of(root: int) -> list[int]:
    found = [root]
    for pid in found:
        with contextlib.suppress(OSError):
            found += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return found


def cpu_seconds(root: int) -> float:
    total = 0
    for pid in pids_of(root):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def peak_megabytes(root: int) -> float:
    total = 0
    for pid in pids_of(root):
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return total / 1024


def busy_core_seconds() -> float:
    """Of the whole machine, since it started."""
    spent = list(map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9]))
    return (sum(spent) - spent[3] - spent[4]) / _TICKS
