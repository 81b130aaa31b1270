"""Who has a partition of a store: read from the plan that every member of the group was given. Pure.

An endpoint is what a member published as its `application.server`; addresses come from nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamfleet.assignment.snapshot import Plan, TaskKey


@dataclass(frozen=True)
class KeyQueryMetadata:
    """`active` None: nobody has it at the moment, or its owner does not say where it can be asked."""

    partition: int
    active: str | None
    standbys: tuple[str, ...] = ()


def metadata_of(plan: Plan | None, task: TaskKey) -> KeyQueryMetadata:
    if plan is None:
        return KeyQueryMetadata(task.partition, None)
    active = _endpoints(plan.endpoints, task)
    return KeyQueryMetadata(task.partition, active[0] if active else None, _endpoints(plan.standby_endpoints, task))


def _endpoints(tasks_by_endpoint: Mapping[str, tuple[TaskKey, ...]], task: TaskKey) -> tuple[str, ...]:
    return tuple(sorted(endpoint for endpoint, tasks in tasks_by_endpoint.items() if task in tasks))
