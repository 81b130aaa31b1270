"""In front of every route: who asks for which host, with which token, how often; and what every answer says to browsers.

Closed by default: whatever is not in OPEN_PATHS, a route nobody has written yet included, wants a token. Errors leave as
problems (problems.py) from here too, because nothing behind has been asked yet.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamfleet_platform.api.access import Principal
from streamfleet_platform.api.problems import RefusedRequestError, problem_response
from streamfleet_platform.api.token_file import Authenticator
from streamfleet_platform.errors import FleetError, SlowDownError, UnauthorizedError

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
HEALTH_PATHS = frozenset({"/healthz", "/readyz"})
CONSOLE_PREFIX = "/console/"
MAX_TOKEN_CHARS = 512
CALLS_PER_SECOND = 100.0
BURST = 400
_MAX_CALLERS = 1000

_ON_EVERY_ANSWER: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"


class Gatekeeper:
    """An ASGI middleware, the outermost."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        auth: Authenticator,
        hosts: Collection[str] = (),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._auth = auth
        self._hosts = LOOPBACK_HOSTS | {host.lower() for host in hosts}
        self._rate = RateLimit(CALLS_PER_SECOND, BURST, monotonic)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # no web sockets here
        guarded = _with_headers(send)
        try:
            headers = Headers(scope=scope)
            self._check_host(headers)
            if not is_open(scope["method"], scope["path"]):
                # a tokens file is read when it has changed: not on the loop
                scope.setdefault("state", {})["principal"] = await asyncio.to_thread(self._principal, headers)
        except FleetError as error:
            await problem_response(error)(scope, receive, guarded)
            return
        await self._app(scope, receive, guarded)

    def _check_host(self, headers: Headers) -> None:
        """A page of another name that was made to lead here (DNS rebinding) is told that it is lost."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or _host_of(hosts[0]) not in self._hosts:
            raise RefusedRequestError(
                HTTPStatus.MISDIRECTED_REQUEST,
                "this server does not go by that name",
                hint="allow it with `server --allow-host`",
            )

    def _principal(self, headers: Headers) -> Principal:
        given = headers.getlist("authorization")
        kind, _, token = (given[0] if len(given) == 1 else "").partition(" ")
        if kind.lower() != "bearer" or not token or len(token) > MAX_TOKEN_CHARS:
            raise UnauthorizedError("there is no token", hint="send `Authorization: Bearer ...`")
        principal = self._auth.principal(token)
        if principal is None:
            raise UnauthorizedError("this token is not good", hint="get one with `streamfleet token create`")
        self._rate.take(principal.name)
        return principal


def is_open(method: str, path: str) -> bool:
    """Whether no token is asked for: health, and the console's files, which hold nothing of the fleet."""
    if method not in ("GET", "HEAD"):
        return False
    return path in HEALTH_PATHS or path in ("/", "/console") or path.startswith(CONSOLE_PREFIX)


class RateLimit:
    """A bucket per caller: `per_second` calls, and `burst` at once."""

    def __init__(self, per_second: float, burst: int, monotonic: Callable[[], float]) -> None:
        self._per_second = per_second
        self._burst = burst
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> None:
        """One call. SlowDownError when the bucket is empty."""
        now = self._monotonic()
        with self._lock:
            left, at = self._buckets.pop(caller, (float(self._burst), now))
            left = min(float(self._burst), left + (now - at) * self._per_second)
            self._buckets[caller] = (max(0.0, left - 1), now)
            while len(self._buckets) > _MAX_CALLERS:
                self._buckets.popitem(last=False)
        if left < 1:
            raise SlowDownError(f"{caller} calls more than {self._per_second:g} times a second", hint="ask less often")


def _host_of(header: str) -> str:
    """The name without the port; `[::1]` keeps its brackets."""
    host, colon, port = header.rpartition(":")
    return (host if colon and port.isdigit() else header).lower()


def _with_headers(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _ON_EVERY_ANSWER.items():
                headers[name] = value
            headers.setdefault("Content-Security-Policy", _DATA_POLICY)
        await send(message)

    return guarded
