"""Rules about keys: records without one, keys in the wrong partition, large partitions and hot keys. Pure; for rules.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Any

from streamfleet_jobs.audit.facts import FITS, PartitionFacts
from streamfleet_jobs.audit.findings import Finding, counted, key_name, size
from streamfleet_jobs.audit.spec import AuditSpec
from streamfleet_jobs.audit.store_facts import StoreFacts, store_finding

FITS_ALL = 0.99
"""Share of keys that a partitioner has to explain to be named, ..."""
ENOUGH_KEYS = 20
"""... where it is not all keys: of at least so many misplaced ones."""

_SETTINGS = {
    "murmur2": "librdkafka: partitioner=murmur2_random",
    "crc32": "librdkafka: partitioner=consistent_random",
    "fnv1a": "librdkafka: partitioner=fnv1a_random",
}


def key_findings(spec: AuditSpec, facts: StoreFacts) -> Iterator[Finding]:
    for number in facts.keys:
        yield from _null_keys(spec, facts, number)
    yield from _placement(spec, facts)
    yield from _skew(spec, facts)
    yield from _hot_keys(spec, facts)


def _null_keys(spec: AuditSpec, facts: StoreFacts, number: int) -> Iterator[Finding]:
    keys = facts.keys.get(number)
    if keys is not None and keys.null_keys:
        summary = f"{counted(keys.null_keys, 'record has', 'records have')} no key: no store could have written them"
        advice = "find the other writer of this topic, by its ACLs"
        yield store_finding(
            spec, facts, "null_keys", "error", summary, advice, partition=number, records=keys.null_keys
        )


def _placement(spec: AuditSpec, facts: StoreFacts) -> Iterator[Finding]:
    """placement: keys where their partitioner would not put them; the one that fits is named."""
    keys, wanted = facts.keys, facts.store.partitioner
    total, misplaced = sum(f.keys for f in keys.values()), sum(f.misplaced for f in keys.values())
    if not facts.store.checks_placement or facts.store.partitions == 1 or not misplaced:
        return
    fits = _summed(found.fits for found in keys.values())
    best = max(fits, key=lambda name: fits[name])
    if best != wanted and fits[best] >= FITS_ALL * total:
        summary = f"the keys are spread by {best}, not by {wanted}: {misplaced:,} of {total:,} are in another partition"
        advice = f"the producer of the input uses another partitioner: let it use {wanted} ({_SETTINGS[wanted]})"
        evidence: dict[str, Any] = {"partitioner": best, "fits": fits, "misplaced": misplaced}
        yield store_finding(spec, facts, "placement", "error", summary, advice, **evidence)
        return
    other = _other_partitioner(facts, misplaced)
    for number, found in keys.items():
        if found.misplaced:
            yield _misplaced(spec, facts, number, found, other)


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found = dict.fromkeys(FITS, 0)
    for count in counts:
        for name in found:
            found[name] += count.get(name, 0)
    return found


def _other_partitioner(facts: StoreFacts, misplaced: int) -> str | None:
    """The one that explains the misplaced keys, if they are enough for that to be no chance."""
    fits = _summed(found.misplaced_fits for found in facts.keys.values())
    best = max(fits, key=lambda name: fits[name])
    return best if misplaced >= ENOUGH_KEYS and fits[best] >= FITS_ALL * misplaced else None


def _misplaced(spec: AuditSpec, facts: StoreFacts, number: int, found: PartitionFacts, other: str | None) -> Finding:
    wanted = facts.store.partitioner
    named = [key_name(key, clear=spec.clear_keys) for key in found.misplaced_keys]
    told = "" if other is None else f"; they are where {other} puts them"
    more = "" if found.misplaced == len(named) else ", ..."
    belong = counted(found.misplaced, "key belongs", "keys belong")
    return store_finding(
        spec,
        facts,
        "placement",
        "error",
        f"{belong} to another partition by {wanted}{told}: {', '.join(named)}{more}",
        "find who wrote them: another producer, or an app with another number of partitions",
        partition=number,
        misplaced=found.misplaced,
        keys=named,
        partitioner=other or wanted,
        fits=found.fits,
        misplaced_fits=found.misplaced_fits,
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
    times = None if times is None else round(times, 2)
    threshold = spec.thresholds.skew
    yield store_finding(
        spec, facts, "skew", "warning", summary, advice, partition=largest, times=times, threshold=threshold
    )


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
            yield store_finding(
                spec, facts, "hot_key", "info", summary, advice, partition=number, key=name, share=round(share, 4)
            )
