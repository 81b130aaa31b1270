"""`server`, `up`, `down`: the server in the foreground, or in the background for a directory of definitions."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Annotated

import typer

from streamfleet_platform.cli import pages
from streamfleet_platform.cli.background import BackgroundServer, server_command
from streamfleet_platform.cli.connection import Json, KnownServer, errors_told, tell
from streamfleet_platform.cli.files import HERE, FleetPath, Source
from streamfleet_platform.client import FleetClient
from streamfleet_platform.errors import InvalidRequestError, TransientError
from streamfleet_platform.server.settings import ServerSettings

DEFAULT_PORT = 8400
TURN_SECONDS = ServerSettings.lease_seconds + 5
"""As long as a server that was killed may still count as the one that acts, and a little."""
WORKERS_SECONDS = 60.0

Data = Annotated[
    Path,
    typer.Option(
        "--data", metavar="DIR", envvar="STREAMFLEET_DATA", help="What the server keeps: registry, code, state, logs."
    ),
]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Where to answer; 0: any free port.")]
Links = Annotated[
    list[str] | None,
    typer.Option(
        "--link", metavar="NAME=URL", help="Where else to look, such as dagster=http://127.0.0.1:3000; repeat it."
    ),
]
Registry = Annotated[
    str | None,
    typer.Option(
        "--registry",
        metavar="URL",
        envvar="STREAMFLEET_REGISTRY",
        help="A database (default: SQLite below --data). With a password, set the variable: others can read command lines.",
    ),
]
Secrets = Annotated[
    Path | None,
    typer.Option(
        "--secrets", metavar="DIR", envvar="STREAMFLEET_SECRETS", help="Where secrets of the kind `file` are."
    ),
]
DATA = Path(".streamfleet")


def server(
    source: Source = HERE,
    fleet: FleetPath = HERE,
    data: Data = DATA,
    registry: Registry = None,
    host: Annotated[
        str, typer.Option("--host", help="Which address to listen on; anything but loopback is reachable by others.")
    ] = "127.0.0.1",
    port: Port = DEFAULT_PORT,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="A name that callers may use for this server; repeat it."),
    ] = None,
    tokens: Annotated[
        Path | None,
        typer.Option("--tokens", metavar="FILE", help="The tokens file (default: tokens.json below --data)."),
    ] = None,
    secrets: Secrets = None,
    link: Links = None,
) -> None:
    """Run the server: reconciles the fleet, serves API and console, until it is told to stop. Workers go on without it.

    Make a token first: streamfleet token create me --tokens .streamfleet/tokens.json --role admin

    Example: streamfleet server --source . --fleet fleets/production --data /var/lib/streamfleet
    """
    # registry and reconciler are for who serves, not for who asks: loaded here
    from streamfleet_platform.server.process import run_server

    with errors_told():
        run_server(
            ServerSettings(
                source=source,
                data=data,
                fleet=fleet.as_posix(),
                registry=registry,
                host=host,
                port=port,
                hosts=tuple(allow_host or ()),
                tokens=tokens,
                secrets=secrets,
                links=_parsed_links(link),
            )
        )


def up(
    source: Source = HERE,
    fleet: FleetPath = HERE,
    data: Data = DATA,
    port: Port = DEFAULT_PORT,
    registry: Registry = None,
    secrets: Secrets = None,
    link: Links = None,
    as_json: Json = False,
) -> None:
    """Start a server in the background, wait until it is ready, and print where to look. Twice is harmless.

    The other commands find it by themselves afterwards.

    Example: streamfleet up --fleet examples/fleet
    """
    with errors_told():
        background = BackgroundServer(data)
        with background.alone():
            known = background.running()
            if known is None:
                chosen = _checked_port(port) if port else _free_port()
                arguments = ["--source", source, "--fleet", fleet, "--data", data, "--port", chosen]
                arguments += [] if secrets is None else ["--secrets", secrets]
                for each in _parsed_links(link).items():
                    arguments += ["--link", "=".join(each)]
                tell(f"starting the server; its log is {background.log_file}")
                known = background.start(
                    server_command([str(each) for each in arguments]),
                    f"http://127.0.0.1:{chosen}",
                    {} if registry is None else {"STREAMFLEET_REGISTRY": registry},
                )
                _wait_until_it_acts(known)
            else:
                tell("the server runs already")
    _print_links(known, as_json=as_json)


def _wait_until_it_acts(known: KnownServer) -> None:
    """So that what is asked for next is done. Where another server lives, for the same registry, this one is not to act."""
    began, is_told = time.monotonic(), False
    with FleetClient(known.server, token=known.token) as client:
        while not client.fleet().is_leader:
            waited = time.monotonic() - began
            if waited > TURN_SECONDS:
                tell("another server acts for this registry; this one stands by")
                return
            if waited > 2 and not is_told:
                is_told = True
                tell(f"another server, killed or alive, holds the lease: waiting for it up to {TURN_SECONDS:.0f} s")
            time.sleep(0.1)


def _print_links(known: KnownServer, *, as_json: bool) -> None:
    console = f"{known.server}/#token={known.token}"
    if as_json:
        pages.print_json({"server": known.server, "console": console})
        return
    pages.print_line(f"console  {console}")
    pages.print_line("next     streamfleet plan; streamfleet apply; streamfleet status")


def down(
    data: Data = DATA,
    workers: Annotated[bool, typer.Option("--workers", help="Stop the workers it started, too.")] = False,
) -> None:
    """Stop the server that `up` started. Workers go on unless --workers is given. Twice is harmless.

    Example: streamfleet down --workers
    """
    with errors_told():
        if not data.is_dir():
            tell(f"there is nothing at {data}")
            return
        background = BackgroundServer(data)
        with background.alone():
            tell("the server has stopped" if background.stop() else "the server did not run")
            if workers:
                _stop_workers(ServerSettings(source=data, data=data).workers)


def _stop_workers(root: Path) -> None:
    """All of them, without changing what is wanted: the next server starts them again."""
    from streamfleet_platform.runtime.local import LocalRuntime, LocalSettings

    runtime = LocalRuntime(LocalSettings(root))
    # as the server that acted last: nobody else does now, and a newer number would lock the next one out
    token = runtime.newest_token()
    for worker in runtime.list():
        if worker.is_alive:
            runtime.stop(worker.app, worker.slot, token=token)
    deadline = time.monotonic() + WORKERS_SECONDS
    while alive := [f"{worker.app}/{worker.slot}" for worker in runtime.list() if worker.is_alive]:
        if time.monotonic() > deadline:
            raise TransientError(f"these workers have not ended: {', '.join(alive)}", hint="call it again")
        time.sleep(0.2)
    tell("all workers have stopped")


def _parsed_links(texts: list[str] | None) -> dict[str, str]:
    links: dict[str, str] = {}
    for text in texts or ():
        name, _, url = text.partition("=")
        if not name or not url.startswith(("http://", "https://")):
            raise InvalidRequestError(
                f"{text!r} is no link", hint="write NAME=URL, such as dagster=http://127.0.0.1:3000"
            )
        links[name] = url
    return links


def _checked_port(port: int) -> int:
    """Whoever listens there already would answer in the place of the server that is started, and be taken for it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise TransientError(
                f"port {port} cannot be used: {error.strerror}",
                hint="another server may run there, for another --data; choose another --port, or 0 for any free one",
            ) from error
    return port


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
