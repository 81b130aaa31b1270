"""How much memory this process may use, and what of it the databases get by default. Asked once, when an app is put together.

The limit is the least of those that the kernel holds to: of the control group and those above it (what a container has), and of the
address space (RLIMIT_AS). Where there is none the answer is None, not the machine's memory: a process is rarely alone on it.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

WITHOUT_LIMIT_BYTES = 128 * 2**20
SHARE = 4
"""The databases get one part of so many: beside them there are caches, records under way, the Kafka clients and Python."""
LEAST_BYTES = 16 * 2**20
MOST_BYTES = 2**30
"""By default: several processes may share a limit, and do not know of each other."""

_NO_LIMIT_BYTES = 2**60
"""The first version of control groups says a number of this kind."""
_MOUNTS = {"": ("sys/fs/cgroup", "memory.max"), "memory": ("sys/fs/cgroup/memory", "memory.limit_in_bytes")}
"""By the controllers that /proc/self/cgroup names: the second version has one hierarchy for all, the first one for memory."""


def database_memory_bytes(limit_bytes: int | None) -> int:
    """What all databases of a process get together, unless a setting says otherwise."""
    if limit_bytes is None:
        return WITHOUT_LIMIT_BYTES
    return min(max(limit_bytes // SHARE, LEAST_BYTES), MOST_BYTES)


def memory_limit_bytes(root: Path = Path("/")) -> int | None:
    """`root` is where /proc and /sys are."""
    return min([*_of_control_groups(root), *_of_address_space()], default=None)


def _of_address_space() -> Iterator[int]:
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        yield soft


def _of_control_groups(root: Path) -> Iterator[int]:
    for controllers, group in _own_groups(root / "proc/self/cgroup"):
        mount, name = _MOUNTS[controllers]
        inner = PurePosixPath(group.lstrip("/"))
        for level in (inner, *inner.parents):
            yield from _number(root / mount / level / name)


def _own_groups(path: Path) -> list[tuple[str, str]]:
    """Controllers and group, of the hierarchies that may limit memory."""
    try:
        lines = [line.split(":", 2) for line in path.read_text().splitlines()]
    except OSError:  # another system than Linux
        return []
    return [(controllers, group) for _, controllers, group in lines if controllers in _MOUNTS]


def _number(path: Path) -> Iterator[int]:
    try:
        said = path.read_text().strip()
    except OSError:  # in a container the groups above, or the own one under its outer name, are out of sight
        return
    if said.isdecimal() and int(said) < _NO_LIMIT_BYTES:
        yield int(said)
