"""`plan`, `apply` and the verbs of an app: start, stop, scale, probe, reset, upgrade, retire."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from streamfleet_platform import views
from streamfleet_platform.cli import pages
from streamfleet_platform.cli.connection import AppArgument, ExitCode, Json, Server, TokenOption, connected, tell
from streamfleet_platform.cli.following import exit_code, finish, followed
from streamfleet_platform.errors import ConfirmationError

Ref = Annotated[
    str | None,
    typer.Option(
        "--ref", metavar="REF", help="A branch, tag or commit of the definitions (default: what the server follows)."
    ),
]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Watch until it is over.")]
Intent = Annotated[
    str | None,
    typer.Option("--intent", metavar="ID", help="Names this intent: the same one again does nothing twice."),
]
Confirm = Annotated[str | None, typer.Option("--confirm", metavar="APP", help="The app's name, to be asked nothing.")]


def plan(ref: Ref = None, server: Server = None, token_file: TokenOption = None, as_json: Json = False) -> None:
    """Show what applying the definitions would do: changes, verdicts, costs, state that would be lost.

    Exit code 3 if there is something to do, 0 if not, 1 if the definitions are not right.

    Example: streamfleet plan --ref my-branch
    """
    with connected(server, token_file) as client:
        planned = client.plan(ref)
        if as_json:
            pages.print_json(planned)
        else:
            _print_plan(planned)
    if planned.problems:
        raise typer.Exit(ExitCode.FAILED)
    raise typer.Exit(ExitCode.PENDING if _pending(planned) else ExitCode.OK)


def _pending(planned: views.PlanView) -> list[views.AppChange]:
    """What is to be done, by apply or by a person."""
    return [change for change in planned.changes if change.blocked or change.action not in ("none", "absent")]


def _print_plan(planned: views.PlanView) -> None:
    for problem in planned.problems:
        pages.print_line(problem, "red")
    for warning in planned.warnings:
        pages.print_line(f"! {warning}", "yellow")
    for change in planned.changes:
        if change.action != "none" or change.blocked:
            _print_change(change)
    if not planned.problems and not _pending(planned):
        pages.print_line(f"nothing to do: the fleet is as {planned.revision[:20]} says")


def _print_change(change: views.AppChange) -> None:
    verdict = "" if change.verdict == "UNCHANGED" else f": {change.verdict}"
    action = "" if change.action == "none" else f"{change.action} "
    pages.print_line(f"{action}{change.app}{verdict}", "bold")
    for line in (*change.changes, *change.cost):
        pages.print_line(f"  {line}")
    for title, names in (
        ("creates", change.topics_created),
        ("leaves behind", change.topics_orphaned),
        ("is noticed by", change.downstream),
    ):
        if names:
            pages.print_line(f"  {title}: {', '.join(names)}")
    if change.lost_state:
        pages.print_line(f"  loses the state of {', '.join(change.lost_state)}", "red")
    if change.blocked:
        pages.print_line(f"  blocked: {change.blocked}", "red")


def apply(
    apps: Annotated[list[str] | None, typer.Argument(metavar="[APP]...", help="Only these (default: all).")] = None,
    ref: Ref = None,
    accept_lost_state: Annotated[
        list[str] | None,
        typer.Option("--accept-lost-state", metavar="APP", help="This app's stores may lose their content; repeat it."),
    ] = None,
    wait: Wait = True,
    intent: Intent = None,
    server: Server = None,
    token_file: TokenOption = None,
    as_json: Json = False,
) -> None:
    """Make the fleet what the definitions say: deploy what is new, upgrade what changed.

    Example: streamfleet apply

    Example: streamfleet apply orders --ref v42
    """
    with connected(server, token_file) as client:
        result = client.apply(
            ref, apps=tuple(apps or ()), accept_lost_state=tuple(accept_lost_state or ()), intent_id=intent
        )
        if not as_json:
            _print_plan(result.plan)
        ended = [followed(client, begun) if wait else client.operation(begun.id) for begun in result.operations]
    if as_json:
        content = result.model_dump(mode="json")
        pages.print_json({**content, "operations": [each.model_dump(mode="json") for each in ended]})
    for each in ended if not as_json else ():
        pages.print_line(f"{each.kind} of {each.app}: {each.state}" + (f": {each.error}" if each.error else ""))
    blocked = any(change.blocked for change in result.plan.changes) or bool(result.plan.problems)
    codes = [ExitCode.FAILED if blocked else ExitCode.OK, *(exit_code(each.state) for each in ended)]
    raise typer.Exit(ExitCode.FAILED if ExitCode.FAILED in codes else max(codes))


def start(
    app: AppArgument,
    wait: Wait = True,
    intent: Intent = None,
    server: Server = None,
    token_file: TokenOption = None,
    as_json: Json = False,
) -> None:
    """Start an app that was stopped.

    Example: streamfleet start orders
    """
    with connected(server, token_file) as client:
        finish(client, client.start(app, intent_id=intent), as_json=as_json, wait=wait)


def stop(
    app: AppArgument,
    wait: Wait = True,
    intent: Intent = None,
    server: Server = None,
    token_file: TokenOption = None,
    as_json: Json = False,
) -> None:
    """Stop an app: its workers commit, close and end. State and offsets stay.

    Example: streamfleet stop orders
    """
    with connected(server, token_file) as client:
        finish(client, client.stop(app, intent_id=intent), as_json=as_json, wait=wait)


def scale(
    app: AppArgument,
    slots: Annotated[int, typer.Argument(metavar="SLOTS", min=1, max=1000, help="How many workers it should have.")],
    reason: Annotated[str, typer.Option("--reason", help="Why, for those who read the log later.")] = "",
    wait: Wait = True,
    intent: Intent = None,
    server: Server = None,
    token_file: TokenOption = None,
    as_json: Json = False,
) -> None:
    """Give an app more workers, or fewer. Tasks move when their state is ready at the new place.

    Example: streamfleet scale orders 4 --reason "sale begins at noon"
    """
    with connected(server, token_file) as client:
        finish(client, client.scale(app, slots, reason=reason, intent_id=intent), as_json=as_json, wait=wait)


def probe(
    app: AppArgument,
    wait: Wait = True,
    intent: Intent = None,
    server: Server = None,
    token_file: TokenOption = None,
    as_json: Json = False,
) -> None:
    """Ask for a rebalance now, so that tasks move to warm-ups that have caught up.

    Example: streamfleet probe orders
    """
    with connected(server, token_file) as client:
        finish(client, client.probe(app, intent_id=intent), as_json=as_json, wait=wait)


def upgrade(
    app: AppArgument,
    ref: Ref = None,
    accept_lost_state: Annotated[
        bool, typer.Option("--accept-lost-state", help="Its stores may lose their content.")
    ] = False,
    wait: Wait = True,
    intent: Intent = None,
    server: Server = None,
    token_file: TokenOption = None,
    as_json: Json = False,
) -> None:
    """Bring an app to another revision, one worker at a time; back to the last good one if that fails.

    Example: streamfleet upgrade orders --ref v43
    """
    with connected(server, token_file) as client:
        begun = client.upgrade(app, ref=ref, accept_lost_state=accept_lost_state, intent_id=intent)
        finish(client, begun, as_json=as_json, wait=wait)


def reset(
    app: AppArgument,
    confirm: Confirm = None,
    input_topics: Annotated[
        Literal["earliest", "latest"], typer.Option(help="Where it begins again in its input topics.")
    ] = "earliest",
    preview_only: Annotated[bool, typer.Option("--preview", help="Only show what would be done.")] = False,
    wait: Wait = True,
    intent: Intent = None,
    server: Server = None,
    token_file: TokenOption = None,
    as_json: Json = False,
) -> None:
    """Let an app forget everything and begin again: offsets, internal topics, local state. Shows first what that means.

    Example: streamfleet reset orders --preview

    Example: streamfleet reset orders --confirm orders
    """
    with connected(server, token_file) as client:
        preview = client.reset_preview(app)
        if preview_only and as_json:
            pages.print_json(preview)
        elif preview_only or not as_json:
            for line in preview.lines:
                pages.print_line(line)
        if preview_only:
            return
        word = confirm or _asked(f"this cannot be undone; type {app} to reset it")
        begun = client.reset(app, confirm=word, preview=preview.id, input_topics=input_topics, intent_id=intent)
        finish(client, begun, as_json=as_json, wait=wait)


def retire(
    app: AppArgument,
    confirm: Confirm = None,
    undo_window_seconds: Annotated[
        int | None,
        typer.Option(
            "--undo-window", metavar="SECONDS", min=0, help="How long its state is kept (default: as defined)."
        ),
    ] = None,
    wait: Wait = True,
    intent: Intent = None,
    server: Server = None,
    token_file: TokenOption = None,
    as_json: Json = False,
) -> None:
    """End an app for good: stop it, and delete its internal topics, group and state when the undo window is over.

    Example: streamfleet retire orders --confirm orders --undo-window 0
    """
    with connected(server, token_file) as client:
        word = confirm or _asked(f"this ends {app} for good; type its name to retire it")
        begun = client.retire(app, confirm=word, undo_window_seconds=undo_window_seconds, intent_id=intent)
        finish(client, begun, as_json=as_json, wait=wait)


OperationArgument = Annotated[str, typer.Argument(metavar="OPERATION", help="Its id; see `streamfleet describe APP`.")]


def approve(
    operation: OperationArgument,
    wait: Wait = True,
    server: Server = None,
    token_file: TokenOption = None,
    as_json: Json = False,
) -> None:
    """Give your word for an operation that asks for it, such as a reset that Git asks for.

    Example: streamfleet approve 4f1c22d09a7b
    """
    with connected(server, token_file) as client:
        finish(client, client.approve(operation), as_json=as_json, wait=wait)


def cancel(
    operation: OperationArgument, server: Server = None, token_file: TokenOption = None, as_json: Json = False
) -> None:
    """Call off an operation: one that has not begun, or one under way that can still be undone.

    Example: streamfleet cancel 4f1c22d09a7b
    """
    with connected(server, token_file) as client:
        ended = client.cancel(operation)
        if as_json:
            pages.print_json(ended)
        elif ended.state.is_over:
            pages.print_line(f"{ended.kind} of {ended.app}: {ended.state}")
        else:
            pages.print_line(f"{ended.kind} of {ended.app} is to be undone; see `streamfleet describe {ended.app}`")


def _asked(question: str) -> str:
    """A person's word. Without a person there is none."""
    if not sys.stdin.isatty():
        raise ConfirmationError("there is nobody to ask", hint="say the app's name with --confirm")
    tell(question)
    return str(typer.prompt("app", err=True))
