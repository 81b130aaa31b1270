"""Summary: what a StreamThread has done, in one line of the log now and then. Asked by StreamThread after its steps."""

from __future__ import annotations

import structlog

from streamfleet.metrics import ThreadCounts

log = structlog.get_logger(__name__)


class Summary:
    """`interval_ms` below zero: nothing is said."""

    def __init__(self, thread: str, counts: ThreadCounts, interval_ms: int, now_ms: int) -> None:
        self._thread = thread
        self._counts = counts
        self._interval_ms = interval_ms
        self._said_ms = now_ms
        self._said = self._totals()

    def say_if_due(self, now_ms: int, tasks: int) -> None:
        since_ms = now_ms - self._said_ms
        if self._interval_ms < 0 or 0 <= since_ms < self._interval_ms:
            return
        before, self._said, self._said_ms = self._said, self._totals(), now_ms
        done = {name: total - before[name] for name, total in self._said.items()}
        log.info("summary", thread=self._thread, seconds=round(since_ms / 1000, 1), tasks=tasks, **done)

    def _totals(self) -> dict[str, int]:
        counts = self._counts
        return {
            "processed_records": sum(list(counts.processed_records.values())),
            "commits": counts.commit_latency.count,
            "restored_records": counts.restored_records,
            "rebalances": counts.rebalances,
        }
