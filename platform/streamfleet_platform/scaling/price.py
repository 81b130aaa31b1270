"""What a move costs and what it brings, in the same unit: seconds of a slot's work.

Called by decision.py. A task that finds its state where it goes (a caught-up standby, or what is left on disk) restores nothing;
the others are restored by warm-ups, a few at a time, while the old owner goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamfleet_platform.model.quantities import bytes_text, duration_text
from streamfleet_platform.scaling.measures import Bounds, Measures, Task


@dataclass(frozen=True)
class Price:
    """Of going from one placement to another."""

    tasks_moved: int
    bytes_restored: int
    waves: int
    """Rounds of warm-ups."""
    move_seconds: float
    """Until the last task is where it should be."""
    slot_seconds: float
    """Work of slots that goes into it."""

    def __str__(self) -> str:
        moved = f"{self.tasks_moved} tasks move"
        if not self.bytes_restored:
            return f"{moved}, nothing to restore"
        took = duration_text(self.move_seconds * 1000)
        return f"{moved}, {bytes_text(self.bytes_restored)} to restore in {self.waves} waves, {took}"


def price_move(
    measures: Measures, to: Mapping[int, frozenset[Task]], loads: Mapping[Task, float], bounds: Bounds
) -> Price:
    before = {task: slot for slot, tasks in measures.placement.items() for task in tasks}
    moved = {task: slot for slot, tasks in to.items() for task in tasks if before.get(task) not in (None, slot)}
    restored = [
        measures.tasks[task].state_bytes
        for task, slot in moved.items()
        if measures.sub_topologies[task.content_id].stateful and slot not in measures.copies.get(task, frozenset())
    ]
    restored = sorted((size for size in restored if size), reverse=True)
    waves = [restored[start : start + bounds.max_warmups] for start in range(0, len(restored), bounds.max_warmups)]
    restore_seconds = sum(wave[0] for wave in waves) / bounds.restore_bytes_per_second
    standing_still = sum(min(loads.get(task, 0.0), 1.0) for task in moved) * bounds.handover_seconds
    return Price(
        tasks_moved=len(moved),
        bytes_restored=sum(restored),
        waves=len(waves),
        move_seconds=restore_seconds + (bounds.handover_seconds if moved else 0.0),
        slot_seconds=standing_still + sum(restored) / bounds.restore_bytes_per_second,
    )


def gain_of_scaling_up(
    now: Mapping[int, frozenset[Task]],
    to: Mapping[int, frozenset[Task]],
    loads: Mapping[Task, float],
    useful_seconds: float,
) -> float:
    """Slot seconds of work that no slot has time for now and some will have."""
    return max(0.0, missing_work(now, loads) - missing_work(to, loads)) * max(0.0, useful_seconds)


def gain_of_scaling_down(slots: int, to: int, useful_seconds: float) -> float:
    """Slot seconds that others can have."""
    return max(0, slots - to) * max(0.0, useful_seconds)


def missing_work(placement: Mapping[int, frozenset[Task]], loads: Mapping[Task, float]) -> float:
    """In slots: what the slots have to do and have no time for."""
    return sum(max(0.0, sum(loads.get(task, 0.0) for task in tasks) - 1.0) for tasks in placement.values())
