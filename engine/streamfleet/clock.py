"""The clock port and its production adapter. Nothing else in the engine reads the time; tests use `testing.ManualClock`."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since the epoch: what users see as wall-clock time. It is set now and then, forward or back."""

    def monotonic_ms(self) -> int:
        """Milliseconds since some moment in the past; never set. For intervals and deadlines."""


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
