"""Peers: asks another worker of the same app, for a query whose partition is there. Used by query_pages.py.

What it is asked to call is trusted as little as possible. Endpoints come from the group's plan alone, and are hosts with ports,
nothing else. The name is resolved once, the address looked at, and that address called. The call has two seconds in all, and its
answer a limit; redirects are not followed; nothing of the caller's request but path and parameters goes along. Both sides tell
the name of the app: a port of a worker that is gone may belong to another one by now.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from concurrent.futures import Future
from http import HTTPStatus
from typing import Any

import structlog

from streamfleet.errors import StreamsError
from streamfleet.worker.http_messages import Answer

log = structlog.get_logger(__name__)

APPLICATION_HEADER = "Streamfleet-Application"
HOPS_HEADER = "Streamfleet-Hops"
TIMEOUT_SECONDS = 2.0
MAX_ANSWER_BYTES = 8 * 2**20
MAX_HEAD_BYTES = 16 * 1024
LOWEST_PORT = 1024
MAX_IDLE_PER_PEER = 4
IDLE_SECONDS = 60.0
"""For how long a connection is kept that nobody asks over: its worker may be gone, or have another address."""


class PeerError(StreamsError):
    """The other worker could not be asked, or its answer could not be used."""


class Peers:
    def __init__(self, application_id: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._application_id = application_id
        self._timeout_seconds = timeout_seconds
        self._lock = threading.Lock()
        self._idle: dict[str, list[tuple[socket.socket, float]]] = {}
        """With the time since which each is idle, the latest last."""
        self._lookups = _Lookups()

    def ask(self, endpoint: str, target: str) -> Answer:
        """GET `target` from `endpoint`. Raises PeerError."""
        deadline = time.monotonic() + self._timeout_seconds
        request = (
            f"GET {target} HTTP/1.1\r\nHost: {endpoint}\r\n{APPLICATION_HEADER}: {self._application_id}\r\n"
            f"{HOPS_HEADER}: 1\r\n\r\n"
        ).encode("ascii")
        kept = self._take(endpoint)
        if kept is not None:
            try:
                return self._exchange(endpoint, kept, request, deadline)
            except OSError:
                kept.close()  # the other side has closed it meanwhile; a GET may be sent twice
        try:
            connection = _connect(endpoint, self._lookups, deadline)
            try:
                return self._exchange(endpoint, connection, request, deadline)
            except BaseException:
                connection.close()
                raise
        except OSError as error:
            raise PeerError(f"worker {endpoint} does not answer: {error}") from error

    def _exchange(self, endpoint: str, connection: socket.socket, request: bytes, deadline: float) -> Answer:
        try:
            connection.settimeout(_left(deadline))
            connection.sendall(request)
            status, headers, body = _receive(connection, deadline)
        except PeerError:
            connection.close()
            raise
        if headers.get("connection", "").lower() == "close":
            connection.close()
        else:
            self._keep(endpoint, connection)
        if headers.get(APPLICATION_HEADER.lower()) != self._application_id:
            raise PeerError(f"at {endpoint} there is no worker of app {self._application_id} any more")
        kept = {"Retry-After": headers["retry-after"]} if "retry-after" in headers else {}
        return Answer(status, headers.get("content-type", ""), body, kept)

    def _take(self, endpoint: str) -> socket.socket | None:
        with self._lock:
            self._close_idle_since(time.monotonic() - IDLE_SECONDS)
            idle = self._idle.get(endpoint)
            return idle.pop()[0] if idle else None

    def _keep(self, endpoint: str, connection: socket.socket) -> None:
        with self._lock:
            idle = self._idle.setdefault(endpoint, [])
            if len(idle) < MAX_IDLE_PER_PEER:
                idle.append((connection, time.monotonic()))
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            self._close_idle_since(float("inf"))

    def _close_idle_since(self, latest: float) -> None:
        """Those of all workers: one that is gone is never asked again."""
        for endpoint, idle in list(self._idle.items()):
            while idle and idle[0][1] <= latest:
                idle.pop(0)[0].close()
            if not idle:
                del self._idle[endpoint]


class _Lookups:
    """Addresses of names. A resolver cannot be told how long it may take, so it is asked in a thread of its own; whoever asks for a
    name while that is being looked up waits for the same answer.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[tuple[str, int], Future[list[Any]]] = {}

    def find(self, host: str, port: int, deadline: float) -> list[Any]:
        with self._lock:
            found = self._running.get((host, port))
            if found is None:
                found = self._running[host, port] = Future()
                threading.Thread(
                    target=self._look_up, args=(host, port, found), name="peer-lookup", daemon=True
                ).start()
        return found.result(_left(deadline))

    def _look_up(self, host: str, port: int, found: Future[list[Any]]) -> None:
        try:
            found.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except UnicodeError as error:
            found.set_exception(PeerError(f"{host!r} is no name of a host: {error}"))
        except OSError as error:
            found.set_exception(error)
        finally:
            with self._lock:
                del self._running[host, port]


def _connect(endpoint: str, lookups: _Lookups, deadline: float) -> socket.socket:
    host, _, port = endpoint.rpartition(":")
    if not port.isascii() or not port.isdigit() or not LOWEST_PORT <= int(port) <= 65535:
        raise PeerError(f"{endpoint!r} is not called: a worker's port is from {LOWEST_PORT} to 65535")
    found = lookups.find(host.removeprefix("[").removesuffix("]"), int(port), deadline)
    family, kind, protocol, _, address = found[0]
    ip = ipaddress.ip_address(str(address[0]).partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    if ip.is_link_local or ip.is_multicast or ip.is_unspecified or ip.is_reserved:
        raise PeerError(f"{endpoint!r} is not called: {ip} is no address of a worker")
    connection = socket.socket(family, kind, protocol)
    try:
        connection.settimeout(_left(deadline))
        connection.connect(address)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        connection.close()
        raise
    return connection


def _receive(connection: socket.socket, deadline: float) -> tuple[int, dict[str, str], bytes]:
    received = b""
    while (end := received.find(b"\r\n\r\n")) < 0:
        if len(received) > MAX_HEAD_BYTES:
            raise PeerError("the headers of a worker's answer are too long")
        received += _more(connection, deadline)
    status, headers = _head(received[:end])
    length = headers.get("content-length", "")
    if not length.isdigit() or int(length) > MAX_ANSWER_BYTES:
        raise PeerError(f"a worker's answer of {length or 'unknown'} bytes is not taken")
    body = bytearray(received[end + 4 :])
    while len(body) < int(length):
        body += _more(connection, deadline)
    return status, headers, bytes(body)


def _head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[1].isdigit() or not words[0].startswith("HTTP/1."):
        raise PeerError("what answers there does not speak HTTP")
    status = int(words[1])
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        raise PeerError("a worker does not redirect")
    return status, {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _more(connection: socket.socket, deadline: float) -> bytes:
    connection.settimeout(_left(deadline))
    data = connection.recv(65536)
    if not data:
        raise ConnectionResetError("the connection was closed")
    return data


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("it took too long")
    return left
