"""The API over a fleet in memory, without a socket: tokens of every kind, and a client that any of them can be given."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import httpx
import pytest
from fastapi import FastAPI
from tests.unit.streamfleet_platform.api.fake_fleet import FakeFleet

from streamfleet_platform.api import TokenFile, create_app
from streamfleet_platform.client import FleetClient

TOKENS = {
    "viewer": ("viewer", "all"),
    "web-viewer": ("viewer", ("web",)),
    "operator": ("operator", ("payments",)),
    "web-operator": ("operator", ("web",)),
    "dagster": ("operator", "all"),
    "admin": ("admin", ()),
}


class AppTransport(httpx.BaseTransport):
    """An ASGI app as a transport for a plain client, with an event loop of its own."""

    def __init__(self, app: FastAPI) -> None:
        self._transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._runner: asyncio.Runner | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._runner = self._runner or asyncio.Runner()
        return self._runner.run(self._handled(request))

    def close(self) -> None:
        """May be used again: several clients share it, one after the other."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    async def _handled(self, request: httpx.Request) -> httpx.Response:
        request.read()
        response = await self._transport.handle_async_request(request)
        content = await response.aread()
        return httpx.Response(response.status_code, headers=response.headers, content=content)


@pytest.fixture
def fleet() -> FakeFleet:
    return FakeFleet()


@pytest.fixture(scope="session")
def token_file(tmp_path_factory) -> TokenFile:
    """Of all tests: read only."""
    return TokenFile(tmp_path_factory.mktemp("tokens") / "tokens.json")


@pytest.fixture(scope="session")
def tokens(token_file) -> dict[str, str]:
    return {name: token_file.create(name, role, teams) for name, (role, teams) in TOKENS.items()}


@pytest.fixture
def app(fleet, token_file, tokens, tmp_path) -> Iterator[FastAPI]:
    console = tmp_path / "console"
    console.mkdir()
    (console / "index.html").write_text("<!doctype html><title>console</title>")
    (console / "console.js").write_text("'use strict';")
    made = create_app(fleet, token_file, console=console)
    yield made
    made.state.gateway.close()


@pytest.fixture
def http(app, tokens) -> Iterator[Callable[[str | None], httpx.Client]]:
    """Plain HTTP with the token of a name, or none."""
    opened: dict[str | None, httpx.Client] = {}

    def client(name: str | None = "admin") -> httpx.Client:
        if name not in opened:
            headers = {} if name is None else {"Authorization": f"Bearer {tokens[name]}"}
            opened[name] = httpx.Client(base_url="http://127.0.0.1:8400", headers=headers, transport=AppTransport(app))
        return opened[name]

    yield client
    for each in opened.values():
        each.close()


@pytest.fixture
def client(app, tokens) -> Iterator[FleetClient]:
    """What the CLI and Dagster use, as an admin."""
    with FleetClient(token=tokens["admin"], transport=AppTransport(app)) as made:
        yield made
