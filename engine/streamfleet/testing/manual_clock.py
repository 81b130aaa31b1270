"""A clock that stands still until it is told to move: the Clock of tests."""

from __future__ import annotations

from streamfleet.durations import Duration, duration_ms


class ManualClock:
    """Implements Clock."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = self._monotonic_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def advance(self, duration: Duration) -> None:
        """Move forward by a timedelta or a number of milliseconds."""
        step_ms = duration_ms(duration, "the step of the clock")
        self._now_ms += step_ms
        self._monotonic_ms += step_ms

    def set_wall_clock(self, now_ms: int) -> None:
        """As somebody who corrects the machine's clock does it, forward or back: no time passes."""
        self._now_ms = now_ms
