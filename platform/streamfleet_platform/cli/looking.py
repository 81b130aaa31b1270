"""`status`, `describe`, `logs`, `query`: what the fleet looks like now."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from streamfleet_platform import views
from streamfleet_platform.cli import pages
from streamfleet_platform.cli.connection import AppArgument, Json, Server, TokenOption, connected
from streamfleet_platform.client import FleetClient


def status(
    server: Server = None,
    token_file: TokenOption = None,
    as_json: Json = False,
    app: Annotated[str | None, typer.Argument(metavar="[APP]", help="Only this app.")] = None,
) -> None:
    """Show every app: its phase and why, slots, lag, what is being done to it.

    Example: streamfleet status

    Example: streamfleet status orders --json
    """
    with connected(server, token_file) as client:
        fleet = client.fleet()
        apps = [each for each in client.apps() if app in (None, each.name)]
        if app is not None and not apps:
            client.app(app)  # says that it is not there
        if as_json:
            pages.print_json(
                {"fleet": fleet.model_dump(mode="json"), "apps": [each.model_dump(mode="json") for each in apps]}
            )
            return
        _print_fleet(fleet)
        _print_apps(apps)


def _print_fleet(fleet: views.FleetView) -> None:
    role = "" if fleet.is_leader else "; another server acts, this one stands by"
    pages.print_line(f"fleet {fleet.name} at {(fleet.revision or 'nothing applied yet')[:20]}{role}")
    for problem in fleet.problems:
        pages.print_line(f"! {problem}", "red")


def _print_apps(apps: list[views.AppSummary]) -> None:
    if not apps:
        pages.print_line("no apps yet: `streamfleet plan` shows what there could be, `streamfleet apply` makes it so")
        return
    columns = ("APP", "OWNER", "PHASE", ">FOR", ">SLOTS", ">TASKS", ">LAG", "DOING", "WHY")
    pages.print_table(
        "",
        columns,
        (
            [
                each.name,
                each.owner,
                pages.phase(each),
                pages.age(each.phase_since),
                f"{each.slots_ready}/{each.slots}",
                each.tasks,
                pages.count(each.lag_records),
                _doing(each),
                each.reason + (f" ({each.drift} differences)" if each.drift else ""),
            ]
            for each in apps
        ),
    )


def _doing(app: views.AppSummary) -> str:
    if app.operation is None or app.operation.state.is_over:
        return ""
    return f"{app.operation.kind}: {app.operation.step or app.operation.state}"


def describe(
    app: AppArgument,
    server: Server = None,
    token_file: TokenOption = None,
    as_json: Json = False,
    provenance: Annotated[
        bool, typer.Option("--provenance", help="Every setting, and which file and line gave it.")
    ] = False,
) -> None:
    """Show all about an app: workers, where its tasks run, topics, stores, scaling, what happened last.

    Example: streamfleet describe orders

    Example: streamfleet describe orders --provenance
    """
    with connected(server, token_file) as client:
        if provenance:
            _print_provenance(client, app, as_json=as_json)
            return
        detail = client.app(app)
        if as_json:
            pages.print_json(detail)
            return
        _print_app(detail)
        _print_history(client, app)


def _print_provenance(client: FleetClient, app: str, *, as_json: bool) -> None:
    values = client.provenance(app)
    if as_json:
        pages.print_json([{"path": path, "value": value, "place": place} for path, value, place in values])
    else:
        pages.print_table(f"settings of {app}", ("SETTING", "VALUE", "FROM"), values)


def _print_app(app: views.AppDetail) -> None:
    pages.print_line(f"{app.name}: {app.phase} for {pages.age(app.phase_since)}; {app.reason}".rstrip("; "), "bold")
    facts = [
        ("owner", app.owner),
        ("tier", app.tier or "none"),
        ("cluster", app.cluster),
        ("application id", f"{app.application_id}, generation {app.generation}"),
        ("revision", app.revision),
        ("topology", app.topology_hash),
        ("slots", f"{app.slots_ready} of {app.slots} ready, from {app.min_slots} to {app.max_slots}"),
        ("reads from", ", ".join(app.upstream) or "no other app"),
        ("read by", ", ".join(app.downstream) or "no other app"),
    ]
    pages.print_table("", ("", ""), facts)
    for difference in app.drift_details:
        pages.print_line(f"! {difference}", "red")
    if app.scaling is not None:
        pages.print_line(f"scaling: {app.scaling.action} to {app.scaling.slots}: {app.scaling.reason}")
    pages.print_table(
        "workers",
        (">SLOT", "STATE", "ENGINE", ">RESTARTS", "UP", "WHY"),
        (
            (
                worker.slot,
                worker.state,
                worker.client_state or "?",
                worker.restarts,
                pages.age(worker.started_at),
                worker.reason or "",
            )
            for worker in app.workers
        ),
    )
    pages.print_table(
        "tasks",
        ("TASK", "ROLE", ">SLOT", "STATE", ">LAG", ">TO RESTORE"),
        (
            (
                task.id,
                task.role,
                task.slot,
                task.state,
                pages.count(task.lag_records),
                "" if task.restore_remaining is None else pages.count(task.restore_remaining),
            )
            for task in app.placement
        ),
    )
    pages.print_table(
        "topics",
        ("TOPIC", "ROLE", ">PARTITIONS", ">RECORDS", ">BYTES", "DIFFERS"),
        (
            (
                topic.name,
                topic.role,
                pages.count(topic.partitions),
                pages.count(topic.end_offsets),
                pages.size(topic.bytes),
                "; ".join(topic.drift),
            )
            for topic in app.topics
        ),
    )
    pages.print_table(
        "stores",
        ("STORE", "KIND", ">BYTES", "CHANGELOG"),
        ((store.name, store.kind, pages.size(store.bytes), store.changelog or "none") for store in app.stores),
    )


def _print_history(client: FleetClient, app: str) -> None:
    pages.print_table(
        "operations",
        ("ID", "KIND", "STATE", "STEP", ">AGO", "WHY"),
        (
            (each.id, each.kind, pages.operation_state(each), each.step or "", pages.age(each.created_at), each.reason)
            for each in client.operations(app, limit=5)
        ),
    )
    pages.print_table(
        "events",
        (">AGO", "WHAT", "BY", ""),
        ((pages.age(each.at), each.kind, each.actor, each.message) for each in client.events(app, limit=10)),
    )


def logs(
    app: AppArgument,
    slot: Annotated[int | None, typer.Option("--slot", min=0, help="Of this slot's worker (default: of all).")] = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, max=5000, help="The last so many of each.")] = 100,
    server: Server = None,
    token_file: TokenOption = None,
) -> None:
    """Show the last lines that an app's workers logged.

    Example: streamfleet logs orders --slot 0 -n 50
    """
    with connected(server, token_file) as client:
        slots = [worker.slot for worker in client.app(app).workers] if slot is None else [slot]
        for each in slots:
            text = client.logs(app, each, lines)
            for line in text.splitlines():
                pages.print_line(line if len(slots) == 1 else f"{each}: {line}")


Isolation = Literal["read_uncommitted", "read_committed"]


def query(
    app: AppArgument,
    store: Annotated[str, typer.Argument(metavar="STORE", help="One of its stores; see `streamfleet describe APP`.")],
    key: Annotated[str, typer.Argument(metavar="KEY", help="As text; keys of other serdes as of docs/queries.md.")],
    stale: Annotated[
        bool | None,
        typer.Option(
            "--stale/--owner-only",
            help="A standby's answer will do, or only the owner's (default: a standby if there is no owner).",
        ),
    ] = None,
    isolation: Annotated[Isolation | None, typer.Option(help="Which of its writes to see.")] = None,
    server: Server = None,
    token_file: TokenOption = None,
    as_json: Json = False,
) -> None:
    """Ask a store of a running app for a key, wherever its task runs.

    Example: streamfleet query clicks clicks-per-user alice
    """
    options: dict[str, Any] = {} if stale is None else {"stale": str(stale).lower()}
    if isolation is not None:
        options["isolation"] = isolation
    with connected(server, token_file) as client:
        answer = client.query(app, store, key, **options)
        if as_json:
            pages.print_json(answer)
            return
        for row in answer.get("rows", [answer]):
            window = row.get("window")
            at = "" if window is None else f" [{window.get('start')}, {window.get('end')})"
            pages.print_line(f"{row.get('key')}{at} = {row.get('value')}")
        if answer.get("stale"):
            pages.print_line(
                f"a standby said so, {pages.count(answer.get('lag_records'))} records and {answer.get('age_ms')} ms behind",
                "yellow",
            )
