"""The rules: facts about one store become Findings. Pure; job.py gathers the facts, equivalence.py has a rule of its own.

Here are the rules about topics and what could not be read; those about the log's cleaning are in compaction_rules.py, those about
keys in key_rules.py, that about topics nobody uses in orphan_topics.py. Every finding names its evidence, the threshold it crossed,
and what to do. What could not be read is `unknown`, never fine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamfleet_jobs.audit.compaction_rules import compaction_findings
from streamfleet_jobs.audit.findings import Finding, Severity
from streamfleet_jobs.audit.key_rules import key_findings
from streamfleet_jobs.audit.spec import AuditSpec, Check, StoreSpec, TopicSpec
from streamfleet_jobs.audit.store_facts import StoreFacts, store_finding
from streamfleet_jobs.kafka.topics import TopicPin

_CHECKS_OF: dict[str, frozenset[Check]] = {
    "redundancy": frozenset({"compaction"}),
    "overdue_tombstones": frozenset({"tombstones"}),
    "live_keys": frozenset({"tombstones"}),
    "log_unread": frozenset({"compaction", "tombstones"}),
    **dict.fromkeys(("placement", "null_keys", "skew", "hot_key"), frozenset[Check]({"placement"})),
}
"""Which of the checks a rule is part of: it is silent without. A rule that is not here always speaks."""
_SERIOUS_CONFIGS = frozenset({"cleanup.policy"})


def store_findings(spec: AuditSpec, facts: StoreFacts) -> list[Finding]:
    found = list(topic_findings(spec, facts.store.name, _topic(facts.store), facts.pin))
    if facts.pin.exists:
        found += [*_retention(spec, facts), *_unread(spec, facts)]
        found += [*compaction_findings(spec, facts), *key_findings(spec, facts)]
    return [finding for finding in found if _is_asked_for(spec, finding.rule)]


def _is_asked_for(spec: AuditSpec, rule: str) -> bool:
    wanted = _CHECKS_OF.get(rule)
    return wanted is None or not wanted.isdisjoint(spec.checks)


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


def _retention(spec: AuditSpec, facts: StoreFacts) -> Iterator[Finding]:
    """retention: the changelog must not forget before the store does."""
    kept = facts.pin.configs.get("retention.ms", "-1")
    deletes = "delete" in facts.pin.configs.get("cleanup.policy", "")
    needed = facts.store.retention_ms
    if deletes and needed is not None and 0 <= int(kept) < needed:
        summary = (
            f"the topic forgets after {kept} ms what the store keeps for {needed} ms: a restore would lose windows"
        )
        yield store_finding(
            spec, facts, "retention", "error", summary, "raise retention.ms", found=int(kept), needed=needed
        )


def _unread(spec: AuditSpec, facts: StoreFacts) -> Iterator[Finding]:
    """log_unread: said aloud, because rules that need batch headers are silent without."""
    if len(facts.logs) < len(facts.pin.partitions):
        summary = "batch headers could not be read: nothing is said of segments and delete horizons"
        advice = "let the audit reach a plain listener of the brokers"
        yield store_finding(spec, facts, "log_unread", "info", summary, advice, is_unknown=True)
