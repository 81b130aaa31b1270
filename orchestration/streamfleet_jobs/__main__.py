"""`python -m streamfleet_jobs audit|bootstrap`: reads a spec, runs a job, writes its results, says how it ended by its exit code.

    0   done; an audit found nothing wrong
    1   an audit found errors (or warnings, with --strict)
    2   the spec or the arguments are wrong
    3   something needed did not answer: run it again, it goes on where it was
    4   refused
    5   the job itself failed: a defect, with a traceback

Started by people, cron, and Dagster (through Pipes, which is told of the result when it is there).
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Annotated

import typer

from streamfleet_jobs.engines import EngineName
from streamfleet_jobs.errors import JobError, RefusedError, SpecError, UnavailableError
from streamfleet_jobs.progress import to_stderr

OK, FOUND, BAD_SPEC, UNAVAILABLE, REFUSED, DEFECT = 0, 1, 2, 3, 4, 5
_EXIT_CODES: dict[type[JobError], int] = {SpecError: BAD_SPEC, UnavailableError: UNAVAILABLE, RefusedError: REFUSED}

app = typer.Typer(
    name="streamfleet_jobs",
    help="Jobs over the state of apps: audits of changelogs, bootstraps of stores.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Spec = Annotated[
    Path, typer.Option("--spec", exists=True, dir_okay=False, readable=True, help="JSON file: what to work on")
]
Engine = Annotated[
    EngineName,
    typer.Option(
        "--engine",
        help="local: this process, no Java. spark-local: Spark in this process. "
        "spark-connect: the Spark Connect server that SPARK_REMOTE names (sc://host:15002).",
    ),
]


@app.command()
def audit(
    spec: Spec,
    engine: Engine = EngineName.LOCAL,
    strict: Annotated[bool, typer.Option("--strict", help="warnings, too, end with exit code 1")] = False,
) -> None:
    """Read an app's changelogs and say what is wrong with them. Results go to the spec's output directory:
    result.json, report.html, spec.json; a run that was cut off goes on where it was.
    """
    from streamfleet_jobs.audit.job import run

    with _told_errors():
        verdict = run(spec, engine, to_stderr)
    bad = ("errors", "unknown", "warnings") if strict else ("errors",)
    raise typer.Exit(FOUND if verdict in bad else OK)


@app.command()
def bootstrap(
    spec: Spec,
    engine: Engine = EngineName.SPARK_LOCAL,
    is_abort: Annotated[
        bool, typer.Option("--abort", help="put the group's offsets back to where they were before this run")
    ] = False,
) -> None:
    """Build an app's state from data at rest: store files, a full changelog, and a manifest that workers check."""
    from streamfleet_jobs.bootstrap.job import abort, run

    with _told_errors():
        if is_abort:
            abort(spec, to_stderr)
        else:
            run(spec, engine, to_stderr)


class _told_errors:  # noqa: N801 -- reads as a statement
    def __enter__(self) -> None: ...

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, JobError):
            to_stderr(f"error: {error}")
            code = next((code for kind, code in _EXIT_CODES.items() if isinstance(error, kind)), DEFECT)
            raise typer.Exit(code) from error
        if isinstance(error, Exception):
            to_stderr("".join(traceback.format_exception(error)))
            raise typer.Exit(DEFECT) from error  # never 1, which would say that an audit found errors


if __name__ == "__main__":
    app()
