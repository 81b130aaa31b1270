"""The kinds of windows, as values, and which windows a timestamp falls into. What is done with them is in operators/."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final

from streamfleet.durations import LONG_MAX, Duration, duration_ms
from streamfleet.errors import OptionError
from streamfleet.records import TimeWindow


class EmitStrategy(enum.Enum):
    """When a windowed aggregation passes a result on: at every update, or once when the window has closed."""

    ON_WINDOW_UPDATE = "on_window_update"
    """A result for every update of a window (less what caching holds back)."""
    ON_WINDOW_CLOSE = "on_window_close"
    """One result per window, when it closes: needs later records to move time on."""


class _Missing:
    def __repr__(self) -> str:
        return "(required)"


_MISSING: Final = _Missing()


def _grace(windows: str, grace: Duration | _Missing) -> int:
    if isinstance(grace, _Missing):
        raise OptionError(
            f"{windows} was given no grace",
            hint="say how long after its end a window still takes late records: grace=0 for not at all",
        )
    return duration_ms(grace, f"grace of {windows}")


class Windows(ABC):
    """Windows whose bounds do not depend on the data: time and unlimited windows."""

    size_ms: int
    grace_ms: int

    @abstractmethod
    def windows_for(self, timestamp: int) -> Iterator[TimeWindow]:
        """The windows that contain a timestamp, the earliest first."""


class TimeWindows(Windows):
    """Windows [start, end) of one size: tumbling, or hopping if they advance by less than their size."""

    def __init__(self, size: Duration, grace: Duration | _Missing = _MISSING, advance: Duration | None = None) -> None:
        self.size_ms = duration_ms(size, "size of TimeWindows")
        if self.size_ms <= 0:
            raise OptionError(f"TimeWindows: the size must be larger than zero, it is {self.size_ms} ms")
        self.grace_ms = _grace("TimeWindows", grace)
        self.advance_ms = self.size_ms if advance is None else duration_ms(advance, "advance of TimeWindows")
        if not 0 < self.advance_ms <= self.size_ms:
            raise OptionError(
                f"TimeWindows: an advance of {self.advance_ms} ms does not fit windows of {self.size_ms} ms",
                hint="it must be more than zero and at most the size",
            )

    def windows_for(self, timestamp: int) -> Iterator[TimeWindow]:
        if self.advance_ms == self.size_ms:
            start = timestamp - timestamp % self.size_ms
            return iter((TimeWindow(start, start + self.size_ms),))
        return self._hopping_windows_for(timestamp)

    def _hopping_windows_for(self, timestamp: int) -> Iterator[TimeWindow]:
        start = max(0, timestamp - self.size_ms + self.advance_ms) // self.advance_ms * self.advance_ms
        while start <= timestamp:
            yield TimeWindow(start, start + self.size_ms)
            start += self.advance_ms

    def __repr__(self) -> str:
        return f"TimeWindows(size={self.size_ms}, grace={self.grace_ms}, advance={self.advance_ms})"


class UnlimitedWindows(Windows):
    """One window from a start on, without end."""

    def __init__(self, start: int = 0) -> None:
        if start < 0:
            raise OptionError(f"UnlimitedWindows: the start cannot be negative, it is {start}")
        self.start = start
        self.size_ms = LONG_MAX
        self.grace_ms = 0

    def windows_for(self, timestamp: int) -> Iterator[TimeWindow]:
        if timestamp >= self.start:
            yield TimeWindow(self.start, LONG_MAX)

    def __repr__(self) -> str:
        return f"UnlimitedWindows(start={self.start})"


class SlidingWindows:
    """Windows [start, end], both inclusive, that hold records at most `difference` apart; only those that differ in content."""

    def __init__(self, difference: Duration, grace: Duration | _Missing = _MISSING) -> None:
        self.difference_ms = duration_ms(difference, "difference of SlidingWindows")
        self.grace_ms = _grace("SlidingWindows", grace)

    def __repr__(self) -> str:
        return f"SlidingWindows(difference={self.difference_ms}, grace={self.grace_ms})"


class SessionWindows:
    """Windows that grow as long as the next record comes within `gap`; a gap of 0 puts only equal timestamps together."""

    def __init__(self, gap: Duration, grace: Duration | _Missing = _MISSING) -> None:
        self.gap_ms = duration_ms(gap, "gap of SessionWindows")
        self.grace_ms = _grace("SessionWindows", grace)

    def __repr__(self) -> str:
        return f"SessionWindows(gap={self.gap_ms}, grace={self.grace_ms})"


class JoinWindows:
    """Which records of two streams meet: right ones at most `before` earlier and `after` later than the left one.

    A record that comes more than `grace` after its window has ended may find no partner any more.
    """

    def __init__(self, before: Duration, after: Duration, grace: Duration | _Missing = _MISSING) -> None:
        # One may be negative: `before=-5000, after=10000` meets what comes 5 to 10 seconds later.
        self.before_ms = duration_ms(before, "before of JoinWindows", may_be_negative=True)
        self.after_ms = duration_ms(after, "after of JoinWindows", may_be_negative=True)
        if self.size_ms < 0:
            raise OptionError(
                f"JoinWindows: before ({self.before_ms} ms) and after ({self.after_ms} ms) leave no time in which records meet",
                hint="one of them may be negative, but not their sum",
            )
        self.grace_ms = _grace("JoinWindows", grace)

    @property
    def size_ms(self) -> int:
        return self.before_ms + self.after_ms

    @property
    def retention_ms(self) -> int:
        """How long a record can find partners."""
        return self.size_ms + self.grace_ms

    def __repr__(self) -> str:
        return f"JoinWindows(before={self.before_ms}, after={self.after_ms}, grace={self.grace_ms})"
