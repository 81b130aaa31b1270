"""HTTP/1.1 messages: bytes to Request, Answer to bytes. Pure; the sockets are in http_server.py, the paths in http_routes.py.

Small and strict: what a worker's door needs, and a 4xx for everything else. A body has a Content-Length; chunks, folded
headers, upgrades and absolute targets are refused.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from email.utils import formatdate
from http import HTTPStatus
from typing import Any

import msgspec

MAX_HEAD_BYTES = 16 * 1024
MAX_BODY_BYTES = 64 * 1024
JSON = "application/json"

_METHODS = frozenset({b"GET", b"HEAD", b"POST"})
_TOKEN = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_TARGET = bytes(byte for byte in range(0x21, 0x7F) if byte != ord("#"))
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_CLOSE = "Connection: close\r\n"


class Answer(msgspec.Struct, frozen=True):
    """`headers` are beside those that every answer has."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = {}


class Request(msgspec.Struct, frozen=True):
    """`path` and `query` as they were sent, percent-encoded; names of headers in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = b""
    keep_alive: bool = True


class RefusedRequestError(Exception):
    """Nothing that can be answered as asked; the connection ends after this status."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


def json_answer(status: int, content: Any, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(status, JSON, msgspec.json.encode(content) + b"\n", headers or {})


def error_answer(status: int, error: str, headers: Mapping[str, str] | None = None) -> Answer:
    return json_answer(status, {"error": error}, headers)


class HeadParser:
    """Of one connection: who asks again says the same about itself, which is looked at once."""

    def __init__(self) -> None:
        self._last: tuple[bytes, bytes] | None = None
        self._told: tuple[Mapping[str, str], int, bool] = ({}, 0, True)

    def parse(self, head: bytes) -> tuple[Request, int]:
        """A request without its body, and how long that is. `head` ends before the empty line."""
        line, _, rest = head.partition(b"\r\n")
        method, target, version = _request_line(line)
        if self._last != (version, rest):
            self._told = _told(version, rest)
            self._last = (version, rest)
        headers, length, keep_alive = self._told
        path, _, query = target.decode("ascii").partition("?")
        return Request(method, path, query, headers, b"", keep_alive), length


def parse_head(head: bytes) -> tuple[Request, int]:
    """The first of a connection."""
    return HeadParser().parse(head)


def _told(version: bytes, lines: bytes) -> tuple[Mapping[str, str], int, bool]:
    """Headers, length of the body, and whether the connection is kept."""
    headers = _headers(lines)
    if b"transfer-encoding" in headers:
        raise RefusedRequestError(HTTPStatus.NOT_IMPLEMENTED, "bodies in chunks are not taken; send a Content-Length")
    length = _content_length(headers.get(b"content-length"))
    if version == b"HTTP/1.1" and b"host" not in headers:
        raise RefusedRequestError(HTTPStatus.BAD_REQUEST, "there is no Host header")
    connection = headers.get(b"connection", b"").lower()
    keep_alive = connection != b"close" if version == b"HTTP/1.1" else connection == b"keep-alive"
    named = {name.decode("ascii"): value.decode("latin-1") for name, value in headers.items()}
    return named, length, keep_alive


def _request_line(line: bytes) -> tuple[str, bytes, bytes]:
    parts = line.split(b" ")
    if len(parts) != 3 or not _is_token(parts[0]):
        raise RefusedRequestError(HTTPStatus.BAD_REQUEST, "the first line is no request")
    method, target, version = parts
    if version not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise RefusedRequestError(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "HTTP/1.0 and HTTP/1.1 are spoken here")
    if method not in _METHODS:
        raise RefusedRequestError(HTTPStatus.NOT_IMPLEMENTED, "only GET, HEAD and POST are known here")
    if not target.startswith(b"/") or target.translate(None, _TARGET):
        raise RefusedRequestError(HTTPStatus.BAD_REQUEST, "the target must be a path, percent-encoded")
    return method.decode("ascii"), target, version


def _headers(lines: bytes) -> dict[bytes, bytes]:
    headers: dict[bytes, bytes] = {}
    if not lines:
        return headers
    if b"\0" in lines or lines.count(b"\n") != lines.count(b"\r\n"):
        raise RefusedRequestError(HTTPStatus.BAD_REQUEST, "a header has a line break or a null inside")
    for line in lines.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if not colon or not _is_token(name):
            raise RefusedRequestError(HTTPStatus.BAD_REQUEST, "a header line is none")
        name, value = name.lower(), value.strip(b" \t")
        if headers.setdefault(name, value) != value and name in (b"content-length", b"host"):
            raise RefusedRequestError(HTTPStatus.BAD_REQUEST, f"header {name.decode()} comes twice, and differs")
    return headers


def _is_token(text: bytes) -> bool:
    return bool(text) and not text.translate(None, _TOKEN)


def _content_length(text: bytes | None) -> int:
    if text is None:
        return 0
    if not text.isdigit() or len(text) > 18:
        raise RefusedRequestError(HTTPStatus.BAD_REQUEST, "Content-Length is no number")
    if int(text) > MAX_BODY_BYTES:
        raise RefusedRequestError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may have {MAX_BODY_BYTES} bytes, this one has {int(text)}"
        )
    return int(text)


def encode(answer: Answer, now_seconds: int, *, keep_alive: bool, with_body: bool = True) -> bytes:
    more = "".join([f"{name}: {value}\r\n" for name, value in answer.headers.items()])
    head = (
        f"HTTP/1.1 {answer.status} {_PHRASES.get(answer.status, '')}\r\n"
        f"Content-Type: {answer.content_type}\r\nContent-Length: {len(answer.body)}\r\n"
        f"Date: {_date(now_seconds)}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
        f"{more}{'' if keep_alive else _CLOSE}\r\n"
    )
    return head.encode("latin-1") + (answer.body if with_body else b"")


@functools.lru_cache(maxsize=1)
def _date(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)
