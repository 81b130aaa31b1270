"""One key of a store, wherever it is: asks the app's workers through their doors, which know the owner and pass a question on.

    the owner, through any worker ─────────> its answer
    nobody owns the key at the moment ─────> a standby's answer, with "stale": true, its lag and its age
    nor does anybody have a copy ──────────> 503 with Retry-After

What is called is trusted as little as possible. Doors come from the registry alone, never from a caller or a worker; a name is
resolved once, the address looked at, and that address called. A call has two seconds and eight megabytes, follows no redirects, and
takes neither the caller's token nor the worker's along. A process that got a worker's port later does not know the app's name.
"""

# no `from __future__ import annotations`: FastAPI reads the annotations of the route

import ipaddress
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import httpx
from fastapi import APIRouter, Depends, Path, Query, Request

from streamfleet_platform.api.access import Action, Principal
from streamfleet_platform.api.commands import Allowed
from streamfleet_platform.api.looking import AppName
from streamfleet_platform.api.problems import RefusedRequestError
from streamfleet_platform.errors import (
    ConflictError,
    FleetError,
    InvalidRequestError,
    NotFoundError,
    SlowDownError,
    TransientError,
)
from streamfleet_platform.model.names import TOPIC_PATTERN
from streamfleet_platform.service import Door, FleetService
from streamfleet_platform.views import AppDetail

TIMEOUT_SECONDS = 2.0
ALL_DOORS_SECONDS = 6.0
MAX_ANSWER_BYTES = 8 * 2**20
MAX_KEY_BYTES = 4096
MAX_AT_ONCE = 16
LOWEST_PORT = 1024
APPLICATION_HEADER = "Streamfleet-Application"

_PAGES: Mapping[str, str] = {"key_value": "key", "lru": "key", "window": "window", "session": "session"}
_AWAY = frozenset({HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.MISDIRECTED_REQUEST, HTTPStatus.INTERNAL_SERVER_ERROR})
_REFUSALS: Mapping[int, type[FleetError]] = {
    HTTPStatus.BAD_REQUEST: InvalidRequestError,
    HTTPStatus.NOT_FOUND: NotFoundError,
    HTTPStatus.CONFLICT: ConflictError,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: InvalidRequestError,
    HTTPStatus.TOO_MANY_REQUESTS: SlowDownError,
}

routes = APIRouter(prefix="/v1")
Resolve = Callable[[str, int], Sequence[Any]]


class _Answer(NamedTuple):
    status: int
    content: dict[str, Any]


class QueryGateway:
    """Any thread. Close it."""

    def __init__(
        self, service: FleetService, *, transport: httpx.BaseTransport | None = None, resolve: Resolve | None = None
    ) -> None:
        self._service = service
        self._http = httpx.Client(timeout=TIMEOUT_SECONDS, follow_redirects=False, trust_env=False, transport=transport)
        self._resolve = resolve or (lambda host, port: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        self._slots = threading.BoundedSemaphore(MAX_AT_ONCE)

    def close(self) -> None:
        self._http.close()

    def ask(self, app: str, store: str, key: str, options: Mapping[str, str]) -> dict[str, Any]:
        detail = self._service.app(app)
        kind = next((found.kind for found in detail.stores if found.name == store), None)
        if kind is None:
            raise NotFoundError(f"app {app} has no store {store}", hint=f"see `streamfleet describe {app}`")
        page = _PAGES.get(kind.removeprefix("timestamped_"))
        if page is None:
            raise ConflictError(f"store {store} cannot be asked for a key: it is {kind}")
        if len(key.encode()) > MAX_KEY_BYTES:
            raise RefusedRequestError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a key has at most {MAX_KEY_BYTES} bytes here"
            )
        if not self._slots.acquire(blocking=False):
            raise SlowDownError(f"{MAX_AT_ONCE} queries are being answered", hint="ask again later")
        try:
            path = f"/query/{quote(store, safe='')}/{page}/{quote(key, safe='')}"
            return self._answered(detail, path, options)
        finally:
            self._slots.release()

    def _answered(self, app: AppDetail, path: str, options: Mapping[str, str]) -> dict[str, Any]:
        doors = self._service.doors(app.name)
        tries = [dict(options)]
        if "stale" not in options:
            tries.append({**options, "stale": "true", "forward": "false"})
        deadline = time.monotonic() + ALL_DOORS_SECONDS
        last = f"app {app.name} is {app.phase}, and has no worker that can be asked"
        for parameters in tries:
            for answer in self._answers(doors, app.application_id, path, parameters, deadline):
                if answer.status not in _AWAY:
                    return _told(answer)
                last = str(answer.content.get("error", last))[:500]
        raise TransientError(last, hint="ask again in a moment")

    def _answers(
        self, doors: Sequence[Door], application_id: str, path: str, parameters: Mapping[str, str], deadline: float
    ) -> Iterator[_Answer]:
        """Of one worker after the other, as long as there is time; those that give none are passed over."""
        target = f"{path}?{urlencode(parameters)}" if parameters else path
        for door in doors:
            if time.monotonic() < deadline:
                try:
                    yield self._get(door, application_id, target)
                except (httpx.HTTPError, OSError, ValueError, RecursionError):
                    continue

    def _get(self, door: Door, application_id: str, target: str) -> _Answer:
        """ValueError if what is there is no worker of this app."""
        address, host = self._pinned(door.url)
        headers = {"Host": host, APPLICATION_HEADER: application_id, "Accept-Encoding": "identity"}
        deadline = time.monotonic() + TIMEOUT_SECONDS
        with self._http.stream("GET", f"{address}{target}", headers=headers) as response:
            if response.headers.get(APPLICATION_HEADER) != application_id or response.is_redirect:
                raise ValueError(f"at {host} there is no worker of app {application_id}")
            body = bytearray()
            for chunk in response.iter_raw():
                body += chunk
                if len(body) > MAX_ANSWER_BYTES or time.monotonic() > deadline:
                    raise ValueError("the answer is too large or too slow")
        content = json.loads(bytes(body))
        if not isinstance(content, dict):
            raise ValueError("a worker answers with an object")  # noqa: TRY004  a bad answer, not a wrong type of ours
        return _Answer(response.status_code, content)

    def _pinned(self, url: str) -> tuple[str, str]:
        """The address to call, and the name it goes by."""
        parts = urlsplit(url)
        port = parts.port
        if parts.scheme != "http" or parts.hostname is None or port is None or "@" in parts.netloc:
            raise ValueError(f"{url!r} is no door")
        if parts.path not in ("", "/") or parts.query or parts.fragment or port < LOWEST_PORT:
            raise ValueError(f"{url!r} is no door")
        found = self._resolve(parts.hostname, port)
        ip = ipaddress.ip_address(str(found[0][4][0]).partition("%")[0])
        if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
            ip = ip.ipv4_mapped
        if ip.is_link_local or ip.is_multicast or ip.is_unspecified or (ip.is_reserved and not ip.is_loopback):
            raise ValueError(f"{ip} is no address of a worker")
        shown = f"[{ip}]" if ip.version == 6 else str(ip)
        return f"http://{shown}:{port}", parts.netloc


def _told(answer: _Answer) -> dict[str, Any]:
    if answer.status == HTTPStatus.OK:
        return {**answer.content, "stale": answer.content.get("active") is False}
    kind = _REFUSALS.get(answer.status, TransientError)
    fact = str(answer.content.get("error", f"a worker answered {answer.status}"))[:500]
    raise kind(fact, hint="a standby said so: ask again" if answer.content.get("active") is False else None)


@routes.get("/apps/{app}/stores/{store}/keys/{key:path}")
def query(
    app: AppName,
    store: Annotated[str, Path(pattern=TOPIC_PATTERN)],
    key: str,
    request: Request,
    _: Annotated[Principal, Depends(Allowed(Action.QUERY))],
    limit: Annotated[int | None, Query(ge=1, le=1000)] = None,
    partitions: Annotated[str | None, Query(pattern=r"^\d{1,9}$")] = None,
    isolation: Annotated[str | None, Query(pattern=r"^read_(un)?committed$")] = None,
    position: Annotated[str | None, Query(max_length=4096)] = None,
    stale: Annotated[str | None, Query(pattern=r"^(true|false)$")] = None,
    from_: Annotated[int | None, Query(alias="from", ge=0)] = None,
    to: Annotated[int | None, Query(ge=0)] = None,
) -> dict[str, Any]:
    """What a store has for a key. `stale` false: the owner only; true: a standby will do; without: a standby if there is no owner.

    Parameters and answers as of the workers' own pages; `stale` in the answer says that it is not the owner's.
    """
    given = {
        "limit": limit,
        "partitions": partitions,
        "isolation": isolation,
        "position": position,
        "stale": stale,
        "from": from_,
        "to": to,
    }
    gateway: QueryGateway = request.app.state.gateway
    return gateway.ask(app, store, key, {name: str(value) for name, value in given.items() if value is not None})
