"""What a change will cost an app: the numbers for topologies/plan_cost.py, from what the registry has of it. Called by planner.py.

A number that nobody measured is assumed, and says so; the words of a plan repeat it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from streamfleet_platform.registry import journal
from streamfleet_platform.registry.tables import App, Step
from streamfleet_platform.topologies.lock import TopologyLock
from streamfleet_platform.topologies.plan_cost import Figure, UpgradeFacts

ASSUMED_RESTART_SECONDS = 5.0
ASSUMED_RESTORE_BYTES_PER_SECOND = 50e6
ASSUMED_CAPACITY = 2.0
"""Times what arrives."""
LEAST_BUSY = 0.01
"""Below that the share of time tells nothing of what a full slot can do."""
OPERATIONS = 20
"""Of an app, among which one is looked for that has started a worker."""
_STARTS = ("start-slot", "replace-slot")
_GATES = ("pass-gate", "wait-until-well")


def upgrade_facts(
    app: App,
    lock: TopologyLock,
    restart_seconds: float | None,
    *,
    restore_limit: int | None,
    static_members: bool,
    downstream: frozenset[str],
) -> UpgradeFacts:
    """`lock` is of what runs; `restore_limit` is the fleet's budget, in bytes per second."""
    seen = app.observed
    rate = float(seen.get("records_per_second") or 0.0)
    return UpgradeFacts(
        slots=app.slots,
        tasks=int(seen.get("tasks") or 0),
        store_bytes=dict(seen.get("store_bytes") or {}),
        input_records=_input_records(seen, lock),
        records_per_second=rate,
        capacity_per_second=_capacity(seen, rate),
        restart_seconds=Figure.of(restart_seconds, ASSUMED_RESTART_SECONDS),
        restore_bytes_per_second=_restore_speed(seen, app.slots, restore_limit),
        static_members=static_members,
        downstream=downstream,
    )


def _input_records(seen: Mapping[str, Any], lock: TopologyLock) -> int | None:
    """Everything that was ever written to the inputs: what is still there is not known without asking."""
    ends = {topic["name"]: topic["end_offsets"] for topic in seen.get("topics", ())}
    found = [ends.get(topic) for topic in lock.sources()]
    return None if None in found else sum(end for end in found if end is not None)


def _capacity(seen: Mapping[str, Any], rate: float) -> Figure | None:
    """What the slots would process if they were busy all the time, by how busy they are with what they process now."""
    busy = [share for worker in seen.get("workers", ()) if (share := worker.get("busy_share")) is not None]
    share = sum(busy) / len(busy) if busy else 0.0
    if not rate:
        return None
    measured = rate / share if share >= LEAST_BUSY else None
    return Figure.of(measured, ASSUMED_CAPACITY * rate)


def _restore_speed(seen: Mapping[str, Any], slots: int, limit: int | None) -> Figure:
    """Every slot restores at least one task at a time; all of them share the budget."""
    one = seen.get("restore_bytes_per_second")
    figure = Figure.of(None if one is None else one * max(1, slots), ASSUMED_RESTORE_BYTES_PER_SECOND)
    return Figure(min(figure.value, limit or math.inf), figure.is_measured)


def last_restart_seconds(session: Session, app: str) -> float | None:
    """From stopping or starting a worker until all was well again, the last time an operation did so."""
    for operation in journal.latest(session, app, OPERATIONS):
        took = restart_seconds(journal.steps_of(session, operation.id))
        if took is not None:
            return took
    return None


def restart_seconds(steps: Sequence[Step]) -> float | None:
    """The longest way from a worker's start to the gate behind it, without the time that it had to stay well."""
    found: list[float] = []
    began: datetime | None = None
    for step in steps:
        if step.name in _STARTS:
            began = began or step.started_at
        elif step.name in _GATES and step.state == "done" and began is not None and step.ended_at is not None:
            since = step.memory.get("well_since")
            well = step.ended_at if since is None else datetime.fromisoformat(since)
            found.append((well - began).total_seconds())
            began = None
    return max(found, default=None)
