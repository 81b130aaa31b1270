"""WarmUpWatch: when a member asks the group for a rebalance because warm-ups have caught up. Asked by StreamThread.

As soon as one of them has, whatever the others still have to do; those that follow it closely go together. Once for every plan.
The leader looks for itself, and may find that they have fallen behind again meanwhile, where more is written than
`acceptable.recovery.lag` in the time that a rebalance takes; so as long as no other warm-up catches up, each request waits longer
than the one before. One that falls behind and catches up again is not another one.
"""

from __future__ import annotations

from streamfleet.config import StreamsConfig
from streamfleet.ids import TaskId
from streamfleet.thread.standby_manager import StandbyManager

FIRST_PAUSE_MS = 5_000
TOGETHER_MS = 1_000
"""Between two requests while other warm-ups are still on their way."""


class WarmUpWatch:
    def __init__(self, config: StreamsConfig) -> None:
        self._is_on = config.probing_when_caught_up
        self._acceptable_lag = config.acceptable_recovery_lag
        self._longest_pause_ms = config.probing_rebalance_interval_ms
        self._told: frozenset[TaskId] = frozenset()
        """Warm-ups of which the group has been told that they have caught up."""
        self._pause_ms = FIRST_PAUSE_MS
        self._asked_ms: int | None = None
        self._has_asked = False

    def on_plan(self) -> None:
        self._has_asked = False

    def is_due(self, standbys: StandbyManager, now_ms: int) -> bool:
        """Whether to ask now; if so, it was asked."""
        self._told &= standbys.warm_ups
        if not self._is_on or self._has_asked or not standbys.warm_ups:
            return False
        warm = standbys.warm(self._acceptable_lag)
        has_grown = not warm <= self._told
        if not warm or not self._has_waited(has_grown, is_complete=warm == standbys.warm_ups, now_ms=now_ms):
            return False
        self._pause_ms = FIRST_PAUSE_MS if has_grown else min(2 * self._pause_ms, self._longest_pause_ms)
        self._told |= warm
        self._asked_ms = now_ms
        self._has_asked = True
        return True

    def _has_waited(self, has_grown: bool, *, is_complete: bool, now_ms: int) -> bool:
        if self._asked_ms is None or (has_grown and is_complete):
            return True
        return now_ms >= self._asked_ms + (TOGETHER_MS if has_grown else self._pause_ms)
