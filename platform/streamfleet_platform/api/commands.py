"""What every route is handed: the service, who calls and that they may; of a call that changes something also its body, read
strictly, and the key under which the same call is done once.

A body is JSON as written in RFC 8259 and nothing looser: no NaN, no key twice, no depth without end, no other content type.
"""

# no `from __future__ import annotations`: FastAPI reads the annotations of the functions made here

import hashlib
import json
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Any, Generic, NoReturn, TypeVar, cast

from fastapi import Depends, Request
from pydantic import ValidationError

from streamfleet_platform import views
from streamfleet_platform.api.access import RULES, Action, Principal, Reach
from streamfleet_platform.api.problems import RefusedRequestError, body_problem
from streamfleet_platform.errors import InvalidRequestError
from streamfleet_platform.service import FleetService

A = TypeVar("A")
B = TypeVar("B", bound=views.Request)
MAX_BODY_BYTES = 256 * 1024
MAX_REPORT_BYTES = 16 * 2**20
MAX_DEPTH = 32
MAX_REMEMBERED = 2000
MAX_KEY_CHARS = 200


def fleet_service(request: Request) -> FleetService:
    return cast("FleetService", request.app.state.service)


Fleet = Annotated[FleetService, Depends(fleet_service)]


class Allowed:
    """A dependency of every route: the caller may do this, to this app."""

    def __init__(self, action: Action) -> None:
        self.action = action

    def __call__(self, request: Request, service: Fleet) -> Principal:
        principal: Principal = request.state.principal
        principal.check(self.action)
        app = request.path_params.get("app")
        if app is not None and RULES[self.action].reach is not Reach.EVERY_APP:
            principal.check(self.action, service.owner_of(app))
        _refuse_unknown_parameters(request)
        return principal


Looking = Annotated[Principal, Depends(Allowed(Action.LOOK))]


@dataclass(frozen=True)
class Command(Generic[B]):
    """One call that changes something."""

    principal: Principal
    body: B
    intent_id: str
    """The caller's Idempotency-Key, or one made for this call."""
    fingerprint: bytes
    """Of method, path and body."""
    remembered: "RememberedAnswers"

    @property
    def actor(self) -> str:
        return self.principal.name

    def once(self, act: Callable[[], A]) -> A:
        return self.remembered.once(self.intent_id, self.fingerprint, act)


def command(kind: type[B], action: Action, max_bytes: int = MAX_BODY_BYTES) -> Callable[..., Any]:
    """A dependency: the caller may, the body is right."""

    async def read(request: Request, principal: Annotated[Principal, Depends(Allowed(action))]) -> Command[B]:
        raw = await _body_of(request, max_bytes)
        fingerprint = hashlib.sha256(f"{request.method} {request.url.path}\n".encode() + raw).digest()
        key = _key_of(request)
        return Command(principal, parsed(kind, raw), key, fingerprint, request.app.state.remembered)

    return read


def body_schema(kind: type[views.Request]) -> dict[str, Any]:
    """For `openapi_extra`: the framework does not see a body that is read here."""
    content = {"application/json": {"schema": kind.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


class RememberedAnswers:
    """First answers by key, as long as this process lives; beyond that the service knows its intents. Any thread."""

    def __init__(self, max_entries: int = MAX_REMEMBERED) -> None:
        self._max_entries = max_entries
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def once(self, key: str, fingerprint: bytes, act: Callable[[], A]) -> A:
        """A second call with the key waits for the first and gets its answer. An error is not remembered: it may be repaired."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)
        with entry.lock:
            if not entry.answered:
                entry.answered.append((fingerprint, act()))
            first, answer = entry.answered[0]
            if first != fingerprint:
                raise InvalidRequestError(
                    "this Idempotency-Key came before with another request", hint="use a key of its own for each intent"
                )
            return cast("A", answer)


@dataclass
class _Entry:
    lock: threading.Lock = field(default_factory=threading.Lock)
    answered: list[tuple[bytes, Any]] = field(default_factory=list)


def parsed(kind: type[B], raw: bytes) -> B:
    """A body. Looked at twice: pydantic's own parser takes NaN, and the last of two equal keys."""
    try:
        content = json.loads(raw, object_pairs_hook=_no_key_twice, parse_constant=_no_constant)
        _check_depth(content)
        return kind.model_validate_json(raw)
    except ValidationError as error:
        raise body_problem(error) from error
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError("the body is no JSON that can be taken", hint="see RFC 8259") from error


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key comes twice")
    return found


def _no_constant(_: str) -> NoReturn:
    raise ValueError("no number")


def _check_depth(content: Any) -> None:
    level = [content]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return
    raise ValueError("too deep")


async def _body_of(request: Request, max_bytes: int) -> bytes:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RefusedRequestError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a body is JSON", hint="send Content-Type: application/json"
        )
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise RefusedRequestError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a body is not compressed")
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > max_bytes:
            raise RefusedRequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {max_bytes} bytes here")
    return bytes(received)


def _key_of(request: Request) -> str:
    key = request.headers.get("idempotency-key")
    if key is None:
        return uuid.uuid4().hex
    if not 0 < len(key) <= MAX_KEY_CHARS or not all("!" <= char <= "~" for char in key):
        raise InvalidRequestError(
            "the Idempotency-Key is none", hint=f"1 to {MAX_KEY_CHARS} letters, digits and signs, no blanks"
        )
    return key


def _refuse_unknown_parameters(request: Request) -> None:
    known = {parameter.alias for parameter in request.scope["route"].dependant.query_params}
    if any(name not in known for name in request.query_params):
        takes = ", ".join(sorted(known)) or "none"
        raise InvalidRequestError("there is an unknown parameter", hint=f"this address takes: {takes}")
