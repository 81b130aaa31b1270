"""Which server a command speaks to, and as whom; and what becomes of errors. Used by every command.

The address is --server, STREAMFLEET_SERVER, or what `streamfleet up` wrote; the token is that of --token-file, STREAMFLEET_TOKEN,
or what `up` wrote for this address. A token is never an argument: other users of the machine could read it.
"""

from __future__ import annotations

import enum
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel, ConfigDict, ValidationError

from streamfleet_platform.client import DEFAULT_URL, FleetClient
from streamfleet_platform.errors import CompileError, FleetError, InvalidRequestError

Server = Annotated[
    str | None,
    typer.Option(
        "--server", metavar="URL", envvar="STREAMFLEET_SERVER", help="The server (default: what `up` started)."
    ),
]
TokenOption = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        envvar="STREAMFLEET_TOKEN_FILE",
        help="A file with the token. STREAMFLEET_TOKEN holds one itself (default: what `up` wrote).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="The answer as JSON, for programs.")]
AppArgument = Annotated[str, typer.Argument(metavar="APP", help="The app's name; see `streamfleet status`.")]


class ExitCode(enum.IntEnum):
    OK = 0
    FAILED = 1
    MISUSED = 2
    PENDING = 3


class KnownServer(BaseModel):
    """What `up` leaves for the other commands."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    server: str
    token: str


def known_server_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "streamfleet" / "connection.json"


def known_server() -> KnownServer | None:
    """None if there is none. One that others could have read or written is not used."""
    path = known_server_file()
    try:
        status = path.stat()
        text = path.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InvalidRequestError(f"{path} cannot be read: {error.strerror or error}") from error
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InvalidRequestError(f"{path} can be read by others", hint=f"chmod 600 {path}, and make a new token")
    try:
        return KnownServer.model_validate_json(text)
    except ValidationError:
        raise InvalidRequestError(f"{path} is damaged", hint="remove it, and run `streamfleet up` again") from None


def write_private(path: Path, text: str) -> None:
    """For the user alone, whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    partial.replace(path)


@contextmanager
def connected(server: str | None, token_file: Path | None) -> Iterator[FleetClient]:
    """A client; whatever the server refuses ends the command with a sentence."""
    with errors_told():
        url, token = given_connection(server, token_file)
        with FleetClient(url, token=token) as client:
            yield client


def given_connection(server: str | None, token_file: Path | None) -> tuple[str, str]:
    """Address and token, as said, as set, or as `up` left them."""
    known = known_server()
    url = (server or (DEFAULT_URL if known is None else known.server)).rstrip("/")
    token = _given_token(token_file) or (known.token if known is not None and url == known.server else None)
    if token is None:
        if known is None and server is None:
            raise InvalidRequestError(
                f"no server was started here, and there is no token for {url}",
                hint="`streamfleet up` starts one; for a server elsewhere give --server, and STREAMFLEET_TOKEN or --token-file",
            )
        raise InvalidRequestError(
            f"there is no token for {url}", hint="set STREAMFLEET_TOKEN, or name a file with --token-file"
        )
    return url, token


def _given_token(token_file: Path | None) -> str | None:
    if token_file is None:
        return os.environ.get("STREAMFLEET_TOKEN", "").strip() or None
    try:
        token = token_file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"the token file {token_file} cannot be read: {error}") from error
    if not token or len(token.split()) != 1 or not token.isascii():
        raise InvalidRequestError(f"the token file {token_file} holds no token", hint="one word on one line")
    return token


@contextmanager
def errors_told() -> Iterator[None]:
    """Expected errors as sentences on standard error and exit code 1; anything else is a defect and keeps its trace."""
    try:
        yield
    except FleetError as error:
        tell(f"error: {error}")
        if isinstance(error, CompileError) and error.traceback_tail:
            tell(error.traceback_tail.rstrip())
        raise typer.Exit(ExitCode.FAILED) from error


def tell(message: str) -> None:
    """To people who watch, not to what reads the result."""
    print(message, file=sys.stderr, flush=True)
