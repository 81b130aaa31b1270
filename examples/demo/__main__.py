"""`make up` and `make down`: the whole product on this machine, and nothing left of it afterwards.

    up      a broker, three apps that feed one another, their load, the server with its console, Dagster; waits until all runs
    down    stops all of it and deletes what it wrote
    load    more orders for the apps, until time is up

All of it lies in build/up, or in the directory that is named.
Each step says what it does. Both may be repeated: what runs is left alone, what is gone is gone.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from examples.demo import load
from examples.demo.dagster_up import NotLoadedError
from examples.demo.fleet_up import Demonstration, NotUpError
from examples.demo.source import FLEET
from streamfleet_devbroker import BrokerError
from streamfleet_platform import FleetError
from streamfleet_platform.views import AppSummary

DIRECTORY = Path(__file__).resolve().parents[2] / "build" / "up"

console = Console()


def up(directory: Path) -> None:
    demonstration = Demonstration(directory, say)
    bootstrap_servers = demonstration.broker()
    demonstration.load(bootstrap_servers)
    say("starting the server")
    dagster = demonstration.dagster
    server, link = demonstration.server(bootstrap_servers, {"dagster": dagster.url})
    token = link.rpartition("#token=")[2]
    say("applying the definitions")
    demonstration.apply(server, token)
    say("starting Dagster")
    demonstration.start_dagster(server)
    apps = demonstration.apps(server, token)
    dagster.wait_until_loaded()
    show(apps)
    described = f"curl -H 'Authorization: Bearer {token}' {server}/v1/openapi.json"
    console.print(
        f"\n  console  [bold]{link}[/bold]\n  Dagster  [bold]{dagster.url}[/bold]\n  API      {described}   (docs/api.md)\n"
        f"  broker   [bold]{bootstrap_servers}[/bold]\n  stop     make down\n",
        highlight=False,
        soft_wrap=True,
    )
    source = demonstration.directory / "source" / "examples"
    console.print(
        "Three things to try:\n"
        "  1. .venv/bin/streamfleet query country-view country-view SE      the latest minute of a country, from whoever owns it\n"
        f"  2. make load RATE=20000 SECONDS=120{_elsewhere(directory)}                              "
        "more work: what the console says to it\n"
        f"  3. edit {_short(source / 'apps/country_view.py')}, then .venv/bin/streamfleet plan: what it would mean\n"
        f"     agree to it: .venv/bin/streamfleet lock --source {_short(source.parent)} --fleet {FLEET}, then plan and apply\n",
        highlight=False,
        soft_wrap=True,
    )


def down(directory: Path) -> None:
    Demonstration(directory, say).down()
    if directory.exists():
        shutil.rmtree(directory)
    say("nothing is left")


def show(apps: list[AppSummary]) -> None:
    table = Table(title="the fleet", title_justify="left")
    for column in ("app", "phase", "slots", "tasks", "lag", "owner"):
        table.add_column(column)
    for app in apps:
        lag = "unknown" if app.lag_records is None else f"{app.lag_records:,}"
        table.add_row(app.name, app.phase.value, f"{app.slots_ready} of {app.slots}", str(app.tasks), lag, app.owner)
    console.print(table)


def _elsewhere(directory: Path) -> str:
    return "" if directory == DIRECTORY else f" DIRECTORY={directory}"


def _short(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def say(message: str) -> None:
    print(f"== {message}", flush=True)


def more_load(arguments: list[str]) -> int:
    named = [Path(argument).resolve() for argument in arguments[:1] if not argument.startswith("-")]
    bootstrap_servers = Demonstration(named[0] if named else DIRECTORY, say).running_broker()
    if bootstrap_servers is None:
        print("error: nothing is up; make up", file=sys.stderr)
        return 1
    return load.main(["--bootstrap", bootstrap_servers, *arguments[len(named) :]])


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["load"]:
        return more_load(arguments[1:])
    commands = {"up": up, "down": down}
    if len(arguments) not in (1, 2) or arguments[0] not in commands:
        print(
            "usage: python -m examples.demo up|down [DIRECTORY], or load [DIRECTORY] [--rate N] [--seconds N]",
            file=sys.stderr,
        )
        return 2
    try:
        commands[arguments[0]](Path(arguments[1]).resolve() if len(arguments) == 2 else DIRECTORY)
    except (BrokerError, FleetError, NotLoadedError, NotUpError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # what was started outlives us by design
        print("\ninterrupted: what was started goes on; make up again, or make down", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
