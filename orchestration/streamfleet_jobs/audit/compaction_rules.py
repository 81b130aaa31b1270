"""Rules about cleaning: what compaction should have removed, tombstones past their time, what is live. Pure; for rules.py."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from streamfleet_jobs.audit.findings import Finding, Severity, counted, size
from streamfleet_jobs.audit.first_dirty import FirstDirty
from streamfleet_jobs.audit.log_facts import LogFacts
from streamfleet_jobs.audit.spec import AuditSpec
from streamfleet_jobs.audit.store_facts import StoreFacts, store_finding

_BROKERS = "look at the brokers' log cleaner: uncleanable partitions, dead threads"


def compaction_findings(spec: AuditSpec, facts: StoreFacts) -> Iterator[Finding]:
    for number in facts.pin.partitions:
        yield from _redundancy(spec, facts, number)
        yield from _tombstones(spec, facts, number)
    yield from _live_keys(spec, facts)


def _wanted_ratio(facts: StoreFacts) -> float:
    return float(facts.pin.configs.get("min.cleanable.dirty.ratio", "0.5"))


def _redundancy(spec: AuditSpec, facts: StoreFacts, number: int) -> Iterator[Finding]:
    """redundancy: superseded records in closed segments, which compaction should have removed."""
    keys, log, limits = facts.keys.get(number), facts.logs.get(number), spec.thresholds
    if keys is None or log is None or keys.closed_bytes < max(limits.min_bytes, 1):
        return
    share = keys.closed_superseded_bytes / keys.closed_bytes
    if share <= limits.redundancy:
        return
    why, advice = _why_redundant(log.dirty_ratio, _wanted_ratio(facts))
    yield store_finding(
        spec,
        facts,
        "redundancy",
        "warning",
        f"{share:.0%} of {size(keys.closed_bytes)} in closed segments is superseded ({_place(log.first_dirty)}): {why}",
        advice,
        partition=number,
        share=round(share, 4),
        threshold=limits.redundancy,
        dirty_ratio=_rounded(log),
        first_dirty=msgspec.to_builtins(log.first_dirty),
    )


def _why_redundant(ratio: float | None, wanted: float) -> tuple[str, str]:
    if ratio is None:
        return "whether the cleaner is asked to is unknown", _BROKERS
    if ratio < wanted:
        return "the cleaner is not asked yet", f"lower min.cleanable.dirty.ratio (now {wanted:g})"
    return "the cleaner is behind or stuck", _BROKERS


def _place(dirty: FirstDirty) -> str:
    if dirty.certainty == "exact":
        return f"first dirty offset {dirty.low}, exact"
    if dirty.certainty == "bracket":
        return f"first dirty offset between {dirty.low} and {dirty.high}"
    return f"first dirty offset {dirty.certainty}: {dirty.why}"


def _rounded(log: LogFacts) -> float | None:
    return None if log.dirty_ratio is None else round(log.dirty_ratio, 4)


def _tombstones(spec: AuditSpec, facts: StoreFacts, number: int) -> Iterator[Finding]:
    """overdue_tombstones: past their delete horizon, and still there."""
    log, overdue = facts.logs.get(number), facts.overdue_tombstones.get(number, 0)
    if log is None or overdue == 0:
        return
    cause, why, advice = _why_overdue(log.dirty_ratio, _wanted_ratio(facts))
    severity: Severity = "warning" if overdue >= spec.thresholds.overdue_tombstones else "info"
    yield store_finding(
        spec,
        facts,
        "overdue_tombstones",
        severity,
        f"{counted(overdue, 'tombstone is past its', 'tombstones are past their')} delete horizon ({why})",
        advice,
        partition=number,
        overdue=overdue,
        since_ms=log.overdue_since_ms,
        cause=cause,
        dirty_ratio=_rounded(log),
        threshold=spec.thresholds.overdue_tombstones,
    )


def _why_overdue(ratio: float | None, wanted: float) -> tuple[str, str, str]:
    """One word, the same in words, and what to do."""
    if ratio is None:
        return "unknown", "whether idle or stuck is unknown", _BROKERS
    if ratio < wanted:
        advice = "harmless but for restores; a heartbeat record that rolls the segment lets the cleaner run"
        return "idle", "idle: no cleaning runs without new data in closed segments", advice
    return "stuck", "stuck: there is enough to clean, and it is not cleaned", _BROKERS


def _live_keys(spec: AuditSpec, facts: StoreFacts) -> Iterator[Finding]:
    """live_keys: most keys are gone, but their tombstones are what a restore reads."""
    keys, live = (sum(getattr(found, name) for found in facts.keys.values()) for name in ("keys", "live_keys"))
    limits = spec.thresholds
    if keys < limits.live_keys_of or live >= limits.live_keys * keys:
        return
    summary = f"{live:,} of {keys:,} keys are live ({live / keys:.0%}): the others are tombstones that a restore reads"
    advice = (
        "lower delete.retention.ms, if no restore takes as long; buffers and short sessions look like this when idle"
    )
    evidence = {"live": live, "keys": keys, "threshold": limits.live_keys}
    yield store_finding(spec, facts, "live_keys", "info", summary, advice, **evidence)
