"""The HTTP door of a worker: /livez, /readyz, /status and /metrics, for probes, people, Prometheus and whoever runs the
fleet, and the routes that others add.

It has no login: it listens on loopback unless told otherwise, and a wider address belongs behind a network policy. Its
threads are not the engine's, so it answers while a stream thread is busy, and says so.
"""

from __future__ import annotations

import ipaddress
from http import HTTPStatus
from typing import Any

import msgspec

from streamfleet.errors import ConfigError
from streamfleet.worker.http_messages import JSON, Answer, Request, error_answer
from streamfleet.worker.http_routes import Routes
from streamfleet.worker.http_server import Address, Answering, HttpServer
from streamfleet.worker.metric_exporter import CONTENT_TYPE, MetricExporter
from streamfleet.worker.observed_app import ObservedApp
from streamfleet.worker.secrets import Redact
from streamfleet.worker.status import Judgement, full_status, liveness, readiness

MAX_KNOWN_HOSTS = 16


def parse_address(text: str) -> Address:
    """`127.0.0.1:8080`, `[::1]:8080`, or `:8080` for all interfaces; port 0 takes a free one."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"{text!r} is no address for the HTTP door", hint="write host:port, such as 127.0.0.1:8080")
    return Address(host.strip("[]"), int(port))


class Pages:
    """What is told about an app. What errors say may have been written by user code, so it is cleaned of secrets."""

    def __init__(self, app: ObservedApp, redact: Redact) -> None:
        self._redact = redact
        self._exporter = MetricExporter(app)
        self.routes = routes = Routes()
        routes.get("/livez", lambda _: self._judged(liveness(app)))
        routes.get("/readyz", lambda _: self._judged(readiness(app)))
        routes.get("/status", lambda _: self._json(HTTPStatus.OK, full_status(app)))
        routes.get("/metrics", lambda _: Answer(HTTPStatus.OK, CONTENT_TYPE, self._exporter.text()))

    def _judged(self, judgement: Judgement) -> Answer:
        return self._json(HTTPStatus.OK if judgement.ok else HTTPStatus.SERVICE_UNAVAILABLE, judgement)

    def _json(self, status: HTTPStatus, content: Any) -> Answer:
        text = self._redact(msgspec.json.encode(content).decode())
        return Answer(status, JSON, text.encode() + b"\n")


class HttpDoor:
    """Open from `open()` to `close()`."""

    def __init__(self, routes: Routes, address: Address) -> None:
        self._address = address
        is_local = address.host in ("127.0.0.1", "::1", "localhost")
        self._server = HttpServer(address, _only_by_number(routes) if is_local else routes.answer)

    def open(self) -> Address:
        """Listen; returns where."""
        try:
            return self._server.open()
        except OSError as error:
            raise ConfigError(
                f"the HTTP door cannot listen on {self._address.host}:{self._address.port} ({error.strerror or error})",
                hint="choose another address with --http, or port 0 for a free one",
            ) from error

    def close(self) -> None:
        self._server.close()


def _only_by_number(routes: Routes) -> Answering:
    """A door on loopback is called by its number, or as localhost. Another name is that of a page in a browser on this machine,
    whose name was made to mean this address so that the page may read here.
    """

    def answer(request: Request) -> Answer:
        host = request.headers.get("host", "localhost")
        if host in known or _is_number(host):
            if len(known) < MAX_KNOWN_HOSTS:
                known.add(host)
            return routes.answer(request)
        return error_answer(HTTPStatus.MISDIRECTED_REQUEST, "call this door by its number, or as localhost")

    known: set[str] = set()
    return answer


def _is_number(host: str) -> bool:
    name = host.partition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name.lower() == "localhost"
    return True


def url_of(address: Address) -> str:
    return f"http://[{address.host}]:{address.port}" if ":" in address.host else f"http://{address.host}:{address.port}"
