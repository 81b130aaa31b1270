"""What became of earlier decisions, and what that means for the next one. Pure; kept between decisions by reconcile/.

    what failed      the same number of slots is asked for again only after a pause, which doubles with every failure
    what succeeded   what it was expected to bring is compared with what it brought, once the group has settled

Both are forgotten with another revision, which may be the cure. What is compared is forgotten too when somebody changes the number
of slots, and when the app has caught up: then it was enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from pydantic import BaseModel, ConfigDict

from streamfleet_platform.model.quantities import duration_text
from streamfleet_platform.scaling.decision import Decision, is_behind
from streamfleet_platform.scaling.guards import Cause
from streamfleet_platform.scaling.measures import Bounds, LastScaleUp, Measures

FIRST_PAUSE = timedelta(minutes=2)
LONGEST_PAUSE = timedelta(hours=2)


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True)


class Growth(_Kept):
    """A scale-up, and what it is to bring, in records per second."""

    intent_id: str
    slots: int
    expected_gain: float
    rate_before: float
    measured_gain: float | None = None


class Failure(_Kept):
    """Attempts to get to one number of slots."""

    times: int
    until: datetime
    """Not before that once more."""
    why: str


class Outcome(_Kept):
    """How the operation of a decision ended."""

    intent_id: str
    slots: int
    failure: str | None = None
    """None: it succeeded."""


class Attempts(_Kept):
    """What is remembered of one app."""

    revision: str = ""
    asked: Growth | None = None
    """What the last decision asks for."""
    grown: Growth | None = None
    """What was done last."""
    failures: Mapping[int, Failure] = {}
    """By number of slots."""

    def of(self, revision: str) -> Attempts:
        return self if revision == self.revision else Attempts(revision=revision)

    def after(self, outcome: Outcome, now: datetime) -> Attempts:
        """A success forgives all failures: slots can be had again."""
        if outcome.failure is None:
            grown = self.asked if self.asked is not None and self.asked.intent_id == outcome.intent_id else None
            return self.model_copy(update={"asked": None, "grown": grown, "failures": {}})
        former = self.failures.get(outcome.slots)
        times = 1 if former is None else former.times + 1
        pause = min(FIRST_PAUSE * 2 ** min(times - 1, 30), LONGEST_PAUSE)
        failure = Failure(times=times, until=now + pause, why=outcome.failure)
        return self.model_copy(update={"asked": None, "failures": {**self.failures, outcome.slots: failure}})

    def measured(self, measures: Measures, bounds: Bounds, rate: float | None, now: datetime) -> Attempts:
        """`rate`: records per second that the app processes, over the last minute or so."""
        grown = self.grown
        if grown is None:
            return self
        if len(measures.placement) != grown.slots:
            return self.model_copy(update={"grown": None})
        since = measures.stable_since
        if since is None or (now - since).total_seconds() < bounds.settle_seconds:
            return self
        if not is_behind(measures, bounds):
            return self.model_copy(update={"grown": None})
        if rate is None:
            return self
        most = max(
            grown.measured_gain or 0.0, rate - grown.rate_before
        )  # caches may take longer to warm than the group to settle
        gained = grown.model_copy(update={"measured_gain": most})
        return self.model_copy(update={"grown": gained})

    @property
    def last_scale_up(self) -> LastScaleUp | None:
        if self.grown is None or self.grown.measured_gain is None:
            return None
        return LastScaleUp(self.grown.expected_gain, self.grown.measured_gain)

    def asking(self, intent_id: str, decided: Decision, rate: float | None) -> Attempts:
        """What a decision that may be acted on is to bring. The same intent keeps what it was first expected to."""
        if self.asked is not None and self.asked.intent_id == intent_id:
            return self
        if decided.action != "up" or rate is None:
            return self if self.asked is None else self.model_copy(update={"asked": None})
        growth = Growth(intent_id=intent_id, slots=decided.slots, expected_gain=decided.expected_gain, rate_before=rate)
        return self.model_copy(update={"asked": growth})

    def backed_off(self, decided: Decision, current: int, now: datetime) -> Decision:
        """The decision, or none while what it asks for has failed not long ago."""
        failure = self.failures.get(decided.slots)
        if decided.action == "hold" or failure is None or now >= failure.until:
            return decided
        left = duration_text((failure.until - now) / timedelta(milliseconds=1))
        attempts = "once" if failure.times == 1 else f"{failure.times} times"
        why = (
            f"getting to {decided.slots} slots failed {attempts}, and is tried again in {left}: {failure.why}; "
            f"what asks for it: {decided.reason}"
        )
        return replace(decided, action="hold", slots=current, cause=Cause.BACKING_OFF, reason=why, is_advice=False)
