"""Schedules of punctuators, and the queue that says which are due. A task has one queue per PunctuationType.

A schedule fires once for however many intervals have passed, with the time that made it due, and keeps its rhythm:
the next time is the next multiple of the interval after its first time.
"""

from __future__ import annotations

from collections.abc import Callable

from streamfleet.processor.api import Punctuator
from streamfleet.task.binary_heap import BinaryHeap


class PunctuationSchedule:
    """One call of `context.schedule`; it is the Cancellable that the processor gets."""

    __slots__ = ("callback", "due_ms", "interval_ms", "is_cancelled", "operator")

    def __init__(self, operator: str, due_ms: int, interval_ms: int, callback: Punctuator) -> None:
        self.operator = operator
        self.due_ms = due_ms
        self.interval_ms = interval_ms
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True

    def advance_past(self, now_ms: int) -> None:
        intervals_passed = max(0, (now_ms - self.due_ms) // self.interval_ms)
        self.due_ms += (intervals_passed + 1) * self.interval_ms


class PunctuationQueue:
    """Schedules of one kind of time, earliest first."""

    def __init__(self) -> None:
        self._schedules: BinaryHeap[PunctuationSchedule] = BinaryHeap(lambda schedule: schedule.due_ms)

    def add(self, schedule: PunctuationSchedule) -> None:
        self._schedules.push(schedule)

    def punctuate(self, now_ms: int, fire: Callable[[PunctuationSchedule, int], None]) -> bool:
        """Fire all that are due; True if there was one. A punctuator may schedule and cancel others, and itself."""
        fired = False
        while (schedule := self._schedules.peek()) is not None and schedule.due_ms <= now_ms:
            self._schedules.pop()
            if schedule.is_cancelled:
                continue
            fire(schedule, now_ms)
            fired = True
            schedule.advance_past(now_ms)
            if not schedule.is_cancelled:
                self._schedules.push(schedule)
        return fired

    def clear(self) -> None:
        self._schedules.clear()
