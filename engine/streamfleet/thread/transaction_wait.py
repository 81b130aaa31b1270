"""TransactionWait: how soon a StreamThread begins again after it has lost a transaction, and how often. Asked by StreamThread.

One is lost now and then: a coordinator moves, a record is refused. Then the tasks go on at once. What is lost again and again, with
nothing committed in between, has a cause that does not go away by itself, and every attempt costs the cluster a new producer: so
each waits longer than the one before, and in the end the thread fails with what it was told last.
"""

from __future__ import annotations

from streamfleet.clock import Clock
from streamfleet.errors import StreamsError

FIRST_PAUSE_MS = 100
LONGEST_PAUSE_MS = 5_000


class TransactionWait:
    """A loss belongs to those before it unless there was a commit between them, or nothing for `quiet_ms`: no transaction is open
    for that long, so the tasks had nothing to commit.
    """

    def __init__(self, clock: Clock, *, timeout_ms: int, quiet_ms: int) -> None:
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._quiet_ms = quiet_ms
        self._since_ms: int | None = None
        self._lost_at_ms = 0
        self._pause_ms = 0

    def begin(self, error: StreamsError) -> None:
        """A transaction was lost. Raises the error if that has gone on for the time-out of a task."""
        now_ms = self._clock.monotonic_ms()
        if self._since_ms is None or now_ms - self._lost_at_ms > self._pause_ms + self._quiet_ms:
            self._since_ms, self._pause_ms = now_ms, 0
        elif now_ms - self._since_ms >= self._timeout_ms:
            raise error
        else:
            self._pause_ms = min(max(FIRST_PAUSE_MS, 2 * self._pause_ms), LONGEST_PAUSE_MS)
        self._lost_at_ms = now_ms

    def is_over(self) -> bool:
        """Whether the tasks may begin again."""
        return self._since_ms is None or self._clock.monotonic_ms() - self._lost_at_ms >= self._pause_ms

    def end(self) -> None:
        """Something was committed."""
        self._since_ms = None
