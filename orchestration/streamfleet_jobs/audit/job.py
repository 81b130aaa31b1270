"""The audit from spec to report: pin, read, add up, judge, tell. Started by __main__.py; every stage is kept, see stages.py.

pin      digests of stores (deep), then ends of topics: later records are none of this run's
read     batch headers; slim copies of the changelogs (full, deep)
add up   facts per partition, on the engine that was chosen
judge    rules.py, equivalence.py
tell     result.json (as the platform takes it), report.html, Dagster's Pipes
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from streamfleet_jobs.audit import equivalence
from streamfleet_jobs.audit.engine import AuditEngine
from streamfleet_jobs.audit.equivalence import Comparison, Outcome, StoreDigests
from streamfleet_jobs.audit.facts import PartitionFacts, Question
from streamfleet_jobs.audit.findings import Finding, Verdict, verdict_of
from streamfleet_jobs.audit.first_dirty import FirstDirty, from_consumer, from_raw_log
from streamfleet_jobs.audit.local_engine import LocalEngine
from streamfleet_jobs.audit.log_facts import LogFacts, log_facts
from streamfleet_jobs.audit.orphan_topics import orphan_findings, orphans
from streamfleet_jobs.audit.report_html import render
from streamfleet_jobs.audit.result import AuditResult, result_of
from streamfleet_jobs.audit.rules import store_findings, topic_findings
from streamfleet_jobs.audit.spec import SUFFIXES, AuditSpec, StoreSpec, load_spec
from streamfleet_jobs.audit.stages import Stages, write_whole
from streamfleet_jobs.audit.store_facts import StoreFacts
from streamfleet_jobs.engines import EngineName
from streamfleet_jobs.kafka.raw_log import RawConnection, RawLog, RawLogUnavailableError
from streamfleet_jobs.kafka.topics import TopicPin, pin_topics, topic_names
from streamfleet_jobs.pipes import tell_dagster
from streamfleet_jobs.progress import Report


class Pinned(msgspec.Struct, frozen=True):
    """What this run looks at; fixed by its first try."""

    started_at_ms: int
    topics: dict[str, TopicPin]
    digests: dict[str, StoreDigests] = {}
    orphans: tuple[str, ...] = ()
    """Topics that look like the app's, and that it does not use."""


class JudgedStore(msgspec.Struct, frozen=True):
    """One store, done."""

    facts: StoreFacts
    findings: tuple[Finding, ...]
    outcomes: dict[int, Outcome] = {}
    """Of the equivalence, by partition; none unless the audit is deep."""
    brackets: dict[int, FirstDirty] = {}


def run(spec_path: Path, engine: EngineName, report: Report) -> Verdict:
    """Returns the verdict; all results are in the spec's output directory."""
    spec = load_spec(spec_path).with_secrets()
    with _opened(spec, engine, report) as opened:
        return run_audit(spec, opened, engine, report)


def run_audit(spec: AuditSpec, engine: AuditEngine, name: EngineName, report: Report) -> Verdict:
    """With an engine that is open."""
    stages = Stages(spec.directory)
    stages.remember_spec(spec.storable())
    done = spec.directory / "result.json"
    if done.exists():
        report(f"this audit is done: {done}")
        return msgspec.json.decode(done.read_bytes(), type=AuditResult).verdict
    pinned = stages.value("pin", Pinned, lambda: _pin(spec, report))
    judged = []
    for store in spec.stores:
        judge = partial(_judge, spec, store, pinned, engine, stages.landed(store.name), report)
        judged.append(stages.value(f"store-{store.name}", JudgedStore, judge))
    found = [finding for store in judged for finding in store.findings]
    for topic in spec.repartition_topics:
        found += topic_findings(spec, None, topic, pinned.topics[topic.name])
    found += orphan_findings(spec, pinned.orphans)
    return _tell(spec, name, pinned, judged, found, stages, report)


@contextmanager
def _opened(spec: AuditSpec, engine: EngineName, report: Report) -> Iterator[AuditEngine]:
    if engine is EngineName.LOCAL or spec.mode == "quick":  # headers alone are nothing for Spark
        yield LocalEngine(spec, report)
        return
    from streamfleet_jobs.audit.spark_engine import SparkEngine
    from streamfleet_jobs.spark.session import spark_session

    with spark_session(engine, report) as session:
        yield SparkEngine(spec, session, report)


def _pin(spec: AuditSpec, report: Report) -> Pinned:
    started = time.time_ns() // 1_000_000
    digests: dict[str, StoreDigests] = {}
    if spec.compares_stores:
        for store in spec.stores:
            report(f"asking the workers for digests of {store.name}")
            digests[store.name] = equivalence.collect(spec, store)
    names = [store.changelog for store in spec.stores] + [topic.name for topic in spec.repartition_topics]
    topics = pin_topics(spec.bootstrap_servers, spec.client_config, names)
    report(f"pinned {len(topics)} topics")
    others = topic_names(spec.bootstrap_servers, spec.client_config) if "orphans" in spec.checks else []
    return Pinned(started, topics, digests, orphans(spec, others))


def _judge(
    spec: AuditSpec, store: StoreSpec, pinned: Pinned, engine: AuditEngine, landed: Path, report: Report
) -> JudgedStore:
    pin = pinned.topics[store.changelog]
    if not pin.exists:
        facts = StoreFacts(store, pin, {}, {})
        return JudgedStore(facts, tuple(store_findings(spec, facts)))
    logs = _raw_logs(spec, pin, report)
    keys: dict[int, PartitionFacts] = {}
    if spec.mode != "quick":
        engine.land(store, pin, landed)
        keys = engine.facts(landed, _questions(store, pin, logs))
    brackets = _brackets(spec, engine, pin, logs, keys, landed)
    log = {number: log_facts(number, raw, brackets[number], pinned.started_at_ms) for number, raw in logs.items()}
    facts = StoreFacts(store, pin, log, keys, _overdue(engine, log, landed) if keys else {})
    found, outcomes = store_findings(spec, facts), dict[int, Outcome]()
    if spec.compares_stores:
        comparison = Comparison(spec, store, pin, engine, landed)
        comparison.run(pinned.digests.get(store.name, StoreDigests()))
        found, outcomes = found + comparison.findings, comparison.outcomes
    return JudgedStore(facts, tuple(found), outcomes, brackets)


def _raw_logs(spec: AuditSpec, pin: TopicPin, report: Report) -> dict[int, RawLog]:
    """By partition; those that cannot be read are absent, and said so."""
    if spec.client_config.get("security.protocol", "PLAINTEXT").upper() != "PLAINTEXT":
        return {}
    logs: dict[int, RawLog] = {}
    for number, partition in pin.partitions.items():
        try:
            if partition.leader is None:
                raise RawLogUnavailableError(f"partition {number} has no leader", hint="wait for one")
            with RawConnection(*partition.leader) as connection:
                logs[number] = connection.scan(pin.name, number, partition.start, partition.end)
        except RawLogUnavailableError as error:
            report(f"batch headers of {pin.name} partition {number} are not read: {error}")
    return logs


def _questions(store: StoreSpec, pin: TopicPin, logs: dict[int, RawLog]) -> dict[int, Question]:
    suffix = SUFFIXES[store.key_format]
    return {
        number: Question(
            partition.start,
            partition.end,
            logs[number].active_base if number in logs else partition.start,
            len(pin.partitions),
            suffix,
            store.partitioner,
        )
        for number, partition in pin.partitions.items()
    }


def _brackets(
    spec: AuditSpec,
    engine: AuditEngine,
    pin: TopicPin,
    logs: dict[int, RawLog],
    keys: dict[int, PartitionFacts],
    landed: Path,
) -> dict[int, FirstDirty]:
    repeats = {number: keys[number].first_repeat if number in keys else None for number in pin.partitions}
    unread = [number for number in pin.partitions if number not in logs]
    gaps = engine.last_gaps(landed) if unread and keys else {}
    found: dict[int, FirstDirty] = {}
    for number, partition in pin.partitions.items():
        if number in logs:
            found[number] = from_raw_log(logs[number], partition.start, repeats[number], keys_read=bool(keys))
        else:
            ends, gap = (partition.start, partition.end), gaps.get(number)
            found[number] = from_consumer(ends, gap, repeats[number], spec.guarantee, keys_read=bool(keys))
    return found


def _overdue(engine: AuditEngine, logs: dict[int, LogFacts], landed: Path) -> dict[int, int]:
    ranges = {number: log.overdue for number, log in logs.items() if log.overdue}
    return engine.tombstones_in(landed, ranges) if ranges else {}


def _tell(
    spec: AuditSpec,
    engine: EngineName,
    pinned: Pinned,
    judged: list[JudgedStore],
    findings: list[Finding],
    stages: Stages,
    report: Report,
) -> Verdict:
    started = datetime.fromtimestamp(pinned.started_at_ms / 1000, UTC)
    result = result_of(spec, engine, (started, datetime.now(UTC)), judged, findings)
    html = render(result)
    write_whole(spec.directory / "report.html", html.encode())
    told = msgspec.structs.replace(result, report_html=html)
    write_whole(spec.directory / "result.json", msgspec.json.encode(told))
    if not spec.keep_landed:
        shutil.rmtree(stages.root, ignore_errors=True)
    tell_dagster(result)
    report(f"{result.verdict}: {len(findings)} findings, see {spec.directory / 'report.html'}")
    return verdict_of(findings)
