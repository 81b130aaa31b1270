"""`audit` and `bootstrap`: asks the server what there is to do, runs the job as a child process, and reports what it says.

The jobs (streamfleet_jobs) know neither the server nor this command: a spec goes in as a file, results come out as files and lines.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from streamfleet_platform import views
from streamfleet_platform.cli import pages
from streamfleet_platform.cli.connection import (
    AppArgument,
    ExitCode,
    Json,
    Server,
    TokenOption,
    connected,
    tell,
    write_private,
)
from streamfleet_platform.cli.following import followed
from streamfleet_platform.client import PATIENCE_SECONDS, FleetClient
from streamfleet_platform.errors import NotFoundError, TransientError
from streamfleet_platform.model.operation import OperationState

JOBS = "streamfleet_jobs"
REPORTS = Path(".streamfleet", "audits")
"""Below a name with a dot: in a directory of definitions it would be taken for a file of every app, and restart them all."""
_AUDIT_RAN = (0, 1)
"""Exit codes of an audit that has a result: clean, and not clean."""

EngineOption = Annotated[
    Literal["local", "spark-local", "spark-connect"],
    typer.Option(
        "--engine", help="local: without Java. spark-local: Spark in a process here. spark-connect: by SPARK_REMOTE."
    ),
]


def audit(
    app: AppArgument,
    engine: EngineOption = "local",
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="DIR", help="Where the report goes (default: .streamfleet/audits/APP)."),
    ] = None,
    server: Server = None,
    token_file: TokenOption = None,
    as_json: Json = False,
) -> None:
    """Read an app's changelogs and say what is wrong with them: compaction, tombstones, placement, store against changelog.

    Exit code 1 if it found errors.

    Example: streamfleet audit orders --engine local
    """
    directory = (output or REPORTS / app).resolve()
    with connected(server, token_file) as client:
        spec = {"run_id": f"audit-{uuid.uuid4().hex[:12]}", **client.audit_spec(app), "output": str(directory)}
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        (directory / "result.json").unlink(missing_ok=True)  # of an earlier run
        code = _run("audit", spec, engine)
        report = _report_in(directory, code)
        run = client.record_audit(app, report)
        findings = [each for each in client.findings(app) if each.severity != "info"]
    if as_json:
        pages.print_json(
            {"run": run.model_dump(mode="json"), "findings": [each.model_dump(mode="json") for each in findings]}
        )
    else:
        _print_audit(run, findings, directory / "report.html")
    raise typer.Exit(ExitCode.FAILED if run.verdict in ("errors", "unknown") else ExitCode.OK)


def _print_audit(run: views.AuditRunView, findings: list[views.FindingView], report: Path) -> None:
    pages.print_line(f"audit of {run.app}: {run.verdict}, {run.findings} findings", "bold")
    columns = ("SEVERITY", "RULE", "WHERE", "WHAT", "WHAT TO DO")
    if findings:
        pages.print_table(
            "", columns, ((each.severity, each.rule, _where(each), each.summary, each.advice) for each in findings)
        )
    pages.print_line(f"report: {report}")


def _where(finding: views.FindingView) -> str:
    topic = finding.topic or finding.store or ""
    return topic if finding.partition is None else f"{topic}-{finding.partition}"


def _report_in(directory: Path, code: int) -> dict[str, Any]:
    result, html = directory / "result.json", directory / "report.html"
    if code not in _AUDIT_RAN or not result.is_file():
        raise TransientError(f"the audit gave no result: exit code {code}", hint="what it said is above")
    report: dict[str, Any] = json.loads(result.read_bytes())
    if html.is_file():
        report["report_html"] = html.read_text("utf-8")
    return {name: value for name, value in report.items() if name in views.AuditReport.model_fields}


def bootstrap(
    app: AppArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="One of the bootstraps of its definition.")],
    engine: EngineOption = "spark-local",
    start: Annotated[
        bool, typer.Option("--start", help="Start the app on its new state when that is published.")
    ] = False,
    abort: Annotated[
        bool,
        typer.Option("--abort", help="End the one that is under way: offsets are put back, the app is free again."),
    ] = False,
    server: Server = None,
    token_file: TokenOption = None,
    as_json: Json = False,
) -> None:
    """Build an app's state from data at rest: store files and a full changelog, verified before workers take them over.

    The app has to be stopped. A run that was cut short goes on where it was when this is called again.

    Example: streamfleet bootstrap orders from-lake --start
    """
    with connected(server, token_file) as client:
        run = client.start_bootstrap(app, name, engine=engine, start=start, abort=abort)
        tell(f"bootstrap {run.id}: {run.state}, attempt {run.token}")
        with _lines_of("bootstrap", run.spec, engine, *(["--abort"] if abort else [])) as lines:
            for line in lines:
                run = _reported(client, run, line)
                tell(f"bootstrap {run.id}: {run.state}{_told(line)}")
        ended = None if run.operation is None else followed(client, client.operation(run.operation))
        run = _now(client, run)
    if as_json:
        pages.print_json(run)
    else:
        pages.print_line(f"bootstrap {name} of {app}: {run.state}" + _adoption(run))
    is_done = run.state == "aborted" if abort else ended is None or ended.state is OperationState.SUCCEEDED
    raise typer.Exit(ExitCode.OK if is_done else ExitCode.FAILED)


def _reported(client: FleetClient, run: views.BootstrapRunView, line: dict[str, Any]) -> views.BootstrapRunView:
    """A server that is away for a moment is waited for: the job's work is worth more than that."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return client.move_bootstrap(run.app, run.id, run.token, str(line["state"]), line.get("detail"))
        except TransientError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def _told(line: dict[str, Any]) -> str:
    detail = line.get("detail") or {}
    records = f", {detail['records']:,} records" if "records" in detail else ""
    seconds = f", {detail['seconds']:.1f} s" if "seconds" in detail else ""
    return records + seconds + (", proven before" if detail.get("resumed") else "")


def _adoption(run: views.BootstrapRunView) -> str:
    told = run.detail.get("adopted", {}).get("told")
    if told:
        return f": {told}"
    return f"; `streamfleet start {run.app}` runs it on the new state" if run.state == "published" else ""


def _now(client: FleetClient, run: views.BootstrapRunView) -> views.BootstrapRunView:
    return next((each for each in client.bootstraps(run.app) if each.id == run.id), run)


def _run(job: str, spec: dict[str, Any], engine: str) -> int:
    with _spec_file(spec) as path:
        # what it prints is progress here: to standard error, by its number, because a test may have replaced the file
        return subprocess.run(_command(job, path, engine), check=False, stdout=2).returncode


@contextmanager
def _lines_of(job: str, spec: dict[str, Any], engine: str, *more: str) -> Iterator[Iterator[dict[str, Any]]]:
    """What the job says of itself, as it says it. TransientError if it ends badly."""
    with (
        _spec_file(spec) as path,
        subprocess.Popen([*_command(job, path, engine), *more], stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            yield (json.loads(line) for line in process.stdout if line.startswith("{"))
        except BaseException:
            process.terminate()  # another run has taken over, or nobody listens: nothing it does now would count
            raise
    if process.returncode:
        raise TransientError(
            f"the job ended with exit code {process.returncode}", hint="what it said is above; call it again to go on"
        )


def _command(job: str, spec: Path, engine: str) -> list[str]:
    if importlib.util.find_spec(JOBS) is None:
        raise NotFoundError("the jobs are not installed", hint="install streamfleet[spark]")
    return [sys.executable, "-m", JOBS, job, "--spec", str(spec), "--engine", engine]


@contextmanager
def _spec_file(spec: dict[str, Any]) -> Iterator[Path]:
    """A spec as a file, as long as the job runs."""
    with tempfile.TemporaryDirectory(prefix="streamfleet-job-") as directory:
        path = Path(directory) / "spec.json"
        write_private(path, json.dumps(spec))
        yield path
