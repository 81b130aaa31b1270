"""Time as the group client needs it: a clock that never jumps, and the one way to wait. Port and production adapter.

Deadlines must not follow the wall clock (it is set back now and then), so this is not streamfleet.clock. Tests pass a
clock whose `pause_ms` moves it.
"""

from __future__ import annotations

import time
from typing import Protocol


class PatientClock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since some moment in the past; never goes back."""

    def pause_ms(self, milliseconds: int) -> None:
        """Let that much time pass."""


class MonotonicClock:
    """The machine's monotonic clock."""

    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def pause_ms(self, milliseconds: int) -> None:
        time.sleep(max(0, milliseconds) / 1000)
