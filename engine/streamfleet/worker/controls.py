"""What may be done to a running worker from outside: POST /control/probe, drain, pause, resume, restore-rate. Documented in
docs/worker.md; `streamfleet worker probe URL` and its siblings call them (control_client.py).

Who may: with a token, who shows it; without one, who is on this machine. A worker that listens to others and has no token
takes no orders. An action answers when it is begun; /status tells how far it is. All of them may be repeated.
"""

from __future__ import annotations

import hmac
import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Protocol

import msgspec
import structlog

from streamfleet.errors import ConfigError, StreamsError
from streamfleet.kafka_streams.states import ClientState
from streamfleet.worker.http_messages import Answer, Request, error_answer, json_answer
from streamfleet.worker.http_routes import Routes

log = structlog.get_logger(__name__)

PREFIX = "/control/"


class Controllable(Protocol):
    """A KafkaStreams, as far as it takes orders."""

    @property
    def state(self) -> ClientState: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def probe(self) -> None: ...

    def set_restore_rate(self, bytes_per_second: int) -> None: ...


class _Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An order that needs no details."""


class _RestoreRate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    bytes_per_second: int


class Controls:
    """`drain` commits, closes the tasks and leaves the group; it may take as long as the grace period."""

    def __init__(self, app: Controllable, drain: Callable[[], None], *, token: str | None, is_local: bool) -> None:
        self._app = app
        self._drain = drain
        self._token = token
        self._is_local = is_local

    def add_to(self, routes: Routes) -> None:
        self._route(routes, "probe", _Nothing, lambda _: self._app.probe())
        self._route(routes, "drain", _Nothing, lambda _: self._start_draining())
        self._route(routes, "pause", _Nothing, lambda _: self._app.pause())
        self._route(routes, "resume", _Nothing, lambda _: self._app.resume())
        self._route(
            routes, "restore-rate", _RestoreRate, lambda rate: self._app.set_restore_rate(rate.bytes_per_second)
        )

    def _route(self, routes: Routes, name: str, details: type[Any], act: Callable[[Any], None]) -> None:
        def obey(content: Any) -> Answer:
            try:
                act(msgspec.convert({} if content is None else content, details))
            except msgspec.ValidationError as error:
                return error_answer(HTTPStatus.BAD_REQUEST, f"the body does not fit: {error}")
            except ConfigError as error:
                return error_answer(HTTPStatus.BAD_REQUEST, str(error))
            except StreamsError as error:
                return error_answer(HTTPStatus.CONFLICT, str(error))
            log.info("control", what=name, body=content)
            return json_answer(HTTPStatus.ACCEPTED, {"accepted": name, "state": self._app.state.value})

        routes.post(PREFIX + name, obey, guard=self._refusal)

    def _refusal(self, request: Request) -> Answer | None:
        """Why this request may not give orders; None: it may."""
        if self._token is None:
            if self._is_local:
                return None
            why = "this worker listens beyond its machine and has no token; start it with --control-token-file"
            return error_answer(HTTPStatus.FORBIDDEN, why)
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(shown.strip().encode(), self._token.encode()):
            return None
        return error_answer(
            HTTPStatus.UNAUTHORIZED, "send the token, as Authorization: Bearer ...", {"WWW-Authenticate": "Bearer"}
        )

    def _start_draining(self) -> None:
        if self._app.state is ClientState.CREATED:
            raise StreamsError(
                "the app has not started yet", hint="ask again when /status says that it runs, or stop it"
            )
        threading.Thread(target=self._drain, name="worker-drain", daemon=True).start()
