"""The rules: facts about one store become Findings. Pure; job.py gathers the facts, equivalence.py has its own rule.

Every finding names its evidence, the threshold it crossed, and what to do. What could not be read is `unknown`, never fine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

import msgspec

from streamfleet_jobs.audit.facts import PartitionFacts
from streamfleet_jobs.audit.findings import Finding, Severity, key_name, size
from streamfleet_jobs.audit.log_facts import LogFacts
from streamfleet_jobs.audit.spec import AuditSpec, StoreSpec, TopicSpec
from streamfleet_jobs.kafka.topics import TopicPin

FITS_ALL = 0.99
"""Share of keys that a partitioner has to explain to be named."""

_SERIOUS_CONFIGS = frozenset({"cleanup.policy"})


class StoreFacts(msgspec.Struct, frozen=True):
    """All that the rules know of one store."""

    store: StoreSpec
    pin: TopicPin
    logs: dict[int, LogFacts]
    """Absent: batch headers could not be read."""
    keys: dict[int, PartitionFacts]
    """Empty in a quick audit."""
    overdue_tombstones: dict[int, int] = {}


def store_findings(spec: AuditSpec, facts: StoreFacts) -> list[Finding]:
    found = list(topic_findings(spec, facts.store.name, _topic(facts.store), facts.pin))
    if facts.pin.exists:
        found += [*_retention(spec, facts), *_unread(spec, facts)]
        for number in facts.pin.partitions:
            found += [
                *_redundancy(spec, facts, number),
                *_tombstones(spec, facts, number),
                *_null_keys(spec, facts, number),
            ]
        found += [*_placement(spec, facts), *_skew(spec, facts), *_hot_keys(spec, facts)]
    return found


def _topic(store: StoreSpec) -> TopicSpec:
    return TopicSpec(store.changelog, store.partitions, store.configs)


def topic_findings(spec: AuditSpec, store: str | None, wanted: TopicSpec, pin: TopicPin) -> Iterator[Finding]:
    """config_drift: a topic that is not as it was made."""

    def drift(severity: Severity, summary: str, advice: str, **evidence: Any) -> Finding:
        return Finding(spec.app, wanted.name, "config_drift", severity, summary, advice, store=store, evidence=evidence)

    if not pin.exists:
        yield drift("error", f"topic {wanted.name} does not exist", "reset the app, or restore the topic from a copy")
        return
    if len(pin.partitions) != wanted.partitions:
        yield drift(
            "error",
            f"{wanted.name} has {len(pin.partitions)} partitions, not {wanted.partitions}",
            "keys are spread differently now: bootstrap the app with the new number, or make the topic anew",
            expected=wanted.partitions,
            found=len(pin.partitions),
        )
    for name, expected in sorted(wanted.configs.items()):
        found = pin.configs.get(name)
        if found is not None and _comparable(found) != _comparable(expected):
            yield drift(
                "error" if name in _SERIOUS_CONFIGS else "warning",
                f"{wanted.name}: {name} is {found}, not {expected}",
                "set it back, or record the new value in the app's definition",
                config=name,
                expected=expected,
                found=found,
            )


def _comparable(value: str) -> str | frozenset[str]:
    return frozenset(part.strip() for part in value.split(",")) if "," in value else frozenset({value.strip()})


def _finding(
    spec: AuditSpec, facts: StoreFacts, rule: str, severity: Severity, summary: str, advice: str, **more: Any
) -> Finding:
    partition, evidence = more.pop("partition", None), more
    unknown = bool(evidence.pop("is_unknown", False))
    return Finding(
        spec.app,
        facts.store.changelog,
        rule,
        severity,
        summary,
        advice,
        store=facts.store.name,
        partition=partition,
        evidence=evidence,
        is_unknown=unknown,
    )


def _retention(spec: AuditSpec, facts: StoreFacts) -> Iterator[Finding]:
    """retention: the changelog must not forget before the store does."""
    kept = facts.pin.configs.get("retention.ms", "-1")
    deletes = "delete" in facts.pin.configs.get("cleanup.policy", "")
    needed = facts.store.retention_ms
    if deletes and needed is not None and 0 <= int(kept) < needed:
        summary = (
            f"the topic forgets after {kept} ms what the store keeps for {needed} ms: a restore would lose windows"
        )
        yield _finding(spec, facts, "retention", "error", summary, "raise retention.ms", found=int(kept), needed=needed)


def _unread(spec: AuditSpec, facts: StoreFacts) -> Iterator[Finding]:
    """log_unread: said aloud, because rules that need batch headers are silent without."""
    if len(facts.logs) < len(facts.pin.partitions):
        summary = "batch headers could not be read: nothing is said of segments and delete horizons"
        advice = "let the audit reach a plain listener of the brokers"
        yield _finding(spec, facts, "log_unread", "info", summary, advice, is_unknown=True)


def _redundancy(spec: AuditSpec, facts: StoreFacts, number: int) -> Iterator[Finding]:
    """redundancy: superseded records in closed segments, which compaction should have removed."""
    keys, log, limits = facts.keys.get(number), facts.logs.get(number), spec.thresholds
    if keys is None or log is None or keys.closed_bytes < max(limits.min_bytes, 1):
        return
    share = keys.closed_superseded_bytes / keys.closed_bytes
    if share <= limits.redundancy:
        return
    wanted = float(facts.pin.configs.get("min.cleanable.dirty.ratio", "0.5"))
    ratio = log.dirty_ratio
    if ratio is not None and ratio < wanted:
        why, advice = "the cleaner is not asked yet", f"lower min.cleanable.dirty.ratio (now {wanted:g})"
    else:
        why, advice = (
            "the cleaner is behind or stuck",
            "look at the brokers' log cleaner: uncleanable partitions, dead threads",
        )
    dirty = log.first_dirty
    place = f"first dirty offset {dirty.low}" if dirty.certainty == "exact" else f"first dirty offset {dirty.certainty}"
    yield _finding(
        spec,
        facts,
        "redundancy",
        "warning",
        f"{share:.0%} of {size(keys.closed_bytes)} in closed segments is superseded ({place}): {why}",
        advice,
        partition=number,
        share=round(share, 4),
        threshold=limits.redundancy,
        dirty_ratio=None if ratio is None else round(ratio, 4),
        first_dirty=msgspec.to_builtins(dirty),
    )


def _tombstones(spec: AuditSpec, facts: StoreFacts, number: int) -> Iterator[Finding]:
    """overdue_tombstones: past their delete horizon, and still there."""
    log, overdue = facts.logs.get(number), facts.overdue_tombstones.get(number, 0)
    if log is None or overdue == 0:
        return
    wanted = float(facts.pin.configs.get("min.cleanable.dirty.ratio", "0.5"))
    ratio = log.dirty_ratio
    is_idle = ratio is not None and ratio < wanted
    if is_idle:
        why = "idle: no cleaning runs without new data in closed segments"
        advice = "harmless but for restores; a heartbeat record that rolls the segment lets the cleaner run"
    else:
        why, advice = "stuck: there is enough to clean, and it is not cleaned", "look at the brokers' log cleaner"
    severity: Severity = "warning" if overdue >= spec.thresholds.overdue_tombstones else "info"
    yield _finding(
        spec,
        facts,
        "overdue_tombstones",
        severity,
        f"{overdue:,} tombstones are past their delete horizon ({why})",
        advice,
        partition=number,
        overdue=overdue,
        since_ms=log.overdue_since_ms,
        cause="idle" if is_idle else "stuck",
        threshold=spec.thresholds.overdue_tombstones,
    )


def _null_keys(spec: AuditSpec, facts: StoreFacts, number: int) -> Iterator[Finding]:
    keys = facts.keys.get(number)
    if keys is not None and keys.null_keys:
        summary = f"{keys.null_keys:,} records have no key: no store could have written them"
        advice = "find the other writer of this topic, by its ACLs"
        yield _finding(spec, facts, "null_keys", "error", summary, advice, partition=number, records=keys.null_keys)


def _placement(spec: AuditSpec, facts: StoreFacts) -> Iterator[Finding]:
    """placement: keys where their partitioner would not put them; the one that fits is named."""
    keys, wanted = facts.keys, facts.store.partitioner
    total, misplaced = sum(f.keys for f in keys.values()), sum(f.misplaced for f in keys.values())
    if not facts.store.checks_placement or facts.store.partitions == 1 or not misplaced:
        return
    fits = {name: sum(f.fits.get(name, 0) for f in keys.values()) for name in ("murmur2", "crc32", "fnv1a")}
    best = max(fits, key=lambda name: fits[name])
    if best != wanted and fits[best] >= FITS_ALL * total:
        summary = f"the keys are spread by {best}, not by {wanted}: {misplaced:,} of {total:,} are in another partition"
        advice = f"the producer of the input uses another partitioner: let it use {wanted} (librdkafka: partitioner=murmur2_random)"
        yield _finding(
            spec, facts, "placement", "error", summary, advice, partitioner=best, fits=fits, misplaced=misplaced
        )
        return
    for number, found in keys.items():
        if found.misplaced:
            named = [key_name(key, clear=spec.clear_keys) for key in found.misplaced_keys]
            yield _finding(
                spec,
                facts,
                "placement",
                "error",
                f"{found.misplaced:,} keys belong to another partition by {wanted}: {', '.join(named)}",
                "find who wrote them: another producer, or an app with another number of partitions",
                partition=number,
                misplaced=found.misplaced,
                keys=named,
                partitioner=wanted,
                fits=fits,
            )


def _skew(spec: AuditSpec, facts: StoreFacts) -> Iterator[Finding]:
    """skew: one partition holds much more than the others."""
    sizes = _sizes(facts)
    if len(sizes) < 2:
        return
    largest = max(sizes, key=lambda number: sizes[number])
    middle = median(sizes.values())
    if sizes[largest] < spec.thresholds.min_bytes or sizes[largest] <= spec.thresholds.skew * middle:
        return
    times = sizes[largest] / middle if middle else None
    summary = f"partition {largest} has {size(sizes[largest])}, the median is {size(middle)}"
    advice = "its task restores longest and scaling does not help it: split its hot keys, or choose another key"
    evidence = {"times": None if times is None else round(times, 2), "threshold": spec.thresholds.skew}
    yield _finding(spec, facts, "skew", "warning", summary, advice, partition=largest, **evidence)


def _sizes(facts: StoreFacts) -> Mapping[int, int]:
    if facts.keys:
        return {number: found.latest_bytes for number, found in facts.keys.items()}
    return {number: log.log_bytes for number, log in facts.logs.items()}


def _hot_keys(spec: AuditSpec, facts: StoreFacts) -> Iterator[Finding]:
    """hot_key: one key makes most of a partition's records."""
    limits = spec.thresholds
    for number, found in facts.keys.items():
        hottest = found.hot_keys[0] if found.hot_keys else None
        if hottest is None or hottest.records < limits.hot_key_records:
            continue
        share = hottest.records / found.records
        if share > limits.hot_key_share:
            name = key_name(hottest.key, clear=spec.clear_keys)
            summary = f"one key ({name}) has {share:.0%} of the partition's {found.records:,} records"
            advice = "cache its updates (caching=True, a longer commit interval), or split the key"
            yield _finding(
                spec, facts, "hot_key", "info", summary, advice, partition=number, key=name, share=round(share, 4)
            )
