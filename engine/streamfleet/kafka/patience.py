"""Time as the group client needs it: a clock that never jumps, and the one way to wait. Port and production adapter.

Deadlines must not follow the wall clock (it is set back now and then), so this is not streamfleet.clock. Tests pass a
clock whose `pause_ms` moves it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

NS_PER_MS = 1_000_000


def uninterrupted_ns() -> Callable[[], int]:
    """The clock of this machine that goes on while it is suspended."""
    # Linux stops its own CLOCK_MONOTONIC during a suspend, and only Linux has the other one.
    return partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic_ns


elapsed_ns = uninterrupted_ns()
"""What MonotonicClock goes by, for who asks once per record."""


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
        return elapsed_ns() // NS_PER_MS

    def pause_ms(self, milliseconds: int) -> None:
        time.sleep(max(0, milliseconds) / 1000)
