"""Schedules in cron's five fields (minute, hour, day of month, month, day of week), in UTC: `0 3 * * *`.

A field is `*`, a number, a range `1-5`, a list of those, each with an optional step `/n`. Days of the week count from
Sunday, 0 or 7. As in cron, when both days are restricted either of them is enough.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
_PART = re.compile(r"(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:/(\d{1,2}))?")
_DAY = timedelta(days=1)
_SEARCHED_DAYS = 12 * 366
"""A date falls on the same day of the week again within eleven years, 29 February comes round within eight."""


@dataclass(frozen=True)
class Cron:
    """The minutes at which something begins."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool

    @classmethod
    def parse(cls, text: str) -> Cron:
        """ValueError says what is wrong."""
        fields = text.split()
        if len(fields) != len(_FIELDS):
            raise ValueError(f"a schedule has 5 fields, this one has {len(fields)}")
        minutes, hours, days, months, weekdays = (
            _values(field, *bounds) for field, bounds in zip(fields, _FIELDS, strict=True)
        )
        return cls(
            minutes=minutes,
            hours=hours,
            days=days,
            months=months,
            weekdays=frozenset(day % 7 for day in weekdays),
            any_day=fields[2].startswith("*"),
            any_weekday=fields[4].startswith("*"),
        )

    def latest(self, now: datetime) -> datetime | None:
        """The last beginning at or before now; None if there is none within twelve years."""
        now = now.astimezone(UTC)
        times = sorted((hour, minute) for hour in self.hours for minute in self.minutes)
        day = now.replace(hour=0, minute=0, second=0, microsecond=0)
        for back in range(_SEARCHED_DAYS):
            candidate = day - back * _DAY
            if not self._is_on(candidate):
                continue
            for hour, minute in reversed(times):
                begins = candidate.replace(hour=hour, minute=minute)
                if begins <= now:
                    return begins
        return None

    def _is_on(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return in_month and in_week
        return in_month or in_week


def _values(field: str, name: str, low: int, high: int) -> frozenset[int]:
    values: set[int] = set()
    for part in field.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is no {name}")
        first = low if match[1] is None else int(match[1])
        last = int(match[2]) if match[2] else (high if match[1] is None or match[3] else first)
        step = int(match[3] or 1)
        if not low <= first <= last <= high or step == 0:
            raise ValueError(f"{part!r} is no {name}: they go from {low} to {high}")
        values.update(range(first, last + 1, step))
    return frozenset(values)
