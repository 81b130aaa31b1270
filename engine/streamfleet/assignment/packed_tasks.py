"""Tasks as partitions by content id: how they are written where space counts, in user data and files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streamfleet.assignment.snapshot import TaskKey

PackedTasks = dict[str, list[int]]


def pack(tasks: Iterable[TaskKey]) -> PackedTasks:
    packed: PackedTasks = {}
    for content_id, partition in sorted(tasks):
        packed.setdefault(content_id, []).append(partition)
    return packed


def unpack(packed: Mapping[str, Iterable[int]]) -> tuple[TaskKey, ...]:
    return tuple(sorted(TaskKey(content_id, partition) for content_id, ps in packed.items() for partition in ps))
