"""Workers' doors over HTTP: what they say of themselves, and the orders they take. Made by server/."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from streamfleet_platform.errors import TransientError
from streamfleet_platform.runtime.api import WorkerState

_SECONDS = 3.0


class HttpDoors:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        # trust_env off: a proxy of the environment has no business between us and loopback
        self._http = httpx.Client(timeout=_SECONDS, trust_env=False)

    def close(self) -> None:
        self._http.close()

    def order(self, worker: WorkerState, name: str, details: Mapping[str, Any] | None = None) -> None:
        self._ask("POST", worker, f"/control/{name}", json=dict(details or {}))

    def client_state(self, worker: WorkerState) -> str | None:
        try:
            return str(self.status(worker)["state"])
        except TransientError:
            return None

    def status(self, worker: WorkerState) -> dict[str, Any]:
        return self._ask("GET", worker, "/status")

    def _ask(self, method: str, worker: WorkerState, path: str, **body: Any) -> dict[str, Any]:
        if worker.url is None:
            raise TransientError(f"slot {worker.slot} of app {worker.app} has no door yet")
        headers = {} if worker.token is None else {"Authorization": f"Bearer {worker.token}"}
        try:
            answer = self._http.request(method, worker.url + path, headers=headers, **body)
            content = answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise TransientError(f"slot {worker.slot} of app {worker.app} does not answer: {error}") from error
        if answer.status_code >= httpx.codes.BAD_REQUEST or not isinstance(content, dict):
            said = content.get("error", content) if isinstance(content, dict) else content
            raise TransientError(f"slot {worker.slot} of app {worker.app} refused {path}: {said}")
        return content
