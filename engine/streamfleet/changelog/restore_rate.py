"""RestoreRate: how many bytes of changelogs a process may read per second. One for all StateUpdaters of a process.

A batch is paid for after it was read, since nobody knows its size before: the next one waits until the debt is gone. So the mean
holds exactly, and a short burst is as large as a batch, which is made small enough for that. May be changed at any time, from any
thread.
"""

from __future__ import annotations

import threading

from streamfleet.kafka.patience import PatientClock

BATCH_SECONDS = 0.2
"""How much of the rate one batch may take."""
FIRST_GUESS_BYTES = 1000
"""Of a record, until some have been seen."""


class RestoreRate:
    """`bytes_per_second` 0: no limit."""

    def __init__(self, clock: PatientClock, bytes_per_second: int = 0) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._bytes_per_second = bytes_per_second
        self._debt_bytes = 0.0
        self._record_bytes = float(FIRST_GUESS_BYTES)
        self._at_ms = clock.now_ms()

    @property
    def bytes_per_second(self) -> int:
        return self._bytes_per_second

    def change(self, bytes_per_second: int) -> None:
        """What was read so far was paid for at the old rate."""
        with self._lock:
            self._settle()
            self._bytes_per_second = bytes_per_second
            self._debt_bytes = 0.0

    def pay(self, records: int, size_bytes: int) -> None:
        with self._lock:
            self._settle()
            self._record_bytes = max(1.0, size_bytes / records)
            if self._bytes_per_second:
                self._debt_bytes += size_bytes

    def batch_records(self, most: int) -> int:
        """How many records to read at once."""
        with self._lock:
            if not self._bytes_per_second:
                return most
            return max(1, min(most, int(self._bytes_per_second * BATCH_SECONDS / self._record_bytes)))

    def wait_ms(self) -> int:
        """How long until the next batch may be read; 0: now."""
        with self._lock:
            self._settle()
            if not self._bytes_per_second or self._debt_bytes <= 0:
                return 0
            return max(1, round(self._debt_bytes * 1000 / self._bytes_per_second))

    def _settle(self) -> None:
        now_ms = self._clock.now_ms()
        paid_bytes = (now_ms - self._at_ms) * self._bytes_per_second / 1000
        self._debt_bytes = max(0.0, self._debt_bytes - paid_bytes)
        self._at_ms = now_ms
