"""HttpServer: sockets and threads of a worker's HTTP door; what is answered is decided by the function it is given.

One thread accepts, each connection has one of its own, and there is a limit of them. Blocking calls with time-outs of the
kernel cost the least: a request on a kept connection is one `recv` and one `send`. A handler may wait (for a stream thread,
for another worker) and holds up nobody else.
"""

from __future__ import annotations

import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import NamedTuple

import structlog

from streamfleet.worker.http_messages import (
    MAX_HEAD_BYTES,
    Answer,
    HeadParser,
    RefusedRequestError,
    Request,
    encode,
    error_answer,
)

log = structlog.get_logger(__name__)

MAX_CONNECTIONS = 64
IDLE_SECONDS = 60
"""A kept connection without a request is closed after this."""
REQUEST_SECONDS = 10.0
"""A request must have come, and its answer gone, within this."""
RECEIVE_BYTES = 16 * 1024
JOIN_SECONDS = 10.0
PAUSE_SECONDS = 0.05

Answering = Callable[[Request], Answer]


class Address(NamedTuple):
    host: str
    port: int


class HttpServer:
    """Open from `open()` to `close()`."""

    def __init__(self, address: Address, answer: Answering, *, max_connections: int = MAX_CONNECTIONS) -> None:
        self._address = address
        self._answer = answer
        self._max_connections = max_connections
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._closing = threading.Event()
        self._wake: socket.socket | None = None
        self._accepting: threading.Thread | None = None

    def open(self) -> Address:
        """Listen; returns where. Raises OSError."""
        family = socket.AF_INET6 if ":" in self._address.host else socket.AF_INET
        listener = socket.create_server(self._address, family=family, backlog=128)
        listener.setblocking(False)
        woken, self._wake = socket.socketpair()
        self._accepting = threading.Thread(target=self._accept, args=(listener, woken), name="http-door", daemon=True)
        self._accepting.start()
        return Address(*listener.getsockname()[:2])

    def close(self) -> None:
        """End all connections; an answer under way is cut off."""
        if self._wake is None or self._accepting is None:
            return
        self._closing.set()
        self._wake.close()
        self._accepting.join(JOIN_SECONDS)
        with self._lock:
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket, woken: socket.socket) -> None:
        with listener, woken, selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ)
            selector.register(woken, selectors.EVENT_READ)
            while not self._closing.is_set():
                selector.select()
                try:
                    connection, peer = listener.accept()
                    self._welcome(connection, str(peer))
                except BlockingIOError:
                    continue  # woken to close, or it was gone again
                except OSError as error:  # gone before it was accepted, or no file left for it: not at once again
                    log.debug("http connection not accepted", error=repr(error))
                    self._closing.wait(PAUSE_SECONDS)

    def _welcome(self, connection: socket.socket, peer: str) -> None:
        with self._lock:
            is_full = len(self._connections) >= self._max_connections
            if not is_full:
                self._connections.add(connection)
        if is_full:
            log.debug("http connection refused, there are too many", peer=peer, limit=self._max_connections)
            _refuse(connection, "too many connections")
            return
        try:
            threading.Thread(target=self._serve, args=(connection,), name="http-connection", daemon=True).start()
        except RuntimeError as error:  # the system gives no more threads now; others are answered, and later ones
            log.warning("http connection refused", peer=peer, error=str(error))
            with self._lock:
                self._connections.discard(connection)
            _refuse(connection, "no thread left")

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                _Conversation(connection, self._answer).run()
        except OSError as error:  # a client that goes away in the middle is no news
            log.debug("http connection ended", error=repr(error))
        finally:
            with self._lock:
                self._connections.discard(connection)


def _refuse(connection: socket.socket, why: str) -> None:
    refusal = error_answer(HTTPStatus.SERVICE_UNAVAILABLE, why, {"Retry-After": "1"})
    with connection, suppress(OSError):
        connection.setblocking(False)
        connection.send(encode(refusal, int(time.time()), keep_alive=False))


class _Conversation:
    """The requests of one connection, one after the other."""

    def __init__(self, connection: socket.socket, answer: Answering) -> None:
        self._socket = connection
        self._answer = answer
        self._received = b""
        self._heads = HeadParser()
        connection.setblocking(True)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._receive_within(IDLE_SECONDS)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(REQUEST_SECONDS), 0))

    def run(self) -> None:
        while True:
            try:
                request = self._next_request()
            except RefusedRequestError as refusal:
                self._send(encode(error_answer(refusal.status, refusal.why), int(time.time()), keep_alive=False))
                return
            if request is None:
                return
            answer = self._answer(request)
            with_body = request.method != "HEAD"
            self._send(encode(answer, int(time.time()), keep_alive=request.keep_alive, with_body=with_body))
            if not request.keep_alive:
                return

    def _next_request(self) -> Request | None:
        """None at the end of the conversation."""
        if not self._received and not self._receive():
            return None
        deadline = time.monotonic() + REQUEST_SECONDS
        while (end := self._received.find(b"\r\n\r\n")) < 0:
            if len(self._received) > MAX_HEAD_BYTES:
                raise RefusedRequestError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are too long")
            if not self._receive_more(deadline):
                return None
        if end > MAX_HEAD_BYTES:
            raise RefusedRequestError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are too long")
        request, length = self._heads.parse(self._received[:end])
        begin = end + 4
        if not length:
            self._received = self._received[begin:]
            return request
        if request.headers.get("expect", "").lower() == "100-continue":
            self._send(b"HTTP/1.1 100 Continue\r\n\r\n")
        while len(self._received) < begin + length:
            if not self._receive_more(deadline):
                return None
        body, self._received = self._received[begin : begin + length], self._received[begin + length :]
        return Request(request.method, request.path, request.query, request.headers, body, request.keep_alive)

    def _receive(self) -> bool:
        """Wait for bytes; false when there are none any more, or none in time."""
        try:
            data = self._socket.recv(RECEIVE_BYTES)
        except BlockingIOError:  # the time-out of the kernel
            return False
        self._received += data
        return bool(data)

    def _receive_more(self, deadline: float) -> bool:
        """The rest of a request that has begun: the client that sends a byte now and then shall not keep a thread."""
        left = deadline - time.monotonic()
        if left > 0:
            self._receive_within(left)
            before = len(self._received)
            still_there = self._receive()
            self._receive_within(IDLE_SECONDS)
            if still_there:
                return True
            if len(self._received) == before and time.monotonic() < deadline:
                return False
        raise RefusedRequestError(HTTPStatus.REQUEST_TIMEOUT, "the request did not come in time")

    def _receive_within(self, seconds: float) -> None:
        whole = int(seconds)
        timeout = struct.pack("ll", whole, max(1, int((seconds - whole) * 1_000_000)) if seconds != whole else 0)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout)

    def _send(self, data: bytes) -> None:
        sent = self._socket.send(data)
        if sent < len(data):
            # A slow reader: from here on the time-out is for all of the rest.
            self._socket.settimeout(REQUEST_SECONDS)
            self._socket.sendall(memoryview(data)[sent:])
            self._socket.settimeout(None)
