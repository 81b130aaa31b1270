"""Outage: whether the brokers answer, as all clients of one app in this process see it together.

Whoever asks a broker tells it what comes of that: admin clients, coordinator lines, StreamThreads, StateUpdaters. It says so once
when the first of them gets no answer, and once when the last of them has one again; every attempt between the two is for debugging.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable

import structlog

from streamfleet.kafka.patience import MonotonicClock, PatientClock
from streamfleet.metrics import OutageCounts

log = structlog.get_logger(__name__)


class Outage:
    """May be told by any thread. Who asks a broker is known by any value that is its own."""

    def __init__(self, counts: OutageCounts | None = None, clock: PatientClock | None = None) -> None:
        self._counts = counts or OutageCounts()
        self._clock = clock or MonotonicClock()
        self._lock = threading.Lock()
        self._since_ms: int | None = None
        self._unanswered: set[Hashable] = set()

    def silent(self, who: Hashable, doing: str, detail: str, *, waited_ms: int = 0) -> None:
        """`who` got no answer, for so long by now, and asks again."""
        with self._lock:
            self._unanswered.add(who)
            now_ms = self._clock.now_ms()
            if self._since_ms is not None:
                log.debug("broker still does not answer", doing=doing, waited_ms=waited_ms, detail=detail)
                return
            self._since_ms = now_ms - waited_ms
            self._counts.begin(waited_ms / 1000)
            log.warning("broker does not answer", doing=doing, waited_ms=waited_ms, detail=detail)

    def answers(self, who: Hashable) -> None:
        """`who` has an answer. It is over if nobody else waits for one."""
        if not self._is_on:  # as nearly always; a look without the lock is enough
            return
        with self._lock:
            self._unanswered.discard(who)
            if self._since_ms is None or self._unanswered:
                return
            away_ms, self._since_ms = self._clock.now_ms() - self._since_ms, None
            self._counts.end()
            log.warning("broker answers again", away_ms=away_ms)

    @property
    def _is_on(self) -> bool:
        return self._since_ms is not None

    def gives_up(self, who: Hashable) -> None:
        """`who` asks no more, and knows nothing of the broker: the next answer that anybody has will tell."""
        with self._lock:
            self._unanswered.discard(who)
