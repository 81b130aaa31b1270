"""Time as the group client needs it: a clock that never jumps, and the one way to wait. Port and production adapter.

Deadlines must not follow the wall clock (it is set back now and then), so this is not streamfleet.clock. Tests pass a
clock whose `pause_ms` moves it.
"""

from __future__ import annotations

import time
from typing import Protocol

_HAS_BOOTTIME = hasattr(time, "CLOCK_BOOTTIME")


class PatientClock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since some moment in the past; never goes back."""

    def pause_ms(self, milliseconds: int) -> None:
        """Let that much time pass."""


class MonotonicClock:
    """The machine's monotonic clock. Where the machine can be suspended, one that goes on meanwhile, as the group does: a member
    that was asleep for longer than its session must know it before anybody has told it.
    """

    def now_ms(self) -> int:
        # Linux stops its own CLOCK_MONOTONIC during a suspend, and only Linux has the other one.
        elapsed_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) if _HAS_BOOTTIME else time.monotonic_ns()
        return elapsed_ns // 1_000_000

    def pause_ms(self, milliseconds: int) -> None:
        time.sleep(max(0, milliseconds) / 1000)
