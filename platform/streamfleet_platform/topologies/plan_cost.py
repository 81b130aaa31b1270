"""What bringing a change out costs, from numbers that others measured: tasks moved, bytes restored, time without progress, lag.

Pure. Called with the verdict of lock_diff.py by whoever plans an upgrade.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamfleet_platform.model.quantities import bytes_text, duration_text
from streamfleet_platform.topologies.verdicts import LockDiff, Verdict


@dataclass(frozen=True)
class UpgradeFacts:
    """What is known of the app that runs."""

    slots: int
    tasks: int
    store_bytes: Mapping[str, int]
    """Of each store, over all partitions."""
    records_per_second: float
    """What arrives at all inputs."""
    capacity_per_second: float
    """What the slots together can process."""
    restart_seconds: float
    """From stopping a worker to its first record, without restoring."""
    restore_bytes_per_second: float
    """Of all slots together, within the fleet's budget."""
    static_members: bool = True
    """Slots that come back within the session time-out get their tasks back."""
    downstream: frozenset[str] = frozenset()
    """Apps that read what this one writes."""


@dataclass(frozen=True)
class PlanCost:
    """What it costs."""

    tasks_moved: int
    bytes_restored: int
    seconds_without_progress: float
    """Of any one task, at most."""
    lag_records: float
    """The backlog at its highest."""
    catch_up_seconds: float | None
    """To work that off; None: the slots cannot, there is as much coming in as they process."""
    downstream_touched: tuple[str, ...]
    """Apps that see a pause, or records again."""

    def lines(self) -> list[str]:
        caught_up = (
            "never, without more slots"
            if self.catch_up_seconds is None
            else f"after {duration_text(self.catch_up_seconds * 1000)}"
        )
        touched = ", ".join(self.downstream_touched) or "none"
        return [
            f"tasks moved: {self.tasks_moved}",
            f"bytes restored: {bytes_text(self.bytes_restored)}",
            f"longest pause of a task: {duration_text(self.seconds_without_progress * 1000)}",
            f"backlog: {self.lag_records:.0f} records, caught up {caught_up}",
            f"downstream apps touched: {touched}",
        ]


def plan_cost(diff: LockDiff, facts: UpgradeFacts) -> PlanCost:
    restored = sum(facts.store_bytes.get(store, 0) for store in _rebuilt_stores(diff))
    pause = 0.0 if diff.verdict is Verdict.UNCHANGED else facts.restart_seconds
    pause += restored / facts.restore_bytes_per_second if restored else 0.0
    stopped_share = _stopped_share(diff.verdict, facts.slots)
    lag = facts.records_per_second * stopped_share * pause
    spare = facts.capacity_per_second - facts.records_per_second
    return PlanCost(
        tasks_moved=0 if facts.static_members or diff.verdict is Verdict.UNCHANGED else facts.tasks,
        bytes_restored=restored,
        seconds_without_progress=pause,
        lag_records=lag,
        catch_up_seconds=0.0 if lag == 0 else lag / spare if spare > 0 else None,
        downstream_touched=tuple(sorted(facts.downstream)) if pause else (),
    )


def _rebuilt_stores(diff: LockDiff) -> set[str]:
    """Stores that are filled again: from their changelog, from the inputs, or from data at rest. A removed one is not."""
    rebuilt: set[str] = set()
    for change in diff.changes:
        if change.verdict >= Verdict.MIGRATE:
            rebuilt.update(change.lost_state)
        elif change.what == "store engine changed":
            rebuilt.add(change.subject)
    return rebuilt


def _stopped_share(verdict: Verdict, slots: int) -> float:
    """How much of the app stands still at a time."""
    if verdict is Verdict.UNCHANGED:
        return 0.0
    return 1 / max(1, slots) if verdict is Verdict.ROLLING else 1.0
