"""DiskWait: whether the tasks of a StreamThread wait for room on the disk, and when to look again. Asked by StreamThread.

A database that could not write stays broken until it is opened again, and opening it on a full disk would fill what is left. So
its tasks stay closed, and the directory is asked now and then whether it takes a file of the size of a write buffer.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from streamfleet.clock import Clock
from streamfleet.errors import DiskFullError

log = structlog.get_logger(__name__)

FIRST_PAUSE_MS = 1_000
LONGEST_PAUSE_MS = 30_000


class DiskWait:
    def __init__(self, thread: str, has_room: Callable[[], bool], clock: Clock) -> None:
        self._thread = thread
        self._has_room = has_room
        self._clock = clock
        self._pause_ms = FIRST_PAUSE_MS
        self._paused_at_ms = 0
        self._ended_at_ms: int | None = None
        self.reason: str | None = None
        """What could not be written, and where; None while nothing waits."""

    def begin(self, error: DiskFullError) -> None:
        """Say it once; a disk that fills up again right after it had room is asked less and less often."""
        now_ms = self._clock.monotonic_ms()
        is_same_trouble = self._ended_at_ms is not None and now_ms - self._ended_at_ms < LONGEST_PAUSE_MS
        self._pause_ms = min(2 * self._pause_ms, LONGEST_PAUSE_MS) if is_same_trouble else FIRST_PAUSE_MS
        self._paused_at_ms = now_ms
        self.reason = error.fact
        log.error("disk is full, tasks wait for room", thread=self._thread, error=str(error))

    def is_over(self) -> bool:
        """Whether tasks may be opened; looks at the disk if it is time to."""
        if self.reason is None:
            return True
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._paused_at_ms < self._pause_ms:
            return False
        if not self._has_room():
            self._paused_at_ms = now_ms
            self._pause_ms = min(2 * self._pause_ms, LONGEST_PAUSE_MS)
            return False
        log.info("disk has room again, tasks are opened", thread=self._thread)
        self.reason, self._ended_at_ms = None, now_ms
        return True
