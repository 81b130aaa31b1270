"""The pages below /query: a question is answered from the stores here, or by the one worker that owns the key.

    here ──────────────────────────────────────────> 200, 404 (no such key), 409 (the store cannot answer that)
    here, but not the owner, and ?stale=true ──────> 200 with "active": false, lag and age
    elsewhere ── the owner is asked, once ─────────> what it answers
              ├─ ?stale=true: then the standbys ───> what the first of them answers
              └─ ?forward=false, or asked by a peer > 421 with the owner
    nobody has it at the moment, or nobody knows ──> 503 with Retry-After

An answer is whole or none: a scan that lacks a partition is a 503, and one that was cut by its limit says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import msgspec

from streamfleet.clock import Clock
from streamfleet.errors import ScanTooLargeError, StoreUnavailableError, TooManyQueriesError
from streamfleet.metrics import QueryCounts
from streamfleet.query.app_queries import AppQueries
from streamfleet.query.hosts import KeyQueryMetadata
from streamfleet.query.queries import KeyQuery, TimestampedKeyQuery
from streamfleet.query.request import StateQueryRequest
from streamfleet.query.results import FailureReason, QueryResult
from streamfleet.worker.http_messages import Answer, Request, json_answer
from streamfleet.worker.peers import APPLICATION_HEADER, HOPS_HEADER, PeerError, Peers
from streamfleet.worker.query_questions import Question, RefusedQuestionError, parse_question
from streamfleet.worker.query_rows import QueryRows

MAX_QUERIES = 32
MAX_SCANS = 4
"""At a time: a scan keeps a stream thread, or a commit, waiting for as long as it reads."""

MAX_SCANNED = 20_000
"""Rows of a partition that may be looked at for one answer."""

_GONE = (FailureReason.NOT_PRESENT, FailureReason.NOT_ACTIVE)
_STATUS = {
    FailureReason.UNKNOWN_QUERY_TYPE: HTTPStatus.CONFLICT,
    FailureReason.DOES_NOT_EXIST: HTTPStatus.NOT_FOUND,
    FailureReason.STORE_EXCEPTION: HTTPStatus.INTERNAL_SERVER_ERROR,
}
RETRY_AFTER = {"Retry-After": "1"}


class _PeerScan(msgspec.Struct):
    partitions: dict[int, msgspec.Raw]


class QueryPages:
    """`queries` raises StoreUnavailableError while the app does not run."""

    def __init__(
        self,
        application_id: str,
        queries: Callable[[], AppQueries],
        peers: Peers,
        clock: Clock,
        counts: QueryCounts | None = None,
    ) -> None:
        self._application_id = application_id
        self._own = {APPLICATION_HEADER: application_id}
        self._queries = queries
        self._peers = peers
        self._clock = clock
        self._counts = counts or QueryCounts()
        self._slots = list(range(MAX_QUERIES))
        self._scan_slots = list(range(MAX_SCANS))
        """Those that are free. A list gives and takes one at a time, and costs a query a tenth of what a semaphore does."""

    def answer(self, request: Request) -> Answer:
        """A handler for Routes."""
        began = time.perf_counter()
        kind, answer = self._answer(request)
        self._counts.add(kind, answer.status, time.perf_counter() - began)
        return answer

    def _answer(self, request: Request) -> tuple[str, Answer]:
        """With what was asked for, as the metrics have it."""
        kind = "none"
        asked_for = request.headers.get(APPLICATION_HEADER.lower(), self._application_id)
        if asked_for != self._application_id:
            why = "this is a worker of another app"
            return kind, self._refusal(HTTPStatus.MISDIRECTED_REQUEST, "other_application", why)
        try:
            queries = self._queries()
            question = parse_question(request, queries.catalogue)
            kind = "scan" if question.key is None else "key"
            return kind, self._in_slot(queries, question, request)
        except RefusedQuestionError as refused:
            return kind, self._refusal(refused.status, refused.code, str(refused))
        except TooManyQueriesError as error:
            answer = self._refusal(HTTPStatus.TOO_MANY_REQUESTS, "too_many_queries", str(error), headers=RETRY_AFTER)
            return kind, answer
        except ScanTooLargeError as error:
            return kind, self._refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "scan_too_large", str(error))
        except StoreUnavailableError as error:
            answer = self._refusal(HTTPStatus.SERVICE_UNAVAILABLE, "not_running", str(error), headers=RETRY_AFTER)
            return kind, answer

    def _in_slot(self, queries: AppQueries, question: Question, request: Request) -> Answer:
        is_scan = question.key is None
        slots = self._scan_slots if is_scan else self._slots
        try:
            slot = slots.pop()
        except IndexError:
            raise TooManyQueriesError("as many queries as can be are being answered", hint="ask again later") from None
        try:
            if question.query is None:
                return self._owner(queries, question)
            if question.place.sub_topology is None:
                return self._global(queries, question)
            return (self._scan if is_scan else self._one)(queries, question, request)
        finally:
            slots.append(slot)

    # one partition

    def _one(self, queries: AppQueries, question: Question, request: Request) -> Answer:
        assert question.partition is not None
        result = queries.run(_request(question, (question.partition,))).partitions[question.partition]
        if result.is_success:
            return self._found(queries, question, result)
        if _is_elsewhere(result):
            return self._elsewhere(queries, question, request, result)
        return self._failed(question, result)

    def _found(self, queries: AppQueries, question: Question, result: QueryResult[Any]) -> Answer:
        rows = QueryRows(queries.catalogue, question.place)
        content: dict[str, Any] = {"store": question.place.name, "partition": question.partition}
        content |= self._freshness(result)
        if question.key is not None:
            content["key"] = rows.key(question.key)
        if isinstance(result.value, list):
            content |= {"rows": rows.rows(question.query, result.value, question.key), "complete": result.is_complete}
        elif result.value is None:
            content |= {"error": "the store has no such key", "code": "key_not_found"}
            return json_answer(HTTPStatus.NOT_FOUND, content, self._own)
        else:
            content |= rows.value(result.value)
        return json_answer(HTTPStatus.OK, content, self._own)

    def _elsewhere(self, queries: AppQueries, question: Question, request: Request, here: QueryResult[Any]) -> Answer:
        assert question.partition is not None
        metadata = queries.metadata(question.place.name, question.partition)
        others = _others(queries, question, metadata)
        owner = others[0] if metadata.active in others else None
        if not question.forward or _hops(request):
            return self._refusal(
                HTTPStatus.MISDIRECTED_REQUEST if owner is not None else HTTPStatus.SERVICE_UNAVAILABLE,
                "not_here",
                here.message,
                {"partition": question.partition, "owner": owner, "standbys": list(metadata.standbys)},
                RETRY_AFTER if owner is None else {},
            )
        for endpoint in others:
            try:
                answer = self._peers.ask(endpoint, _target(request))
            except PeerError as error:
                here = QueryResult.failed(FailureReason.NOT_PRESENT, str(error))
                continue
            if answer.status not in (HTTPStatus.MISDIRECTED_REQUEST, HTTPStatus.SERVICE_UNAVAILABLE):
                return Answer(answer.status, answer.content_type, answer.body, {**self._own, **answer.headers})
            here = QueryResult.failed(
                FailureReason.NOT_ACTIVE, f"worker {endpoint} does not have it either, or not yet"
            )
        return self._failed(question, here)

    def _owner(self, queries: AppQueries, question: Question) -> Answer:
        if question.partition is None:
            return json_answer(HTTPStatus.OK, {"store": question.place.name, "global": True}, self._own)
        metadata = queries.metadata(question.place.name, question.partition)
        content = {"store": question.place.name, "partition": metadata.partition, "owner": metadata.active}
        return json_answer(HTTPStatus.OK, content | {"standbys": list(metadata.standbys)}, self._own)

    # all partitions

    def _scan(self, queries: AppQueries, question: Question, request: Request) -> Answer:
        wanted = question.partitions or tuple(range(question.place.partitions))
        results = queries.run(_request(question, wanted)).partitions
        for result in results.values():
            if not result.is_success and not _is_elsewhere(result):
                return self._failed(question, result)
        rows = QueryRows(queries.catalogue, question.place)
        parts: dict[int, Any] = {
            partition: {
                "rows": rows.rows(question.query, result.result),
                "complete": result.is_complete,
                **self._freshness(result),
            }
            for partition, result in results.items()
            if result.is_success
        }
        missing = [partition for partition in wanted if partition not in parts]
        if missing and question.forward and not _hops(request):
            parts |= self._ask_others(queries, question, request, missing)
            missing = [partition for partition in wanted if partition not in parts]
        if missing:
            return self._refusal(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "partitions_missing",
                "not all partitions can be read now",
                {"partitions": missing},
                RETRY_AFTER,
            )
        complete = all(_is_complete(part) for part in parts.values())
        content = {"store": question.place.name, "complete": complete, "partitions": parts}
        return json_answer(HTTPStatus.OK, content, self._own)

    def _ask_others(
        self, queries: AppQueries, question: Question, request: Request, missing: list[int]
    ) -> dict[int, Any]:
        """In rounds: the owners; then, for what is still missing and if that will do, the first standbys, the second ..."""
        store = question.place.name
        left = {partition: _others(queries, question, queries.metadata(store, partition)) for partition in missing}
        parts: dict[int, Any] = {}
        silent: set[str] = set()
        while asked := _by_first(left):
            for endpoint, partitions in asked.items():
                if endpoint not in silent:
                    found = self._ask_peer(endpoint, _target(request, partitions))
                    silent |= {endpoint} if found is None else set()
                    parts |= {partition: part for partition, part in (found or {}).items() if partition in partitions}
            left = {partition: others[1:] for partition, others in left.items() if partition not in parts}
        return parts

    def _ask_peer(self, endpoint: str, target: str) -> dict[int, msgspec.Raw] | None:
        """Partitions of a scan, none if it does not have all of them; None if it does not answer at all."""
        try:
            answer = self._peers.ask(endpoint, target)
            if answer.status != HTTPStatus.OK:
                return {}
            return msgspec.json.decode(answer.body, type=_PeerScan, strict=False).partitions
        except (PeerError, msgspec.MsgspecError):
            return None

    def _global(self, queries: AppQueries, question: Question) -> Answer:
        result = queries.run(_request(question, None)).global_result
        assert result is not None
        if not result.is_success:
            return self._failed(question, result)
        return self._found(queries, question, result)

    # how fresh, and why not

    def _freshness(self, result: QueryResult[Any]) -> dict[str, Any]:
        told: dict[str, Any] = {"active": result.is_active, "position": result.position.offsets}
        if not result.is_active:
            told["lag_records"] = result.lag_records
            age_ms = None if result.as_of_ms is None else max(0, self._clock.now_ms() - result.as_of_ms)
            told["age_ms"] = age_ms
        if result.execution_info:
            told["execution_info"] = result.execution_info
        return told

    def _failed(self, question: Question, result: QueryResult[Any]) -> Answer:
        assert result.failure is not None
        status = _STATUS.get(result.failure, HTTPStatus.SERVICE_UNAVAILABLE)
        headers = RETRY_AFTER if status is HTTPStatus.SERVICE_UNAVAILABLE else {}
        more = {"partition": question.partition, "position": result.position.offsets}
        return self._refusal(status, result.failure.value, result.message, more, headers)

    def _refusal(
        self,
        status: int,
        code: str,
        message: str,
        more: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        return json_answer(status, {"error": message, "code": code, **(more or {})}, {**self._own, **(headers or {})})


def _request(question: Question, partitions: tuple[int, ...] | None) -> StateQueryRequest[Any]:
    query = question.query
    assert query is not None
    return StateQueryRequest(
        question.place.name,
        query,
        partitions=partitions,
        require_active=not question.stale,
        position_bound=question.position,
        isolation=question.isolation,
        limit=question.limit,
        max_scanned=None if isinstance(query, (TimestampedKeyQuery, KeyQuery)) else MAX_SCANNED,
        execution_info=question.execution_info,
    )


def _is_elsewhere(result: QueryResult[Any]) -> bool:
    """Whether somebody else may answer: also where a copy, which knows no position, is asked for one."""
    return result.failure in _GONE or (result.failure is FailureReason.NOT_UP_TO_BOUND and not result.is_active)


def _others(queries: AppQueries, question: Question, metadata: KeyQueryMetadata) -> list[str]:
    """Who else may answer for a partition: its owner, then its standbys if they will do."""
    known = [metadata.active, *(metadata.standbys if question.stale else ())]
    return [endpoint for endpoint in known if endpoint is not None and endpoint != queries.endpoint]


def _by_first(left: Mapping[int, list[str]]) -> dict[str, list[int]]:
    """Endpoint -> partitions for which it comes next."""
    partitions: dict[str, list[int]] = {}
    for partition, others in left.items():
        if others:
            partitions.setdefault(others[0], []).append(partition)
    return partitions


def _hops(request: Request) -> bool:
    """Whether another worker asks: it is told what is here, and nobody else is asked for it."""
    return HOPS_HEADER.lower() in request.headers


def _target(request: Request, partitions: list[int] | None = None) -> str:
    query = request.query
    if partitions is not None:
        kept = [pair for pair in query.split("&") if pair and not pair.startswith("partitions=")]
        query = "&".join([*kept, urlencode({"partitions": ",".join(map(str, partitions))})])
    return f"{request.path}?{query}" if query else request.path


def _is_complete(part: Any) -> bool:
    if isinstance(part, msgspec.Raw):
        return bool(msgspec.json.decode(part, type=_Complete).complete)
    return bool(part["complete"])


class _Complete(msgspec.Struct):
    complete: bool
