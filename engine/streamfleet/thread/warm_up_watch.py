"""WarmUpWatch: when a member asks the group for a rebalance because its warm-ups have caught up. Asked by StreamThread.

Once for every plan. The leader looks for itself, and may find that they have fallen behind again meanwhile, where more is written
than `acceptable.recovery.lag` in the time that a rebalance takes; so as long as the warm-ups stay the same, each request waits
longer than the one before.
"""

from __future__ import annotations

from streamfleet.changelog.progress import UpdateKind
from streamfleet.config import StreamsConfig
from streamfleet.ids import TaskId
from streamfleet.thread.standby_manager import StandbyManager

FIRST_PAUSE_MS = 5_000


class WarmUpWatch:
    def __init__(self, config: StreamsConfig) -> None:
        self._is_on = config.probing_when_caught_up
        self._acceptable_lag = config.acceptable_recovery_lag
        self._longest_pause_ms = config.probing_rebalance_interval_ms
        self._warmups: frozenset[TaskId] = frozenset()
        self._pause_ms = FIRST_PAUSE_MS
        self._next_ms: int | None = None
        self._has_asked = False

    def on_plan(self) -> None:
        self._has_asked = False

    def is_due(self, standbys: StandbyManager, now_ms: int) -> bool:
        """Whether to ask now; if so, it was asked."""
        if not self._is_on or self._has_asked:
            return False
        warmups = frozenset(task_id for task_id, kind in standbys.wanted.items() if kind is UpdateKind.WARMUP)
        if warmups != self._warmups:
            self._warmups, self._pause_ms, self._next_ms = warmups, FIRST_PAUSE_MS, None
        if self._next_ms is not None and now_ms < self._next_ms:
            return False
        if not standbys.are_warm(self._acceptable_lag):
            return False
        self._has_asked = True
        self._next_ms = now_ms + self._pause_ms
        self._pause_ms = min(2 * self._pause_ms, self._longest_pause_ms)
        return True
