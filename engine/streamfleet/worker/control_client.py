"""Gives orders to a running worker through its HTTP door: what `streamfleet worker probe`, drain, pause, resume, restore-rate do.
The other side is controls.py.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from streamfleet.errors import ConfigError, StreamsError

TIMEOUT_SECONDS = 10.0
POLL_SECONDS = 0.2
MAX_ANSWER_BYTES = 16 * 2**20


class ControlError(StreamsError):
    """The worker could not be asked, or has refused."""


def read_token(path: Path | None) -> str | None:
    """A token from the first line of a file, so that it is in no command line; None without a file."""
    if path is None:
        return None
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the token file {path} cannot be read: {error}", hint="check its path and permissions"
        ) from error
    if not token or not token.isascii() or len(token.split()) != 1:
        raise ConfigError(f"the token file {path} holds no token", hint="write one word of letters and digits into it")
    return token


class WorkerDoor:
    """The HTTP door of one worker, from outside."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        try:
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if parts.scheme != "http" or host is None or port is None or parts.path not in ("", "/"):
            raise ConfigError(
                f"{url!r} is not the address of a worker",
                hint="write http://host:port, as the worker's log says with 'http door open'",
            )
        self._host, self._port = host, port
        self._token = token

    def order(self, name: str, details: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self._ask("POST", f"/control/{name}", {} if details is None else details)

    def wait_until_drained(self, timeout_seconds: float) -> None:
        deadline = time.monotonic() + timeout_seconds
        while (state := self._ask("GET", "/status")["state"]) not in ("not_running", "error"):
            if time.monotonic() > deadline:
                raise ControlError(f"the worker is still {state} after {timeout_seconds:g} s", hint="look at its log")
            time.sleep(POLL_SECONDS)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        headers = {} if body is None else {"Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            content = json.loads(answer.read(MAX_ANSWER_BYTES))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ControlError(
                f"no worker answers at {self._host}:{self._port} ({error})", hint="check the address and that it runs"
            ) from error
        finally:
            connection.close()
        if answer.status >= 400:
            said = content.get("error", content) if isinstance(content, dict) else content
            raise ControlError(f"the worker at {self._host}:{self._port} refused ({answer.status}): {said}")
        if not isinstance(content, dict):
            raise ControlError(f"what answers at {self._host}:{self._port} is no worker")
        return content
