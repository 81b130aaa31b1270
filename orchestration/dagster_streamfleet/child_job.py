"""Starts `python -m streamfleet_jobs` as a child process of a run: the command line, its spec and its results as files."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from streamfleet_platform.views import AuditReport

Engine = Literal["local", "spark-local", "spark-connect"]


def command(job: Literal["audit", "bootstrap"], directory: Path, spec: Mapping[str, Any], engine: str) -> Sequence[str]:
    """Writes the spec, readable by nobody else."""
    path = directory / "spec.in.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps(spec), "utf-8")
    return [sys.executable, "-m", "streamfleet_jobs", job, "--spec", str(path), "--engine", engine]


def audit_input(spec: Mapping[str, Any], run: str, results: Path) -> dict[str, Any]:
    """The server's spec, with what only who runs the job knows: a name for the run, and where its results go."""
    return {"run_id": run, **spec, "output": str(results)}


def audit_report(directory: Path) -> dict[str, Any] | None:
    """What an audit left behind; None: it has no result."""
    result, page = directory / "result.json", directory / "report.html"
    if not result.is_file():
        return None
    report: dict[str, Any] = json.loads(result.read_bytes())
    if page.is_file():
        report["report_html"] = page.read_text("utf-8")
    return {name: value for name, value in report.items() if name in AuditReport.model_fields}
