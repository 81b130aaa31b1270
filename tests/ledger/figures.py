"""How fast the app came back: figures from the workers' logs, printed at the end of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.ledger.fleet import Fleet
from tests.ledger.nemesis import Fault


def recovery_figures(fleet: Fleet, faults: Sequence[Fault], started: float) -> list[str]:
    """For every fault: after how long the last task that it moved was running again, and what had to be restored."""
    events = sorted(
        (event for worker in fleet.workers for event in worker.events() if "timestamp" in event),
        key=lambda event: event["timestamp"],
    )
    lines = []
    for number, fault in enumerate(faults):
        begin = started + fault.begin
        after = [other.begin for other in faults[number + 1 :] if other.begin > fault.end]
        until = started + min(after) if after else float("inf")
        lines.append(_line(fault, begin, [event for event in events if begin <= event["timestamp"] < until]))
    return lines


def _line(fault: Fault, begin: float, events: list[dict[str, Any]]) -> str:
    running = [event["timestamp"] - begin for event in events if event.get("event") == "task running"]
    restored = [event.get("records", 0) for event in events if event.get("event") == "task restored"]
    if not running:
        return f"{fault}: no task moved"
    return (
        f"{fault}: tasks running again between {min(running):.2f} and {max(running):.2f} s after it began, "
        f"{len(running)} starts, {sum(restored)} records restored"
    )
