"""What bringing a change out costs, from numbers that others measured: tasks moved, bytes restored, time without progress, lag.

Pure. Called by whoever plans an upgrade, with the diff of lock_diff.py, and with how much has to be done about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamfleet_platform.model.quantities import bytes_text, duration_text
from streamfleet_platform.topologies.verdicts import LockDiff, Verdict


@dataclass(frozen=True)
class Figure:
    """A number, and whether anybody has measured it."""

    value: float
    is_measured: bool = True

    @classmethod
    def of(cls, measured: float | None, assumed: float) -> Figure:
        return cls(assumed, is_measured=False) if measured is None else cls(measured)


@dataclass(frozen=True)
class UpgradeFacts:
    """What is known of the app that runs."""

    slots: int
    tasks: int
    store_bytes: Mapping[str, int]
    """Of each store, over all partitions."""
    input_records: int | None
    """At most so many are in its inputs; None: not known."""
    records_per_second: float
    """What arrives at all inputs."""
    capacity_per_second: Figure | None
    """What the slots together can process; None: nothing was seen to arrive, so nobody can say."""
    restart_seconds: Figure
    """From stopping a worker to its first record, without restoring."""
    restore_bytes_per_second: Figure
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
    """From changelogs."""
    seconds_without_progress: float
    """Of any one task, at most."""
    lag_records: float
    """The backlog at its highest."""
    catch_up_seconds: float | None
    """To work that off; None: the slots cannot, there is as much coming in as they process, or nobody knows what they can."""
    downstream_touched: tuple[str, ...]
    """Apps that see a pause, or records again."""
    bytes_rebuilt: int = 0
    """Of stores that begin empty, and are filled from the inputs again."""
    capacity_is_known: bool = True
    begins_anew: bool = False
    """The inputs are read from their beginning."""
    assumed: tuple[str, ...] = ()
    """Numbers it is made from that nobody has measured, in words."""

    def lines(self) -> list[str]:
        touched = ", ".join(self.downstream_touched) or "none"
        backlog = f"at most {self.lag_records:.0f}" if self.begins_anew else f"{self.lag_records:.0f}"
        anew = f"state built anew from the inputs: {bytes_text(self.bytes_rebuilt)}"
        return [
            f"tasks moved: {self.tasks_moved}",
            f"bytes restored: {bytes_text(self.bytes_restored)}",
            *([anew] if self.begins_anew else []),
            f"longest pause of a task: {duration_text(self.seconds_without_progress * 1000)}",
            f"backlog: {backlog} records, {self._caught_up()}",
            f"downstream apps touched: {touched}",
            *(f"not measured, assumed: {words}" for words in self.assumed),
        ]

    def _caught_up(self) -> str:
        if self.catch_up_seconds is not None:
            return f"caught up after {duration_text(self.catch_up_seconds * 1000)}"
        return "caught up never, without more slots" if self.capacity_is_known else "caught up nobody knows when"


def plan_cost(diff: LockDiff, weight: Verdict, facts: UpgradeFacts) -> PlanCost:
    """`weight`: what has to be done; more than the diff asks for where there is other code, or a new generation."""
    begins_anew = weight >= Verdict.MIGRATE
    restored = 0 if begins_anew else sum(facts.store_bytes.get(store, 0) for store in _restored_stores(diff))
    pause = 0.0 if weight is Verdict.UNCHANGED else facts.restart_seconds.value
    pause += restored / facts.restore_bytes_per_second.value if restored else 0.0
    lag = facts.records_per_second * _stopped_share(weight, facts.slots) * pause
    lag += (facts.input_records or 0) if begins_anew else 0
    capacity = facts.capacity_per_second
    spare = 0.0 if capacity is None else capacity.value - facts.records_per_second
    return PlanCost(
        tasks_moved=0 if facts.static_members or weight is Verdict.UNCHANGED else facts.tasks,
        bytes_restored=restored,
        seconds_without_progress=pause,
        lag_records=lag,
        catch_up_seconds=0.0 if lag == 0 else lag / spare if spare > 0 else None,
        downstream_touched=tuple(sorted(facts.downstream)) if pause else (),
        bytes_rebuilt=sum(facts.store_bytes.values()) if begins_anew else 0,
        capacity_is_known=capacity is not None,
        begins_anew=begins_anew,
        assumed=tuple(_assumed(facts, weight, restores=restored > 0)) if pause else (),
    )


def _assumed(facts: UpgradeFacts, weight: Verdict, *, restores: bool) -> list[str]:
    words = []
    begins_anew, capacity = weight >= Verdict.MIGRATE, facts.capacity_per_second
    if not facts.restart_seconds.is_measured:
        words.append(f"a worker restarts in {duration_text(facts.restart_seconds.value * 1000)}")
    if restores and not facts.restore_bytes_per_second.is_measured:
        words.append(f"{facts.restore_bytes_per_second.value / 1e6:.3g} MB/s are restored")
    if begins_anew and facts.input_records is None:
        words.append("the inputs hold nothing")
    if capacity is not None and not capacity.is_measured:
        words.append(f"the slots can process {capacity.value:.0f} records/s")
    return words


def _restored_stores(diff: LockDiff) -> set[str]:
    """Stores that are filled again from their changelogs."""
    return {change.subject for change in diff.changes if change.what == "store engine changed"}


def _stopped_share(weight: Verdict, slots: int) -> float:
    """How much of the app stands still at a time."""
    if weight is Verdict.UNCHANGED:
        return 0.0
    return 1 / max(1, slots) if weight is Verdict.ROLLING else 1.0
