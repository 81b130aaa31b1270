"""What apps have processed lately, in records per second: the mean of a minute's looks. Used by recording.py.

One look says little: positions move in batches. In memory: a new server begins anew.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

WINDOW = timedelta(seconds=60)


class RecentRates:
    """All apps of a fleet. Used by one thread."""

    def __init__(self) -> None:
        self._looks: dict[str, deque[tuple[datetime, float]]] = {}

    def add(self, app: str, at: datetime, rate: float | None) -> None:
        looks = self._looks.setdefault(app, deque())
        if rate is not None and (not looks or at > looks[-1][0]):
            looks.append((at, rate))
        while looks and looks[0][0] <= at - WINDOW:
            looks.popleft()

    def of(self, app: str) -> float | None:
        """None: it was not seen yet."""
        looks = self._looks.get(app)
        return sum(rate for _, rate in looks) / len(looks) if looks else None

    def forget(self, app: str) -> None:
        self._looks.pop(app, None)
