"""One look at an app: what its workers' /status pages (docs/worker.md) said at one moment. Used by measuring.py.

What a worker does not know yet (a lag before the first fetch) is None here, never 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

import streamfleet

Status = Mapping[str, Any]
Place = tuple[str, int]
"""A topic and a partition."""


@dataclass(frozen=True)
class TaskLook:
    """One active task, where it is."""

    id: streamfleet.TaskId
    slot: int
    phase: str
    process: int
    """When its worker began: counters of another process are not to be compared."""
    processed_records: int
    busy_seconds: float
    ends: Mapping[Place, int | None]
    """Where its inputs end, as of their last fetch."""
    lag_records: int | None


@dataclass(frozen=True)
class Look:
    """All workers of an app that answered."""

    at: datetime
    statuses: Mapping[int, Status]
    """By slot."""
    slots: frozenset[int]
    """That should answer."""
    state_bytes: Mapping[int, int] = field(default_factory=dict)

    def tasks(self) -> Sequence[TaskLook]:
        return self._tasks

    @cached_property
    def _tasks(self) -> tuple[TaskLook, ...]:
        """Read once: a pass asks for them again and again, for thousands of tasks."""
        return tuple(
            _task(slot, status, task)
            for slot, status in self.statuses.items()
            for thread in status["threads"]
            for task in thread["tasks"]
        )

    def ends(self) -> dict[Place, int]:
        """Where input partitions end, of those that were read."""
        return {place: end for task in self.tasks() for place, end in task.ends.items() if end is not None}

    def caught_up_copies(self, acceptable_lag: int) -> dict[streamfleet.TaskId, frozenset[int]]:
        """Slots, by task, whose copy could take over: standbys, and warm-ups that wait for a rebalance."""
        found: dict[streamfleet.TaskId, set[int]] = {}
        for slot, copy in self._copies():
            if copy["lag_records"] is not None and copy["lag_records"] <= acceptable_lag:
                found.setdefault(streamfleet.TaskId.parse(copy["id"]), set()).add(slot)
        return {task: frozenset(slots) for task, slots in found.items()}

    def _copies(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        for slot, status in self.statuses.items():
            for thread in status["threads"]:
                yield from ((slot, copy) for copy in thread["standbys"])

    @property
    def is_at_rest(self) -> bool:
        """Everybody answers and runs, and nothing is restored or warmed up."""
        return (
            self.slots == self.statuses.keys()
            and all(status["state"] == "running" and not status["paused"] for status in self.statuses.values())
            and all(task.phase == "running" for task in self.tasks())
            and not any(copy["kind"] == "warmup" for _, copy in self._copies())
        )

    def activity_seconds(self, slot: int) -> dict[str, float]:
        spent: dict[str, float] = {}
        for thread in self.statuses[slot]["threads"]:
            for activity, seconds in thread["activity_seconds"].items():
                spent[activity] = spent.get(activity, 0.0) + seconds
        return spent


def _task(slot: int, status: Status, task: Mapping[str, Any]) -> TaskLook:
    lags = [place["lag_records"] for place in task["inputs"]]
    return TaskLook(
        id=streamfleet.TaskId.parse(task["id"]),
        slot=slot,
        phase=task["phase"],
        process=int(status["started_at_ms"]),
        processed_records=int(task["processed_records"]),
        busy_seconds=float(task["busy_seconds"]),
        ends={
            (place["topic"], int(place["partition"])): None
            if place["lag_records"] is None
            else int(place["position"]) + int(place["lag_records"])
            for place in task["inputs"]
        },
        lag_records=None if None in lags else sum(lags),
    )
