"""WarmUpWatch: when a member asks the group for a rebalance because warm-ups have caught up. Asked by StreamThread.

As soon as one of them has, whatever the others still have to do; those that follow it closely go together. Once for every plan.
The leader looks for itself, and may find that one has fallen behind again meanwhile:

- A rebalance begins with a commit of every task. At least once, with deduplicated changelogs, that is when they write all that they
  held back, after the warm-up has said how far it is. So as soon as a warm-up has read that, it is asked for again: what was
  written since is only what came while it read. And so on, as long as there is less each time: half of it at most, so that it ends.
- Where more is written than `acceptable.recovery.lag` in the time that a rebalance takes, asking at once does not help. So as long
  as no other warm-up catches up, each request then waits longer than the one before. One that falls behind and catches up again is
  not another one.
"""

from __future__ import annotations

from collections.abc import Mapping

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
        self._told: dict[TaskId, int] = {}
        """Warm-ups of which the group has been told that they have caught up, and how much of its changelogs each had then."""
        self._most_to_read: int | None = None
        """What a warm-up may have read since, to be asked for again at once; None: any number."""
        self._pause_ms = FIRST_PAUSE_MS
        self._asked_ms: int | None = None
        self._has_asked = False

    def on_plan(self) -> None:
        self._has_asked = False

    def is_due(self, standbys: StandbyManager, now_ms: int) -> bool:
        """Whether to ask now; if so, it was asked."""
        self._told = {task_id: has for task_id, has in self._told.items() if task_id in standbys.warm_ups}
        if not self._is_on or self._has_asked or not standbys.warm_ups:
            return False
        warm = standbys.warm(self._acceptable_lag)
        if not warm:
            return False
        has_grown = not warm.keys() <= self._told.keys()
        is_complete = warm.keys() == standbys.warm_ups
        has_read = max((has - self._told[task_id] for task_id, has in warm.items() if task_id in self._told), default=0)
        if self._has_waited(has_grown, is_complete=is_complete, now_ms=now_ms):
            self._pause_ms = FIRST_PAUSE_MS if has_grown else min(2 * self._pause_ms, self._longest_pause_ms)
            self._most_to_read = None
        elif self._has_read_a_commit(has_read):
            self._most_to_read = has_read // 2
        else:
            return False
        self._note(warm, now_ms)
        return True

    def _has_waited(self, has_grown: bool, *, is_complete: bool, now_ms: int) -> bool:
        if self._asked_ms is None or (has_grown and is_complete):
            return True
        return now_ms >= self._asked_ms + (TOGETHER_MS if has_grown else self._pause_ms)

    def _has_read_a_commit(self, has_read: int) -> bool:
        """Whether a warm-up has read what kept the leader from moving it: it was more than is acceptable, or it had been moved."""
        return has_read > self._acceptable_lag and (self._most_to_read is None or has_read <= self._most_to_read)

    def _note(self, warm: Mapping[TaskId, int], now_ms: int) -> None:
        self._told |= warm
        self._asked_ms = now_ms
        self._has_asked = True
