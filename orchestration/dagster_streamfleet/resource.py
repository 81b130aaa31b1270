"""StreamfleetResource: the fleet's server, for every asset, check, sensor and op. Tests hand over a client of their own."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import httpx
from dagster import ConfigurableResource, EnvVar

from streamfleet_platform import FleetClient

URL_VARIABLE = "STREAMFLEET_SERVER"
TOKEN_VARIABLE = "STREAMFLEET_TOKEN"  # noqa: S105 - the name of the variable, not what it holds
DEFAULT_URL = "http://127.0.0.1:8400"


class StreamfleetResource(ConfigurableResource):  # type: ignore[type-arg]  # generic in what it creates: itself
    """Where the server is. The token is an operator's, never an admin's: Dagster itself asks nobody who they are."""

    url: str = DEFAULT_URL
    token: str = ""
    timeout_seconds: float = 30.0

    @classmethod
    def from_environment(cls) -> StreamfleetResource:
        """The token stays in the environment: the definitions name the variable only."""
        return cls(
            url=os.environ.get(URL_VARIABLE, DEFAULT_URL),
            token=EnvVar(TOKEN_VARIABLE) if TOKEN_VARIABLE in os.environ else "",
        )

    @contextmanager
    def client(self) -> Iterator[FleetClient]:
        transport = httpx.HTTPTransport(verify=_authorities())
        with FleetClient(
            self.url, token=self.token or None, timeout=self.timeout_seconds, transport=transport
        ) as client:
            yield client


@lru_cache
def _authorities() -> ssl.SSLContext:
    """Read once: sensors make a client for each of their ticks, and this is nearly all that a client costs."""
    return httpx.create_ssl_context()


@contextmanager
def client_of_environment() -> Iterator[FleetClient]:
    """For loading definitions, where there are no resources yet."""
    url, token = os.environ.get(URL_VARIABLE, DEFAULT_URL), os.environ.get(TOKEN_VARIABLE)
    with FleetClient(url, token=token) as client:
        yield client
