"""The rule about topics that nobody uses: internal topics by their names, of the app by its id. Pure; for job.py.

Only told, never acted on: a name proves nothing. Another app whose id begins with this one's has topics that look the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamfleet_jobs.audit.findings import Finding
from streamfleet_jobs.audit.spec import AuditSpec

_INTERNAL = ("-changelog", "-repartition")


def orphans(spec: AuditSpec, there: Iterable[str]) -> tuple[str, ...]:
    """Of the topics of a cluster those that look like the app's, and that it does not use."""
    used = {store.changelog for store in spec.stores} | {topic.name for topic in spec.repartition_topics}
    begin = f"{spec.application_id}-"
    alike = {name for name in there if name.startswith(begin) and name.endswith(_INTERNAL)}
    return tuple(sorted((alike | set(spec.former_topics).intersection(there)) - used))


def orphan_findings(spec: AuditSpec, found: Iterable[str]) -> list[Finding]:
    """orphan_topic: it costs disk, and a store of that name would begin with what is in it."""
    return [_recorded(spec, name) if name in spec.former_topics else _stranger(spec, name) for name in found]


def _recorded(spec: AuditSpec, topic: str) -> Finding:
    summary = f"{topic} is recorded as the app's, which no longer uses it"
    return _finding(spec, topic, summary, "it goes when the app is retired", is_recorded=True)


def _stranger(spec: AuditSpec, topic: str) -> Finding:
    summary = f"{topic} is named like an internal topic of {spec.application_id}, and no record or lock names it"
    advice = "find out who made it: an app whose id begins alike, or one that had this id before; nothing deletes it by its name"
    return _finding(spec, topic, summary, advice, is_recorded=False)


def _finding(spec: AuditSpec, topic: str, summary: str, advice: str, *, is_recorded: bool) -> Finding:
    return Finding(spec.app, topic, "orphan_topic", "info", summary, advice, evidence={"recorded": is_recorded})
