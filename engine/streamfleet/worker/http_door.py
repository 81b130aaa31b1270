"""The HTTP door of a worker: /livez, /readyz, /status and /metrics, for probes, people, Prometheus and whoever runs the
fleet.

Reads only, and has no login: it listens on loopback unless told otherwise, and a wider address belongs behind a network
policy. Its thread is not the engine's, so it answers while a stream thread is busy, and says so.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import msgspec
import structlog

from streamfleet.errors import ConfigError
from streamfleet.worker.metric_exporter import CONTENT_TYPE, MetricExporter
from streamfleet.worker.observed_app import ObservedApp
from streamfleet.worker.secrets import Redact
from streamfleet.worker.status import Judgement, full_status, liveness, readiness

log = structlog.get_logger(__name__)

SOCKET_TIMEOUT_SECONDS = 10.0
"""A client that sends nothing must not keep a thread for ever."""


class Answer(NamedTuple):
    status: HTTPStatus
    content_type: str
    body: bytes


class Address(NamedTuple):
    host: str
    port: int


def parse_address(text: str) -> Address:
    """`127.0.0.1:8080`, `[::1]:8080`, or `:8080` for all interfaces; port 0 takes a free one."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"{text!r} is no address for the HTTP door", hint="write host:port, such as 127.0.0.1:8080")
    return Address(host.strip("[]"), int(port))


class Pages:
    """Path in, answer out. What errors say may have been written by user code, so it is cleaned of secrets."""

    def __init__(self, app: ObservedApp, redact: Redact) -> None:
        self._app = app
        self._redact = redact
        self._exporter = MetricExporter(app)
        self._pages: dict[str, Callable[[], Answer]] = {
            "/livez": lambda: self._judged(liveness(app)),
            "/readyz": lambda: self._judged(readiness(app)),
            "/status": lambda: self._json(HTTPStatus.OK, full_status(app)),
            "/metrics": lambda: Answer(HTTPStatus.OK, CONTENT_TYPE, self._exporter.text()),
        }

    def answer(self, path: str) -> Answer:
        page = self._pages.get(path.partition("?")[0])
        if page is None:
            return self._json(HTTPStatus.NOT_FOUND, {"error": "no such page", "pages": sorted(self._pages)})
        return page()

    def _judged(self, judgement: Judgement) -> Answer:
        return self._json(HTTPStatus.OK if judgement.ok else HTTPStatus.SERVICE_UNAVAILABLE, judgement)

    def _json(self, status: HTTPStatus, content: Any) -> Answer:
        text = self._redact(msgspec.json.encode(content).decode())
        return Answer(status, "application/json", text.encode() + b"\n")


class HttpDoor:
    """Open from `open()` to `close()`."""

    def __init__(self, pages: Pages, address: Address) -> None:
        self._pages = pages
        self._address = address
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    def open(self) -> str:
        """Listen; returns the URL."""
        try:
            self._server = _Server(self._address, _handler_of(self._pages))
        except OSError as error:
            raise ConfigError(
                f"the HTTP door cannot listen on {self._address.host}:{self._address.port} ({error.strerror or error})",
                hint="choose another address with --http, or port 0 for a free one",
            ) from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="http-door", daemon=True)
        self._thread.start()
        host, port = self._server.server_address[:2]
        shown = str(host)
        return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"

    def close(self) -> None:
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join(SOCKET_TIMEOUT_SECONDS)
            self._server = None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: Address, handler: type[BaseHTTPRequestHandler]) -> None:
        if ":" in address.host:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is no news."""
        log.debug("http request failed", client=client_address, error=repr(sys.exception()))


def _handler_of(pages: Pages) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = SOCKET_TIMEOUT_SECONDS
        server_version = "streamfleet"
        sys_version = ""

        def do_GET(self) -> None:
            try:
                answer = pages.answer(self.path)
            except Exception:
                log.exception("http page failed", path=self.path)
                answer = Answer(HTTPStatus.INTERNAL_SERVER_ERROR, "application/json", b'{"error": "see the log"}\n')
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

        do_HEAD = do_GET  # noqa: N815  (the name that http.server calls)

        def log_message(self, format: str, *args: Any) -> None:
            log.debug("http request", request=format % args)

    return Handler
