"""What a request to /query asks: path and parameters to a Question, or a refusal. Pure; query_pages.py answers.

/query/<store>/key/<key>                              one value
/query/<store>/range?from=&to=&descending=            keys, both bounds included
/query/<store>/window/<key>?from=&to=                 the windows of a key, by start
/query/<store>/windows?from=&to=                      the windows of all keys, by start
/query/<store>/session/<key>                          the sessions of a key
/query/<store>/version/<key>?as_of=                   one version of a key: the latest, or what was valid then
/query/<store>/versions/<key>?from=&to=&descending=   those that were valid at some time between both
/query/<store>/owner/<key>                            who has a key

limit, partitions, isolation, position, stale, forward, execution_info     how to answer; see docs/queries.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec

from streamfleet.durations import LONG_MAX
from streamfleet.query.position import Position
from streamfleet.query.queries import (
    AnyQuery,
    KeyQuery,
    MultiVersionedKeyQuery,
    RangeQuery,
    TimestampedKeyQuery,
    TimestampedRangeQuery,
    VersionedKeyQuery,
    WindowKeyQuery,
    WindowRangeQuery,
)
from streamfleet.query.request import IsolationLevel
from streamfleet.query.store_catalogue import StoreCatalogue, StorePlace
from streamfleet.worker.http_messages import Request
from streamfleet.worker.query_text import key_from_text

PREFIX = "/query/"
DEFAULT_LIMIT = 100
MAX_LIMIT = 1000

_OPTIONS = frozenset({"limit", "partitions", "isolation", "position", "stale", "forward", "execution_info"})
_BOUNDS = frozenset({"from", "to"})


class RefusedQuestionError(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Question(msgspec.Struct, frozen=True):
    """`partition` is that of `key`; both None for a scan of all partitions, or of `partitions`. `query` None: who has it?"""

    place: StorePlace
    query: AnyQuery | None
    key: Any = None
    partition: int | None = None
    partitions: tuple[int, ...] | None = None
    limit: int = DEFAULT_LIMIT
    isolation: IsolationLevel | None = None
    position: Position = msgspec.field(default_factory=Position)
    stale: bool = False
    forward: bool = True
    execution_info: bool = False


def parse_question(request: Request, catalogue: StoreCatalogue) -> Question:
    parts = request.path[len(PREFIX) :].split("/")
    store = _decoded(parts[0])
    if store not in catalogue.places:
        known = ", ".join(sorted(catalogue.places))
        raise RefusedQuestionError(
            HTTPStatus.NOT_FOUND, "store_does_not_exist", f"there is no store {store}; this app has {known or 'none'}"
        )
    place = catalogue.places[store]
    shape = (parts[1], len(parts)) if len(parts) > 1 else ("", 1)
    if shape not in _SHAPES:
        raise RefusedQuestionError(HTTPStatus.NOT_FOUND, "no_such_query", "see docs/queries.md for what can be asked")
    make, allowed = _SHAPES[shape]
    parameters = _parameters(request.query, allowed | _OPTIONS) if request.query else {}
    key = _key(catalogue, place, parts[2]) if shape[1] == 3 else None
    question = make(catalogue, place, key, parameters)
    options = _options(parameters)
    partition = None
    if key is not None and place.partitions:
        chosen = _only(options.pop("partitions", None))
        partition = catalogue.partition_of(store, key) if chosen is None else chosen
    return msgspec.structs.replace(question, key=key, partition=partition, **options)


def _only(partitions: tuple[int, ...] | None) -> int | None:
    """The partition of a key that did not get there by Kafka's own partitioner, as the caller says."""
    if partitions is None:
        return None
    if len(partitions) != 1:
        raise _bad("a key is in one partition")
    return partitions[0]


Make = Callable[[StoreCatalogue, StorePlace, Any, Mapping[str, str]], Question]


def _ask_key(_: StoreCatalogue, place: StorePlace, key: Any, _parameters: Mapping[str, str]) -> Question:
    return Question(place, (TimestampedKeyQuery if _is_timestamped(place) else KeyQuery)(key))


def _ask_range(catalogue: StoreCatalogue, place: StorePlace, _unused: Any, parameters: Mapping[str, str]) -> Question:
    bounds = {name: _key(catalogue, place, text, decode=False) for name, text in parameters.items() if name in _BOUNDS}
    kind = TimestampedRangeQuery if _is_timestamped(place) else RangeQuery
    descending = _boolean(parameters, "descending", default=False)
    return Question(place, kind(bounds.get("from"), bounds.get("to"), descending))


def _ask_window(_: StoreCatalogue, place: StorePlace, key: Any, parameters: Mapping[str, str]) -> Question:
    return Question(place, WindowKeyQuery(key, _number(parameters, "from", 0), _number(parameters, "to", LONG_MAX)))


def _ask_windows(_: StoreCatalogue, place: StorePlace, _unused: Any, parameters: Mapping[str, str]) -> Question:
    low, high = _number(parameters, "from", 0), _number(parameters, "to", LONG_MAX)
    return Question(place, WindowRangeQuery(time_from=low, time_to=high))


def _ask_session(_: StoreCatalogue, place: StorePlace, key: Any, _parameters: Mapping[str, str]) -> Question:
    return Question(place, WindowRangeQuery(key))


def _ask_version(_: StoreCatalogue, place: StorePlace, key: Any, parameters: Mapping[str, str]) -> Question:
    return Question(place, VersionedKeyQuery(key, _number(parameters, "as_of", 0) if "as_of" in parameters else None))


def _ask_versions(_: StoreCatalogue, place: StorePlace, key: Any, parameters: Mapping[str, str]) -> Question:
    low, high = _number(parameters, "from", 0), _number(parameters, "to", LONG_MAX)
    descending = _boolean(parameters, "descending", default=False)
    return Question(place, MultiVersionedKeyQuery(key, low, high, descending))


def _ask_owner(_: StoreCatalogue, place: StorePlace, _unused: Any, _parameters: Mapping[str, str]) -> Question:
    return Question(place, None)


_SHAPES: dict[tuple[str, int], tuple[Make, frozenset[str]]] = {
    ("key", 3): (_ask_key, frozenset()),
    ("range", 2): (_ask_range, _BOUNDS | {"descending"}),
    ("window", 3): (_ask_window, _BOUNDS),
    ("windows", 2): (_ask_windows, _BOUNDS),
    ("session", 3): (_ask_session, frozenset()),
    ("version", 3): (_ask_version, frozenset({"as_of"})),
    ("versions", 3): (_ask_versions, _BOUNDS | {"descending"}),
    ("owner", 3): (_ask_owner, frozenset()),
}


def _is_timestamped(place: StorePlace) -> bool:
    return bool(getattr(place.builder, "is_timestamped", False))


def _key(catalogue: StoreCatalogue, place: StorePlace, text: str, *, decode: bool = True) -> Any:
    plain = _decoded(text) if decode else text
    try:
        key = key_from_text(catalogue.key_serde(place.name), place.changelog, plain)
    except ValueError as error:
        raise _bad(f"{plain[:100]!r} is no key of store {place.name}: {error}") from error
    if key is None:
        raise _bad(f"a key of store {place.name} cannot be null")
    return key


def _decoded(text: str) -> str:
    if "%" not in text:
        return text
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise _bad("the path is not UTF-8") from error


def _parameters(query: str, allowed: frozenset[str]) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=20)
    except ValueError as error:
        raise _bad(f"the parameters cannot be read: {error}") from error
    found = dict(pairs)
    if len(found) < len(pairs) or not found.keys() <= allowed:
        raise _bad(f"parameters are, each once: {', '.join(sorted(allowed))}")
    return found


def _options(parameters: Mapping[str, str]) -> dict[str, Any]:
    if not parameters:
        return {}
    options: dict[str, Any] = {
        "stale": _boolean(parameters, "stale", default=False),
        "forward": _boolean(parameters, "forward", default=True),
        "execution_info": _boolean(parameters, "execution_info", default=False),
        "limit": _number(parameters, "limit", DEFAULT_LIMIT),
    }
    if not 1 <= options["limit"] <= MAX_LIMIT:
        raise RefusedQuestionError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "limit_too_large", f"limit is 1 to {MAX_LIMIT} rows per partition"
        )
    try:
        if "isolation" in parameters:
            options["isolation"] = IsolationLevel(parameters["isolation"])
        if "partitions" in parameters:
            options["partitions"] = tuple(sorted({int(number) for number in parameters["partitions"].split(",")}))
        if "position" in parameters:
            options["position"] = Position(
                msgspec.json.decode(parameters["position"], type=dict[str, dict[int, int]], strict=False)
            )
    except (ValueError, msgspec.MsgspecError) as error:
        raise _bad(str(error)) from error
    return options


def _boolean(parameters: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = parameters.get(name)
    if text not in (None, "true", "false"):
        raise _bad(f"{name} is true or false")
    return default if text is None else text == "true"


def _number(parameters: Mapping[str, str], name: str, default: int) -> int:
    text = parameters.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        raise _bad(f"{name} is a number")
    return int(text)


def _bad(message: str) -> RefusedQuestionError:
    return RefusedQuestionError(HTTPStatus.BAD_REQUEST, "bad_request", message)
