"""Where librdkafka's own log lines go: a standard logger, one line of a kind per half minute.

Given to every client as `logger`. Without it librdkafka writes to stderr, and a client whose broker is away repeats
itself twenty times a second. Lines arrive when the client is polled, so every adapter polls.
"""

from __future__ import annotations

import logging
import re

from streamfleet.kafka.patience import MonotonicClock, PatientClock

REPEAT_AFTER_MS = 30_000

_CHANGING = re.compile(r"\d+")


class SayOnce(logging.Filter):
    """Drops a line if one like it, numbers aside, has passed lately."""

    def __init__(self, clock: PatientClock) -> None:
        super().__init__()
        self._clock = clock
        self._last_ms: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind, now = _CHANGING.sub("#", record.getMessage()), self._clock.now_ms()
        if now - self._last_ms.get(kind, now - REPEAT_AFTER_MS) < REPEAT_AFTER_MS:
            return False
        if len(self._last_ms) > 1000:
            self._last_ms.clear()
        self._last_ms[kind] = now
        return True


client_logger = logging.getLogger("streamfleet.kafka.librdkafka")
client_logger.addFilter(SayOnce(MonotonicClock()))
