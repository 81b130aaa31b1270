"""What Dagster is told, when a run of it started this process through Pipes: how it ended, as a message of the run.

Without Dagster's environment variables, or without its package, nothing happens.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamfleet_jobs.audit.result import AuditResult

_CONTEXT = "DAGSTER_PIPES_CONTEXT"


def tell_dagster(result: AuditResult) -> None:
    if _CONTEXT not in os.environ:
        return
    try:
        from dagster_pipes import open_dagster_pipes
    except ImportError:
        return
    with open_dagster_pipes() as pipes:
        pipes.report_custom_message(
            {
                "kind": "audit",
                "run_id": result.run_id,
                "verdict": result.verdict,
                "summary": result.summary,
                "findings": result.findings,
            }
        )
