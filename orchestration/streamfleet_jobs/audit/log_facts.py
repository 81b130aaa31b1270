"""LogFacts: what the batches of one partition add up to, from their headers alone. Pure; read by the rules.

Bytes here are those of the log, compressed: the cleaner's ratio is of these.
"""

from __future__ import annotations

import msgspec

from streamfleet_jobs.audit.first_dirty import FirstDirty
from streamfleet_jobs.kafka.raw_log import Batch, RawLog


class LogFacts(msgspec.Struct, frozen=True):
    partition: int
    records: int
    """Markers left out; aborted records are in it."""
    log_bytes: int
    segments: int
    active_base: int
    first_dirty: FirstDirty
    clean_bytes: int | None
    cleanable_bytes: int | None
    """From the first dirty offset to the active segment; None: unknown."""
    oldest_cleanable_ms: int | None
    overdue: tuple[tuple[int, int], ...]
    """Offsets of batches whose tombstones may be gone since a while."""
    overdue_since_ms: int | None
    transactional: bool

    @property
    def dirty_ratio(self) -> float | None:
        """As the cleaner computes it."""
        if self.clean_bytes is None or self.cleanable_bytes is None:
            return None
        whole = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / whole if whole else 0.0


def log_facts(partition: int, log: RawLog, first_dirty: FirstDirty, now_ms: int) -> LogFacts:
    dirty_from, active = first_dirty.offset, log.active_base
    cleanable = [] if dirty_from is None else [b for b in log.batches if dirty_from <= b.base < active]
    data = [batch for batch in log.batches if not batch.is_control]
    overdue = [
        b
        for b in data
        if b.delete_horizon_ms is not None and b.delete_horizon_ms < now_ms and b.base < active and b.count
    ]
    return LogFacts(
        partition=partition,
        records=sum(batch.count for batch in data),
        log_bytes=sum(batch.size for batch in log.batches),
        segments=len(log.segments),
        active_base=active,
        first_dirty=first_dirty,
        clean_bytes=None if dirty_from is None else sum(b.size for b in log.batches if b.base < dirty_from),
        cleanable_bytes=None if dirty_from is None else sum(batch.size for batch in cleanable),
        oldest_cleanable_ms=cleanable[0].max_timestamp if cleanable else None,
        overdue=_merged(overdue),
        overdue_since_ms=min((b.delete_horizon_ms for b in overdue if b.delete_horizon_ms is not None), default=None),
        transactional=any(batch.is_transactional for batch in log.batches),
    )


def _merged(batches: list[Batch]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for batch in batches:
        if merged and merged[-1][1] + 1 == batch.base:
            merged[-1] = (merged[-1][0], batch.last)
        else:
            merged.append((batch.base, batch.last))
    return tuple(merged)
