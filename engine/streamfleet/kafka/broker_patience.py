"""Asking again while the cluster does not answer, until a deadline. Used by admin.py; outage.py says that it is so."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from streamfleet.kafka.client_errors import BrokerUnavailableError
from streamfleet.kafka.outage import Outage
from streamfleet.kafka.patience import MonotonicClock, PatientClock

T = TypeVar("T")

LONGEST_PAUSE_MS = 250
_FIRST_PAUSE_MS = 10


class BrokerPatience:
    """`timeout_ms` is for one question with all its attempts; `outage` hears of those in vain."""

    waits_for: str | None = None
    """What was asked and got no answer yet, as a person would say it; read by other threads."""

    def __init__(
        self, *, timeout_ms: int = 60_000, outage: Outage | None = None, clock: PatientClock | None = None
    ) -> None:
        self._timeout_ms = timeout_ms
        self._clock = clock or MonotonicClock()
        self._outage = outage or Outage(clock=self._clock)

    def ask(self, doing: str, attempt_once: Callable[[int], T]) -> T:
        """The answer of `attempt_once(milliseconds left)`; its BrokerUnavailableErrors are outwaited until the deadline."""
        question = object()
        try:
            answer = self._ask(question, doing, attempt_once)
        except BaseException:
            self._outage.gives_up(question)
            raise
        self.waits_for = None
        self._outage.answers(question)
        return answer

    def _ask(self, question: object, doing: str, attempt_once: Callable[[int], T]) -> T:
        started_ms = self._clock.now_ms()
        attempt = 0
        while True:
            left_ms = self._timeout_ms - (self._clock.now_ms() - started_ms)
            try:
                return attempt_once(max(left_ms, 1))
            except BrokerUnavailableError as error:
                attempt += 1
                waited_ms = self._clock.now_ms() - started_ms
                pause_ms = min(_FIRST_PAUSE_MS * 2**attempt, LONGEST_PAUSE_MS)
                if waited_ms >= LONGEST_PAUSE_MS:  # what is over in a moment is not worth a word
                    self._outage.silent(question, doing, error.fact, waited_ms=waited_ms)
                    self.waits_for = f"{doing}, for {waited_ms // 1000} s so far ({error.code})"
                if waited_ms + pause_ms >= self._timeout_ms:
                    raise BrokerUnavailableError(
                        f"{doing} got no answer within {self._timeout_ms} ms, in {attempt} attempts: {error.fact}",
                        code=error.code,
                        hint=error.hint,
                    ) from error
                self._clock.pause_ms(pause_ms)
