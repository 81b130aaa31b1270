"""`doctor`: looks at what the other commands need on this machine, and says what to do about what is missing.

Each check gives one line and never fails by itself. Needed things that are missing make exit code 1; things that only some
commands need are said, and no more.
"""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import socket
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from streamfleet_platform.cli import pages
from streamfleet_platform.cli.connection import ExitCode, Json, Server, TokenOption, given_connection, known_server_file
from streamfleet_platform.cli.files import HERE, FleetPath, Source
from streamfleet_platform.client import FleetClient
from streamfleet_platform.definitions.fleet import Fleet
from streamfleet_platform.definitions.loader import FLEET_FILE, load_fleet
from streamfleet_platform.definitions.tree import DirectoryTree
from streamfleet_platform.errors import FleetError, InvalidDefinitionError
from streamfleet_platform.model.quantities import bytes_text

LOWEST_FREE_BYTES = 2 * 2**30
CONNECT_SECONDS = 3.0
_PACKAGES = ("confluent-kafka", "rocksdict", "fastapi", "sqlmodel", "dagster", "pyspark")


@dataclass(frozen=True)
class Finding:
    """What one check says."""

    level: Literal["ok", "note", "bad"]
    what: str
    detail: str
    advice: str = ""


def doctor(
    source: Source = HERE,
    fleet: FleetPath = HERE,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="The server's data directory, to look at its disk and files."),
    ] = None,
    server: Server = None,
    token_file: TokenOption = None,
    as_json: Json = False,
) -> None:
    """Check this machine: versions, definitions, brokers, server and registry, disk, Java, modes of token files.

    Exit code 1 if something that is needed is missing.

    Example: streamfleet doctor --fleet fleets/production
    """
    found = [
        *_versions(),
        *_definitions(source / fleet),
        *_server(server, token_file),
        *_files(data),
        *_disk(data or source),
        *_java(),
    ]
    if as_json:
        pages.print_json([vars(each) for each in found])
    else:
        styles = {"ok": "green", "note": "yellow", "bad": "red"}
        for each in found:
            pages.print_line(f"{each.level:4} {each.what}: {each.detail}", styles[each.level])
            if each.advice:
                pages.print_line(f"       {each.advice}")
    raise typer.Exit(ExitCode.FAILED if any(each.level == "bad" for each in found) else ExitCode.OK)


def _versions() -> Iterator[Finding]:
    yield Finding("ok", "python", platform.python_version())
    yield Finding("ok", "streamfleet", importlib.metadata.version("streamfleet"))
    yield Finding("ok", "librdkafka", _librdkafka())
    for name in _PACKAGES:
        try:
            yield Finding("ok", name, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            yield Finding("note", name, "not installed", "see the extras of streamfleet: platform, dagster, spark")


def _librdkafka() -> str:
    import confluent_kafka

    return str(confluent_kafka.libversion()[0])


def _definitions(directory: Path) -> Iterator[Finding]:
    if not (directory / FLEET_FILE).is_file():
        yield Finding(
            "note", "definitions", f"there is no {directory / FLEET_FILE}", "name them with --source and --fleet"
        )
        return
    try:
        loaded = load_fleet(DirectoryTree(directory))
    except InvalidDefinitionError as error:
        yield Finding("bad", "definitions", f"{len(error.problems)} problems", "see `streamfleet validate`")
    except FleetError as error:
        yield Finding("bad", "definitions", error.fact, error.hint or "")
    else:
        yield Finding("ok", "definitions", f"{len(loaded.apps)} apps")
        yield from _brokers(loaded)


def _brokers(fleet: Fleet) -> Iterator[Finding]:
    for name, cluster in fleet.definition.spec.clusters.items():
        addresses = cluster.bootstrap.split(",")
        reached = [address for address in addresses if _answers(address)]
        if reached:
            yield Finding("ok", f"cluster {name}", f"{len(reached)} of {len(addresses)} addresses take connections")
        else:
            advice = "start it (`streamfleet broker start` for development), or correct spec.clusters of fleet.yaml"
            yield Finding("bad", f"cluster {name}", f"none of {len(addresses)} addresses takes connections", advice)


def _answers(address: str) -> bool:
    host, _, port = address.strip().rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS):
            return True
    except (OSError, ValueError):
        return False


def _server(server: str | None, token_file: Path | None) -> Iterator[Finding]:
    try:
        url, token = given_connection(server, token_file)
    except FleetError as error:
        yield Finding("note", "server", error.fact, error.hint or "")
        return
    with FleetClient(url, token=token, timeout=CONNECT_SECONDS) as client:
        try:
            fleet = client.fleet()
        except FleetError as error:
            yield Finding("bad" if server else "note", "server", error.fact, error.hint or "")
            return
        role = "acts" if fleet.is_leader else "stands by: another one acts"
        yield Finding("ok", "server", f"{url} has {fleet.apps} apps, its registry answers, it {role}")
        for problem in fleet.problems:
            yield Finding(
                "bad", "server", problem, "workers, and the last valid definitions, stay as they are meanwhile"
            )


def _files(data: Path | None) -> Iterator[Finding]:
    paths = [known_server_file()]
    if data is not None:
        paths += [data / "tokens.json", data / "connection.json"]
    for path in paths:
        if path.exists():
            if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                yield Finding("bad", str(path), "can be read by others", f"chmod 600 {path}, and make new tokens")
            else:
                yield Finding("ok", str(path), "only you can read it")


def _disk(directory: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(directory if directory.exists() else HERE).free
    detail = f"{bytes_text(free)} free at {directory.resolve()}"
    if free < LOWEST_FREE_BYTES:
        yield Finding("bad", "disk", detail, "stores and changelogs are files: make room, or use another --data")
    else:
        yield Finding("ok", "disk", detail)


def _java() -> Iterator[Finding]:
    java = shutil.which("java")
    if java is None:
        advice = "needed by the development broker and by Spark (17 or newer); `audit --engine local` does without"
        yield Finding("note", "java", "not found", advice)
        return
    said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=20, check=False).stderr
    yield Finding("ok", "java", said.splitlines()[0] if said else java)
