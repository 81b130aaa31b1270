"""Audits as an asset with one partition per app, and a schedule for each app whose definition wants one.

The job runs as a child process with its own memory (Spark's JVM is in there), and knows neither Dagster nor the server; its
report is recorded through the API and shown here as checks and Markdown.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dagster import (
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetExecutionContext,
    AssetKey,
    Config,
    DefaultScheduleStatus,
    DynamicPartitionsDefinition,
    Failure,
    MaterializeResult,
    MetadataValue,
    PipesSubprocessClient,
    RunRequest,
    ScheduleDefinition,
    ScheduleEvaluationContext,
    asset,
    define_asset_job,
    in_process_executor,
    schedule,
)
from dagster._core.errors import DagsterPipesExecutionError
from pydantic import Field

from dagster_streamfleet.child_job import Engine, audit_input, audit_report, command
from dagster_streamfleet.resource import StreamfleetResource
from dagster_streamfleet.translator import APP_TAG, FleetTranslator, tag_value
from streamfleet_platform.views import AuditRunView, FindingView

APPS = DynamicPartitionsDefinition(name="streamfleet_apps")
AUDIT_KEY = AssetKey(["audits", "state"])
_SEVERITIES = {"no_errors": "error", "no_warnings": "warning"}


class AuditConfig(Config):
    engine: Engine = Field("local", description="local: without Java. spark-local, spark-connect: Spark")


@asset(
    key=AUDIT_KEY,
    partitions_def=APPS,
    group_name="audits",
    kinds={"kafka", "spark"},
    pool="streamfleet_audits",
    description="Changelogs of an app, read and judged: compaction, tombstones, placement, stores against changelogs.",
    check_specs=[AssetCheckSpec(name, asset=AUDIT_KEY) for name in _SEVERITIES],
)
def state_audit(
    context: AssetExecutionContext,
    streamfleet: StreamfleetResource,
    pipes: PipesSubprocessClient,
    config: AuditConfig,
) -> Iterator[MaterializeResult[Any]]:
    app = context.partition_key
    with streamfleet.client() as client, tempfile.TemporaryDirectory(prefix="streamfleet-audit-") as directory:
        where = Path(directory)
        spec = audit_input(client.audit_spec(app), f"audit-{context.run.run_id}", where / "result")
        try:
            pipes.run(context=context, command=list(command("audit", where, spec, config.engine)))
        except DagsterPipesExecutionError as error:
            ended: BaseException | None = error  # an audit that found errors ends so, too: its result says which it was
        else:
            ended = None
        report = audit_report(where / "result")
        if report is None:
            raise Failure(f"the audit of {app} has no result: {ended or 'it ended without one'}") from ended
        run = client.record_audit(app, report)
        findings = client.findings(app)
    yield _materialized(run, findings)


def _materialized(run: AuditRunView, findings: Sequence[FindingView]) -> MaterializeResult[Any]:
    return MaterializeResult(
        asset_key=AUDIT_KEY,
        metadata={
            "verdict": run.verdict,
            "findings": len(findings),
            "engine": run.engine,
            "report": MetadataValue.md(markdown(run, findings)),
        },
        check_results=[_check(name, run, findings) for name in _SEVERITIES],
    )


def _check(name: str, run: AuditRunView, findings: Sequence[FindingView]) -> AssetCheckResult:
    """An audit that could not read something has not found it in order."""
    severity = _SEVERITIES[name]
    bad = [each for each in findings if each.severity == severity]
    unknown = severity == "error" and run.verdict == "unknown"
    return AssetCheckResult(
        asset_key=AUDIT_KEY,
        check_name=name,
        passed=not bad and not unknown,
        severity=AssetCheckSeverity.ERROR if severity == "error" else AssetCheckSeverity.WARN,
        metadata={"app": run.app, "findings": len(bad), "report": MetadataValue.md(markdown(run, bad))},
    )


def markdown(run: AuditRunView, findings: Sequence[FindingView]) -> str:
    rows = "\n".join(
        f"| {each.severity} | {each.rule} | {_cell(_where(each))} | {_cell(each.summary)} | {_cell(each.advice)} |"
        for each in findings
    )
    table = (
        f"\n\n| severity | rule | where | what | what to do |\n| --- | --- | --- | --- | --- |\n{rows}" if rows else ""
    )
    return f"Audit `{run.id}` of {run.app}: **{run.verdict}**.{table}"


def _where(finding: FindingView) -> str:
    topic = finding.topic or finding.store or ""
    return topic if finding.partition is None else f"{topic}-{finding.partition}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


audit_job = define_asset_job(
    "audit", selection=[AUDIT_KEY], executor_def=in_process_executor, description="Audits one app."
)


def audit_schedules(crons: Mapping[str, str], translator: FleetTranslator) -> list[ScheduleDefinition]:
    """By app: when its definition wants it audited, in UTC."""
    return [_schedule(app, cron, translator) for app, cron in sorted(crons.items())]


def _schedule(app: str, cron: str, translator: FleetTranslator) -> ScheduleDefinition:
    @schedule(
        name=translator.schedule_name(app),
        job=audit_job,
        cron_schedule=cron,
        execution_timezone="UTC",
        default_status=DefaultScheduleStatus.RUNNING,
        description=f"Audit of {app}.",
    )
    def audit_of(context: ScheduleEvaluationContext) -> RunRequest:
        context.instance.add_dynamic_partitions(APPS.name or "", [app])
        at = context.scheduled_execution_time
        return RunRequest(run_key=f"{app} {at:%Y-%m-%dT%H:%MZ}", partition_key=app, tags={APP_TAG: tag_value(app)})

    return audit_of
