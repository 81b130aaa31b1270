"""What the engine counts. Written by tasks, read by the test driver, by the worker's status and by exporters.

Counters are plain integers in dicts: a task runs on one thread, and reading a dict from another one is safe.
`samples()` gives every number as (name, labels, value), the shape Prometheus wants; nothing here knows an exporter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple


class Sample(NamedTuple):
    """One number, as exporters want it."""

    name: str
    labels: Mapping[str, str]
    value: int


class Dropped(NamedTuple):
    """Why records are missing from the results: who left them out, and the reason."""

    operator: str
    reason: str


class Metrics:
    """The numbers of one task, or of all tasks that were given the same object."""

    def __init__(self) -> None:
        self._dropped: dict[Dropped, int] = {}

    def record_dropped(self, operator: str, reason: str) -> None:
        key = Dropped(operator, reason)
        self._dropped[key] = self._dropped.get(key, 0) + 1

    @property
    def dropped_records(self) -> Mapping[Dropped, int]:
        """Number of dropped records by operator (or store) and reason."""
        return MappingProxyType(self._dropped)

    @property
    def dropped_records_total(self) -> int:
        return sum(self._dropped.values())

    def samples(self) -> Iterator[Sample]:
        for (operator, reason), count in list(self._dropped.items()):
            yield Sample("dropped_records_total", {"operator": operator, "reason": reason}, count)
