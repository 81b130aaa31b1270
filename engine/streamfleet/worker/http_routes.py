"""Routes: which function answers which method and path. Filled by http_door.py and by whoever adds pages; asked per request.

A path is exact, or ends in `/` and stands for all paths below it. GET functions get the Request. POST functions get what the
JSON body says: they change something, so a page of somebody's browser must not be able to call them. Browsers mark such
requests with an Origin, and may not send JSON elsewhere without asking first, which nobody here answers.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import msgspec
import structlog

from streamfleet.worker.http_messages import JSON, Answer, Request, error_answer, json_answer

log = structlog.get_logger(__name__)

Handler = Callable[[Request], Answer]
Action = Callable[[Any], Answer]
"""Given what the JSON body holds, None without one."""
Guard = Callable[[Request], Answer | None]
"""The refusal of a request, None if it may go on."""


class Routes:
    def __init__(self) -> None:
        self._exact: dict[str, dict[str, Handler]] = {}
        self._below: dict[str, dict[str, Handler]] = {}

    def get(self, path: str, handler: Handler) -> None:
        self._table(path).setdefault(path, {})["GET"] = handler

    def post(self, path: str, action: Action, guard: Guard | None = None) -> None:
        """`guard` is asked first."""

        def handle(request: Request) -> Answer:
            refused = None if guard is None else guard(request)
            return _act(request, action) if refused is None else refused

        self._table(path).setdefault(path, {})["POST"] = handle

    def _table(self, path: str) -> dict[str, dict[str, Handler]]:
        return self._below if path.endswith("/") else self._exact

    def answer(self, request: Request) -> Answer:
        methods = self._methods(request.path)
        if methods is None:
            pages = sorted(self._exact.keys() | self._below.keys())
            return json_answer(HTTPStatus.NOT_FOUND, {"error": "no such page", "pages": pages})
        handler = methods.get("GET" if request.method == "HEAD" else request.method)
        if handler is None:
            allowed = ", ".join(sorted(methods.keys() | ({"HEAD"} if "GET" in methods else set())))
            return error_answer(HTTPStatus.METHOD_NOT_ALLOWED, f"use {allowed}", {"Allow": allowed})
        try:
            return handler(request)
        except Exception:
            log.exception("http page failed", path=request.path)
            return error_answer(HTTPStatus.INTERNAL_SERVER_ERROR, "see the log")

    def _methods(self, path: str) -> dict[str, Handler] | None:
        methods = self._exact.get(path)
        if methods is None:
            for prefix, below in self._below.items():
                if path.startswith(prefix):
                    return below
        return methods


def _act(request: Request, action: Action) -> Answer:
    if "origin" in request.headers:
        return error_answer(HTTPStatus.FORBIDDEN, "pages of a browser cannot do this")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        return error_answer(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send Content-Type: {JSON}")
    try:
        content = msgspec.json.decode(request.body) if request.body else None
    except msgspec.DecodeError as error:
        return error_answer(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {error}")
    return action(content)
