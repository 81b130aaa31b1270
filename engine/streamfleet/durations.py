"""Durations as users give them (a timedelta, or a number of milliseconds) turned into milliseconds, which is all that
the engine computes with.
"""

from __future__ import annotations

from datetime import timedelta

from streamfleet.errors import OptionError

Duration = timedelta | int
"""A timedelta, or a number of milliseconds."""

LONG_MAX = 2**63 - 1
"""The end of time: timestamps travel as 8 byte signed integers."""

_MILLISECOND = timedelta(milliseconds=1)


def duration_ms(value: Duration, what: str, *, may_be_negative: bool = False) -> int:
    """`what` names the argument in the error. Zero is fine; callers that need more say so themselves."""
    if isinstance(value, bool) or not isinstance(value, timedelta | int):
        raise OptionError(
            f"{what} must be a duration, got {value!r} ({type(value).__name__})",
            hint="give a timedelta or a whole number of milliseconds",
        )
    number = value // _MILLISECOND if isinstance(value, timedelta) else value
    if number < 0 and not may_be_negative:
        raise OptionError(f"{what} must not be negative, got {value!r}")
    if number > LONG_MAX:
        raise OptionError(f"{what} is too long, got {value!r}", hint=f"the longest duration is {LONG_MAX} ms")
    return number
