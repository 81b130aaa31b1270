"""Asking again while the cluster does not answer, until a deadline, and saying so meanwhile. Used by admin.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec
import structlog

from streamfleet.kafka.client_errors import BrokerUnavailableError
from streamfleet.kafka.patience import MonotonicClock, PatientClock

log = structlog.get_logger(__name__)

T = TypeVar("T")

LONGEST_PAUSE_MS = 250
_FIRST_PAUSE_MS = 10


class WaitingForBroker(msgspec.Struct, frozen=True):
    """An attempt got no answer; another one follows."""

    doing: str
    attempt: int
    waited_ms: int
    left_ms: int
    detail: str


OnWaiting = Callable[[WaitingForBroker], None]


def log_waiting(event: WaitingForBroker) -> None:
    log.warning("waiting for the broker", doing=event.doing, waited_ms=event.waited_ms, detail=event.detail)


class BrokerPatience:
    """`timeout_ms` is for one question with all its attempts; `on_waiting` hears of every attempt in vain."""

    waits_for: str | None = None
    """What was asked and got no answer yet, as a person would say it; read by other threads."""

    def __init__(
        self, *, timeout_ms: int = 60_000, on_waiting: OnWaiting = log_waiting, clock: PatientClock | None = None
    ) -> None:
        self._timeout_ms = timeout_ms
        self._on_waiting = on_waiting
        self._clock = clock or MonotonicClock()

    def ask(self, doing: str, attempt_once: Callable[[int], T]) -> T:
        """The answer of `attempt_once(milliseconds left)`; its BrokerUnavailableErrors are outwaited until the deadline."""
        started_ms = self._clock.now_ms()
        attempt = 0
        while True:
            left_ms = self._timeout_ms - (self._clock.now_ms() - started_ms)
            try:
                answer = attempt_once(max(left_ms, 1))
                self.waits_for = None
                return answer
            except BrokerUnavailableError as error:
                attempt += 1
                waited_ms = self._clock.now_ms() - started_ms
                pause_ms = min(_FIRST_PAUSE_MS * 2**attempt, LONGEST_PAUSE_MS)
                if waited_ms + pause_ms >= self._timeout_ms:
                    raise BrokerUnavailableError(
                        f"{doing} got no answer within {self._timeout_ms} ms, in {attempt} attempts: {error.fact}",
                        code=error.code,
                        hint=error.hint,
                    ) from error
                if waited_ms >= LONGEST_PAUSE_MS:  # what is over in a moment is not worth a word
                    left_ms = self._timeout_ms - waited_ms
                    self._on_waiting(WaitingForBroker(doing, attempt, waited_ms, left_ms, error.fact))
                    self.waits_for = f"{doing}, for {waited_ms // 1000} s so far ({error.code})"
                self._clock.pause_ms(pause_ms)
