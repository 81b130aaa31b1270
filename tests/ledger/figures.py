"""How fast the app came back: figures from the workers' logs, printed at the end of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.ledger.fleet import Fleet
from tests.ledger.nemesis import Played


@dataclass(frozen=True)
class Copies:
    """What happened to standbys and warm-ups in a run."""

    promotions: int = 0
    """Copies that became active tasks."""
    demotions: int = 0
    """Active tasks that became copies."""
    warm_ups_caught_up: int = 0
    """Times that a worker asked for a rebalance, because a warm-up of its had caught up."""
    probes: int = 0
    """Times that a worker was made to."""

    def __str__(self) -> str:
        return (
            f"{self.promotions} copies became active tasks, {self.demotions} active tasks became copies, "
            f"{self.warm_ups_caught_up} times warm-ups had caught up, {self.probes} probes"
        )


def copy_figures(fleet: Fleet) -> Copies:
    counts = Counter(event.get("event") for worker in fleet.workers for event in worker.events())
    return Copies(
        promotions=counts["standby becomes the active task"],
        demotions=counts["active task becomes a standby"],
        warm_ups_caught_up=counts["warm-ups have caught up"],
        probes=counts["probed"],
    )


def recovery_figures(fleet: Fleet, played: Sequence[Played]) -> list[str]:
    """For every fault: after how long the last task that it moved was running again, and what had to be restored."""
    events = sorted(
        (event for worker in fleet.workers for event in worker.events() if "timestamp" in event),
        key=lambda event: event["timestamp"],
    )
    lines = []
    for each in sorted(played, key=lambda one: one.begin):
        until = min((other.begin for other in played if other.begin > each.end), default=float("inf"))
        lines.append(_line(each, [event for event in events if each.begin <= event["timestamp"] < until]))
    return lines


def _line(played: Played, events: list[dict[str, Any]]) -> str:
    running = [event["timestamp"] - played.begin for event in events if event.get("event") == "task running"]
    restored = [event.get("records", 0) for event in events if event.get("event") == "task restored"]
    if not running:
        return f"{played.fault}: no task moved"
    return (
        f"{played.fault}: tasks running again between {min(running):.2f} and {max(running):.2f} s after it began, "
        f"{len(running)} starts, {sum(restored)} records restored"
    )
