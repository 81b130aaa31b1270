"""The commands `streamfleet broker start|stop|status|reset`.

Mounted by the engine's `streamfleet` command when this package is installed. Progress goes to standard error, so
that the one thing a script wants (the address) is all of standard output. Exit codes: 0 done, 1 refused, 2 misused,
3 not running.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from streamfleet_devbroker.errors import BrokerError
from streamfleet_devbroker.service import BrokerService, BrokerStatus

NOT_RUNNING = 3

app = typer.Typer(
    no_args_is_help=True,
    help="A real Apache Kafka on this machine, for development. Nothing needs to be installed first.",
)


@app.command()
def start(
    port: Annotated[
        int | None,
        typer.Option(
            min=1, max=65533, help="Port of the first node, the others follow. [default: as last time, or 9092]"
        ),
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(min=1, max=3, help="1, or 3 for one cluster of three. [default: as last time, or 1]")
    ] = None,
) -> None:
    """Start the broker in the background, unless it runs already, and print its address.

    The first start fetches Kafka's jars (44 MB) into your cache directory; later ones take two to four seconds.
    """
    with _errors_told():
        status = BrokerService().start(_tell, nodes=nodes, port=port)
        _describe(status)
        if status.asked:
            print(status.asked.bootstrap_servers)


@app.command()
def stop() -> None:
    """Stop the broker and keep its data. Stopping a broker that is not there is no error."""
    with _errors_told():
        BrokerService().stop(_tell)


@app.command()
def status() -> None:
    """Say whether the broker runs and where. Exits with 0 when it answers, with 3 when it does not."""
    with _errors_told():
        found = BrokerService().status()
    if found.running and found.asked:
        _describe(found)
        print(found.asked.bootstrap_servers)
        return
    asked = found.asked.nodes if found.asked else 1
    _tell("the broker is not running" if not found.pids else f"{len(found.pids)} of {asked} nodes run, not all answer")
    _tell("start it with: streamfleet broker start")
    raise typer.Exit(NOT_RUNNING)


@app.command()
def reset(
    yes: Annotated[bool, typer.Option("--yes", help="Really delete: there is no way back.")] = False,
) -> None:
    """Stop the broker and delete everything in it: topics, records, consumer groups."""
    if not yes:
        _tell("this deletes every topic, record and offset of the development broker; say --yes to do it")
        raise typer.Exit(2)
    with _errors_told():
        BrokerService().reset(_tell)


def _describe(status: BrokerStatus) -> None:
    _tell(f"process {', '.join(map(str, status.pids))}; log {', '.join(map(str, status.log_paths))}")


def _tell(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


@contextmanager
def _errors_told() -> Iterator[None]:
    try:
        yield
    except BrokerError as error:
        _tell(f"error: {error}")
        raise typer.Exit(1) from error
