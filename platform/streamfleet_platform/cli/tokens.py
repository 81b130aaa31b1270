"""`token create`, `list`, `revoke`: who may call the server's API. Works on the server's tokens file, so on its machine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

import typer

from streamfleet_platform.api.token_file import TokenFile
from streamfleet_platform.cli import pages
from streamfleet_platform.cli.connection import Json, errors_told, tell
from streamfleet_platform.errors import InvalidRequestError

commands = typer.Typer(no_args_is_help=True, help="Make, list and revoke the tokens that a server accepts.")

TokensFile = Annotated[
    Path,
    typer.Option("--tokens", metavar="FILE", envvar="STREAMFLEET_TOKENS", help="The server's tokens file."),
]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Who it is for; the event log names it.")]


@commands.command()
def create(
    name: NameArgument,
    tokens: TokensFile,
    role: Annotated[
        Literal["viewer", "operator", "admin"], typer.Option(help="viewer looks, operator runs apps.")
    ] = "viewer",
    team: Annotated[
        list[str] | None, typer.Option("--team", metavar="OWNER", help="Acts for apps of this owner; repeat it.")
    ] = None,
    all_teams: Annotated[bool, typer.Option("--all-teams", help="Acts for apps of every owner.")] = False,
    days: Annotated[
        int | None, typer.Option(min=1, max=3650, help="Good for so many days (default: until revoked).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a token and print it, this once: the server keeps only its hash. A running server accepts it at once.

    Example: streamfleet token create ci --tokens data/tokens.json --role operator --team payments
    """
    with errors_told():
        if all_teams and team:
            raise InvalidRequestError("--team and --all-teams exclude each other")
        expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
        token = TokenFile(tokens).create(name, role, "all" if all_teams else tuple(team or ()), expires_at)
    if as_json:
        pages.print_json({"name": name, "role": role, "token": token})
    else:
        tell(f"token of {name}, {role}; it is not shown again:")
        print(token)


@commands.command("list")
def list_tokens(tokens: TokensFile, as_json: Json = False) -> None:
    """List the tokens, without what it takes to use them.

    Example: streamfleet token list --tokens data/tokens.json
    """
    with errors_told():
        entries = TokenFile(tokens).entries()
    if as_json:
        pages.print_json([entry.model_dump(mode="json", exclude={"sha256"}) for entry in entries])
        return
    pages.print_table(
        "",
        ("NAME", "ROLE", "TEAMS", ">MADE", "UNTIL"),
        (
            (
                entry.name,
                entry.role,
                entry.teams if entry.teams == "all" else ", ".join(entry.teams),
                pages.age(entry.created_at),
                "revoked" if entry.expires_at is None else entry.expires_at.isoformat(timespec="minutes"),
            )
            for entry in entries
        ),
    )


@commands.command()
def revoke(name: NameArgument, tokens: TokensFile) -> None:
    """Make a token worthless, from now on.

    Example: streamfleet token revoke ci --tokens data/tokens.json
    """
    with errors_told():
        TokenFile(tokens).revoke(name)
    tell(f"revoked: {name}")
