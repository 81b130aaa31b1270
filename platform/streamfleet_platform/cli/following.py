"""An operation while it runs: a bar that moves on a terminal, a line per step elsewhere. Used by whatever begins one."""

from __future__ import annotations

import re
import sys

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from streamfleet_platform import views
from streamfleet_platform.cli import pages
from streamfleet_platform.cli.connection import ExitCode, tell
from streamfleet_platform.client import FleetClient
from streamfleet_platform.model.operation import OperationState, StepState

_PAST = (StepState.DONE, StepState.SKIPPED)


_NUMBER = re.compile(r"\d+")
UNDO_WINDOW = "wait-for-undo"
"""The step of a retirement that waits for days, in case somebody calls it off: nobody watches that."""


def finish(client: FleetClient, begun: views.OperationRef, *, as_json: bool, wait: bool) -> None:
    """Wait for it unless told otherwise, show how it ended, and end the command with that."""
    ended = followed(client, begun) if wait else client.operation(begun.id)
    window = _undo_window(ended)
    if as_json:
        pages.print_json(ended)
    elif ended.state is OperationState.ASKING:
        pages.print_line(f"{ended.kind} of {ended.app} asks for a person: {ended.reason}")
        pages.print_line(f"  give your word with `streamfleet approve {ended.id}`")
    elif ended.state.is_over:
        pages.print_line(f"{ended.kind} of {ended.app}: {ended.state}" + (f": {ended.error}" if ended.error else ""))
    elif window is not None:
        pages.print_line(f"{ended.kind} of {ended.app}: stopped, and {window.detail}")
        pages.print_line(f"  `streamfleet cancel {ended.id}` brings it back")
    else:
        pages.print_line(f"{ended.kind} of {ended.app} has begun: operation {ended.id}")
    raise typer.Exit(exit_code(ended.state))


def exit_code(state: OperationState) -> ExitCode:
    if state is OperationState.ASKING:
        return ExitCode.PENDING
    return ExitCode.OK if state is OperationState.SUCCEEDED or not state.is_over else ExitCode.FAILED


def followed(client: FleetClient, begun: views.OperationRef) -> views.OperationView:
    """The operation at its end, or in its undo window. Ctrl-C stops watching, not the operation."""
    watch = _Bar() if sys.stderr.isatty() else _Lines()
    last: views.OperationView | None = None
    try:
        with watch:
            for last in client.follow(begun.id):
                watch.show(last)
                if _undo_window(last) is not None:
                    break
    except KeyboardInterrupt:
        tell(f"\noperation {begun.id} goes on; look at it with `streamfleet describe {begun.app}`")
        raise typer.Exit(ExitCode.FAILED) from None
    assert last is not None
    return last


def _undo_window(operation: views.OperationView) -> views.StepView | None:
    """While it is open. A window without length has no such moment: its step says nothing before it is done."""
    steps = (step for step in operation.steps if step.name == UNDO_WINDOW)
    return next((step for step in steps if step.state is StepState.RUNNING and step.detail), None)


class _Lines:
    """For logs: each step when it begins, when it waits for something else than before, and when it ends. Numbers that run are no
    news.
    """

    def __init__(self) -> None:
        self._told: set[tuple[str, StepState, str]] = set()

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def show(self, operation: views.OperationView) -> None:
        for step in operation.steps:
            at = (step.name, step.state, _NUMBER.sub("", step.detail))
            if step.state is not StepState.PENDING and at not in self._told:
                self._told.add(at)
                tell(f"{operation.kind} {operation.app}: {step.name} {step.state}" + _after_colon(step.detail))


class _Bar:
    """For people at a terminal."""

    def __init__(self) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeElapsedColumn(),
            console=Console(stderr=True, highlight=False),
            transient=True,
        )
        self._task = self._progress.add_task("", total=1)

    def __enter__(self) -> None:
        self._progress.start()

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, operation: views.OperationView) -> None:
        done = sum(step.state in _PAST for step in operation.steps)
        now = next((step for step in operation.steps if step.state is StepState.RUNNING), None)
        doing = operation.state.value if now is None else now.name + _after_colon(now.detail)
        description = pages.plain(f"{operation.kind} {operation.app}: {doing}").plain
        self._progress.update(self._task, description=description, completed=done, total=max(1, len(operation.steps)))


def _after_colon(detail: str) -> str:
    return f": {detail}" if detail else ""
