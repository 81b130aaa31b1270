"""StoreFacts: all that the rules know of one store; and how a rule says what it found. Pure. Gathered by job.py."""

from __future__ import annotations

from typing import Any

import msgspec

from streamfleet_jobs.audit.facts import PartitionFacts
from streamfleet_jobs.audit.findings import Finding, Severity
from streamfleet_jobs.audit.log_facts import LogFacts
from streamfleet_jobs.audit.spec import AuditSpec, StoreSpec
from streamfleet_jobs.kafka.topics import TopicPin


class StoreFacts(msgspec.Struct, frozen=True):
    """One store, its topic and what was read of it."""

    store: StoreSpec
    pin: TopicPin
    logs: dict[int, LogFacts]
    """Absent: batch headers could not be read."""
    keys: dict[int, PartitionFacts]
    """Empty in a quick audit."""
    overdue_tombstones: dict[int, int] = {}


def store_finding(
    spec: AuditSpec,
    facts: StoreFacts,
    rule: str,
    severity: Severity,
    summary: str,
    advice: str,
    *,
    partition: int | None = None,
    is_unknown: bool = False,
    **evidence: Any,
) -> Finding:
    """About the store's changelog; further names are its evidence."""
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
        is_unknown=is_unknown,
    )
