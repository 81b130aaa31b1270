"""A scripted fleet behind the real API and the real client, without a socket; every request that changes something is counted."""

import threading
from contextlib import contextmanager

import dagster as dg
import httpx
import pytest
from tests.unit.streamfleet_platform.api.conftest import AppTransport
from tests.unit.streamfleet_platform.api.fake_fleet import FakeFleet

from streamfleet_platform import FleetClient
from streamfleet_platform.api import TokenFile, create_app


class Watched(httpx.BaseTransport):
    """Passes on, and remembers path and Idempotency-Key of each POST. `away`: nobody answers. `refusals`: so many calls are one
    too many a second.
    """

    def __init__(self, inner):
        self._inner = inner
        self.posts = []
        self.away = False
        self.refusals = 0
        self._alone = threading.Lock()

    def handle_request(self, request):
        if self.away:
            raise httpx.ConnectError("connection refused")
        if self.refusals:
            self.refusals -= 1
            return httpx.Response(429, headers={"Retry-After": "0"}, json={})
        if request.method == "POST":
            self.posts.append((request.url.path, request.headers["Idempotency-Key"]))
        with self._alone:  # one event loop; locations ask in several threads
            return self._inner.handle_request(request)

    def close(self):
        self._inner.close()


class Server:
    """In the place of StreamfleetResource."""

    def __init__(self, tmp_path):
        self.fleet = FakeFleet()
        self._tokens = TokenFile(tmp_path / "tokens.yaml")
        self._token = self._tokens.create("dagster", "operator", "all")
        self.wire = Watched(AppTransport(create_app(self.fleet, self._tokens)))

    def act_for(self, team):
        """With a token that names it: who may end its apps."""
        self._token = self._tokens.create(f"dagster-{team}", "operator", (team,))

    @contextmanager
    def client(self):
        with FleetClient("http://127.0.0.1", token=self._token, transport=self.wire) as client:
            yield client


@pytest.fixture
def server(tmp_path):
    return Server(tmp_path)


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance
