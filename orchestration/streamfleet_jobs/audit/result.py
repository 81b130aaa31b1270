"""AuditResult: what an audit found, in the shape that the platform's API takes. Made by job.py; shown by report_html.py."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec

from streamfleet_jobs.audit.equivalence import Outcome
from streamfleet_jobs.audit.findings import Finding, Verdict, key_name, verdict_of
from streamfleet_jobs.audit.first_dirty import FirstDirty
from streamfleet_jobs.audit.spec import ASSUMED_RESTORE_RATE, AuditSpec
from streamfleet_jobs.audit.store_facts import StoreFacts
from streamfleet_jobs.engines import EngineName


class AuditResult(msgspec.Struct, frozen=True):
    run_id: str
    engine: str
    started_at: str
    ended_at: str
    verdict: Verdict
    partitions: list[dict[str, Any]] = []
    """One per partition of every changelog: the rows of a trend."""
    findings: list[dict[str, Any]] = []
    summary: dict[str, Any] = {}
    report_html: str | None = None


class Judged(Protocol):
    @property
    def facts(self) -> StoreFacts: ...

    @property
    def findings(self) -> tuple[Finding, ...]: ...

    @property
    def outcomes(self) -> dict[int, Outcome]: ...

    @property
    def brackets(self) -> dict[int, FirstDirty]: ...


def result_of(
    spec: AuditSpec,
    engine: EngineName,
    times: tuple[datetime, datetime],
    judged: Sequence[Judged],
    findings: Sequence[Finding],
) -> AuditResult:
    partitions = [row for store in judged for row in _rows(spec, store)]
    return AuditResult(
        run_id=spec.run_id,
        engine=engine.value,
        started_at=times[0].isoformat(),
        ended_at=times[1].isoformat(),
        verdict=verdict_of(findings),
        partitions=partitions,
        findings=[_finding(finding) for finding in findings],
        summary={
            "app": spec.app,
            "application_id": spec.application_id,
            "generation": spec.generation,
            "mode": spec.mode,
            "keys_in_clear": spec.clear_keys,
            "stores": [_store(spec, store) for store in judged],
            "restore_records_per_second": spec.restore_records_per_second or ASSUMED_RESTORE_RATE,
            "restore_rate": "measured" if spec.restore_records_per_second else "assumed",
        },
    )


def _finding(finding: Finding) -> dict[str, Any]:
    content: dict[str, Any] = msgspec.to_builtins(finding)
    if content.pop("is_unknown"):
        content["evidence"] = {**content["evidence"], "unknown": True}
    return content


def _store(spec: AuditSpec, judged: Judged) -> dict[str, Any]:
    facts = judged.facts
    rows = _rows(spec, judged)
    counted = [row for row in rows if row["records"] is not None]
    return {
        "name": facts.store.name,
        "kind": facts.store.kind,
        "topic": facts.store.changelog,
        "verdict": verdict_of(judged.findings),
        "records": sum(row["records"] for row in counted) if counted else None,
        "live_keys": sum(row["live_keys"] for row in rows) if facts.keys else None,
        "log_bytes": sum(log.log_bytes for log in facts.logs.values()) if facts.logs else None,
        "equivalence": _outcome(judged.outcomes),
        "restore_seconds": _estimate(spec, sum(row["records"] for row in counted)) if counted else None,
        "restore_seconds_if_compacted": _estimate(spec, sum(row["keys"] for row in rows)) if facts.keys else None,
    }


def _outcome(outcomes: dict[int, Outcome]) -> str:
    found = set(outcomes.values())
    return next((word for word in ("differs", "unknown", "equal") if word in found), "not compared")


def _estimate(spec: AuditSpec, records: int) -> float:
    return round(records / (spec.restore_records_per_second or ASSUMED_RESTORE_RATE), 2)


def _rows(spec: AuditSpec, judged: Judged) -> list[dict[str, Any]]:
    facts = judged.facts
    found = []
    for number, pin in facts.pin.partitions.items():
        keys, log = facts.keys.get(number), facts.logs.get(number)
        row: dict[str, Any] = {
            "store": facts.store.name,
            "topic": facts.store.changelog,
            "partition": number,
            "start": pin.start,
            "end": pin.end,
            "records": keys.records if keys else log.records if log else None,
            "log_bytes": log.log_bytes if log else None,
            "segments": log.segments if log else None,
            "active_base": log.active_base if log else None,
            "dirty_ratio": log.dirty_ratio if log else None,
            "first_dirty": msgspec.to_builtins(judged.brackets.get(number)),
            "equivalence": judged.outcomes.get(number),
            "overdue_tombstones": facts.overdue_tombstones.get(number, 0) if keys and log else None,
            "keys": None,
            "live_keys": None,
        }
        if keys is not None:
            counts: dict[str, Any] = msgspec.to_builtins(keys)
            counts["hot_keys"] = [
                {"key": key_name(hot.key, clear=spec.clear_keys), "records": hot.records} for hot in keys.hot_keys
            ]
            counts["misplaced_keys"] = [key_name(key, clear=spec.clear_keys) for key in keys.misplaced_keys]
            counts["redundancy"] = round(1 - keys.latest_bytes / keys.total_bytes, 4) if keys.total_bytes else 0.0
            row |= counts
        found.append(row)
    return found
