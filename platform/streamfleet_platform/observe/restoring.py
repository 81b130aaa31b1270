"""How fast an app's tasks restore, as workers say while they do so, remembered for when nothing restores. Used by door_observer.py.

Workers count records, a price is in bytes: what a record takes is what the stores have on disk per record of their changelogs. An
estimate; it is better than a constant, and says so by being used as one bound of several.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamfleet_platform.observe.looks import Status

_WEIGHT = 0.3
"""Of a new rate, against those before: a restore begins slowly."""


class RestoreRates:
    """Records per second of one restoring task, by app. Used by one thread."""

    def __init__(self) -> None:
        self._known: dict[str, float] = {}

    def look(self, app: str, statuses: Mapping[int, Status]) -> float | None:
        """As of now; None: nothing was seen to restore yet."""
        now = [rate for status in statuses.values() for rate in _rates(status)]
        if now:
            rate, former = sum(now) / len(now), self._known.get(app)
            self._known[app] = rate if former is None else former + _WEIGHT * (rate - former)
        return self._known.get(app)


def _rates(status: Status) -> Iterator[float]:
    for thread in status["threads"]:
        places: list[Mapping[str, Any]] = [task["restore"] for task in thread["tasks"] if task["restore"]]
        places += [copy for copy in thread["standbys"] if copy["lag_records"]]
        yield from (float(place["records_per_second"]) for place in places if place.get("records_per_second"))


def bytes_per_second(rate: float | None, store_bytes: int, changelog_records: int, copies: int) -> float | None:
    """`copies` of every store are on disk, the owner's among them."""
    if rate is None or not store_bytes or not changelog_records:
        return None
    return rate * store_bytes / copies / changelog_records
