"""Where the log cleaner will begin: the first dirty offset of a partition, as far as the log itself tells. Pure.

Cleaning leaves holes: inside a batch, or between batches. So the cleaned part reaches at least to the end of the last batch with
holes (low). In it every key occurs once, and the active segment is never cleaned, so it ends at the first repeated key or the
active segment's base at the latest (high). The cleaner stops at borders of segments: if one lies in [low, high], it is that.
Transaction markers are batches of their own, and no holes; a consumer does not see them, which is why its gaps prove nothing
where writers are transactional.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from streamfleet_jobs.kafka.raw_log import RawLog

Certainty = Literal["exact", "bracket", "unknown", "irregular"]

_NOTHING_SEEN = "nothing was cleaned and no key repeats: there is nothing to see"


class FirstDirty(msgspec.Struct, frozen=True):
    """`low` <= first dirty offset <= `high`. unknown: nothing repeated and nothing cleaned was seen, or it could not be read.
    irregular: keys repeat where holes say it is clean; then neither bound holds.
    """

    certainty: Certainty
    low: int
    high: int
    why: str

    @property
    def offset(self) -> int | None:
        """One number to go on with: exact, or the cautious end of a bracket (less is called dirty)."""
        if self.certainty == "exact":
            return self.low
        return self.high if self.certainty == "bracket" else None


def from_raw_log(log: RawLog, start: int, first_repeat: int | None, *, keys_read: bool = True) -> FirstDirty:
    """Without keys (a quick audit) only holes and borders tell."""
    low, expected = start, start
    for batch in log.batches:
        if batch.has_holes:
            low = batch.last + 1
        elif batch.base > expected:
            low = batch.base
        expected = batch.last + 1
    high = log.active_base if first_repeat is None else min(first_repeat, log.active_base)
    if low > high:
        return FirstDirty("irregular", low, high, "keys repeat before the last hole in the log")
    candidates = [base for base in log.segments if low <= base <= high]
    if len(candidates) == 1:
        return FirstDirty(
            "exact", candidates[0], candidates[0], "the only segment border that fits holes and repeated keys"
        )
    if low == start and first_repeat is None:
        return FirstDirty(
            "unknown", low, high, _NOTHING_SEEN if keys_read else "nothing was cleaned, and no key was read"
        )
    ends = (candidates[0], candidates[-1]) if candidates else (low, high)
    return FirstDirty("bracket", *ends, f"{len(candidates)} segment borders fit holes and repeated keys")


def from_consumer(
    ends: tuple[int, int], last_gap: int | None, first_repeat: int | None, guarantee: str, *, keys_read: bool = True
) -> FirstDirty:
    """Without batch headers: gaps between consumed offsets, which mean cleaning only where no writer is transactional."""
    start, end = ends
    if not keys_read:
        return FirstDirty("unknown", start, end, "neither batch headers nor keys were read")
    if guarantee != "at_least_once":
        return FirstDirty(
            "unknown", start, end, "batch headers could not be read, and transactions leave gaps of their own"
        )
    low, high = start if last_gap is None else last_gap, end if first_repeat is None else first_repeat
    if low > high:
        return FirstDirty("irregular", low, high, "keys repeat before the last gap in the offsets")
    if last_gap is None and first_repeat is None:
        return FirstDirty("unknown", low, high, _NOTHING_SEEN)
    return FirstDirty("bracket", low, high, "from gaps between consumed offsets; batch headers could not be read")
