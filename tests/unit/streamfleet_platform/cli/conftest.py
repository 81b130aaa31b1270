"""The commands against the API over a fleet in memory; homes and tokens of a person who has nothing yet."""

from __future__ import annotations

import functools

import pytest
from tests.unit.streamfleet_platform.api.conftest import AppTransport, app, fleet, token_file, tokens
from typer.testing import CliRunner

from streamfleet_platform.cli import commands, connection
from streamfleet_platform.client import FleetClient

__all__ = ["app", "fleet", "token_file", "tokens"]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    for name in ("STREAMFLEET_SERVER", "STREAMFLEET_TOKEN", "STREAMFLEET_TOKEN_FILE", "STREAMFLEET_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run():
    """A command without any server."""

    def run(*arguments: object, **options):
        return CliRunner().invoke(commands, [str(each) for each in arguments], catch_exceptions=False, **options)

    return run


@pytest.fixture
def call(run, app, tokens, monkeypatch):
    """A command on the fleet, as an admin unless said otherwise."""
    transport = AppTransport(app)
    monkeypatch.setattr(connection, "FleetClient", functools.partial(FleetClient, transport=transport))

    def call(*arguments: object, who: str = "admin", **options):
        return run(*arguments, env={"STREAMFLEET_TOKEN": tokens[who]}, **options)

    yield call
    transport.close()
