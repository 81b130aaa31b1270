"""The pages below /digest: what a store here holds, as sums to compare with its changelog. For audits; see docs/audits.md.

/digest/<store>?partition=3                      count, xor and sum of row hashes, in 256 buckets by key
/digest/<store>?partition=3&buckets=17,201       the rows of these buckets: key (base64) and hash

Only tasks that are here answer: nobody else is asked. One at a time, since a whole store is read.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote

from streamfleet.errors import ScanTooLargeError, StoreDamagedError, StoreUnavailableError
from streamfleet.query.app_queries import AppQueries
from streamfleet.query.store_digest import BUCKETS, Moment
from streamfleet.worker.http_messages import Answer, Request, error_answer, json_answer

PREFIX = "/digest/"
RETRY_AFTER = {"Retry-After": "1"}


class DigestPages:
    """`queries` raises StoreUnavailableError until the app runs."""

    def __init__(self, queries: Callable[[], AppQueries]) -> None:
        self._queries = queries
        self._one_at_a_time = threading.Lock()

    def answer(self, request: Request) -> Answer:
        """A handler for Routes."""
        try:
            store, partition, buckets = _parsed(request)
        except ValueError as error:
            return error_answer(HTTPStatus.BAD_REQUEST, str(error))
        if not self._one_at_a_time.acquire(blocking=False):
            return error_answer(HTTPStatus.TOO_MANY_REQUESTS, "a digest is being made; ask again later", RETRY_AFTER)
        try:
            return json_answer(HTTPStatus.OK, self._content(store, partition, buckets))
        except ScanTooLargeError as error:
            return error_answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, str(error))
        except (StoreDamagedError, StoreUnavailableError) as error:
            return error_answer(HTTPStatus.SERVICE_UNAVAILABLE, str(error), RETRY_AFTER)
        finally:
            self._one_at_a_time.release()

    def _content(self, store: str, partition: int, buckets: tuple[int, ...]) -> dict[str, Any]:
        queries = self._queries()
        if buckets:
            listed = queries.rows_of(store, partition, buckets)
            rows = [[base64.b64encode(key).decode(), f"{hashed:016x}"] for key, hashed in listed.rows]
            return _moment(listed.moment) | {"rows": rows}
        found = queries.digest(store, partition)
        sums = {bucket: [rows, f"{xor:016x}", f"{total:016x}"] for bucket, (rows, xor, total) in found.buckets.items()}
        return _moment(found.moment) | {"buckets": sums}


def _moment(moment: Moment) -> dict[str, Any]:
    return {
        "store": moment.store,
        "partition": moment.partition,
        "changelog": moment.changelog,
        "offset": moment.offset,
        "timestamps": moment.timestamps,
        "oldest_ms": moment.oldest_ms,
        "active": moment.is_active,
    }


def _parsed(request: Request) -> tuple[str, int, tuple[int, ...]]:
    store = unquote(request.path[len(PREFIX) :])
    given = dict(parse_qsl(request.query, keep_blank_values=True, max_num_fields=5))
    if not store or not given.keys() <= {"partition", "buckets"} or not given.get("partition", "").isdecimal():
        raise ValueError("ask for /digest/<store>?partition=<number>, with buckets=<numbers> for their rows")
    words = given["buckets"].split(",") if "buckets" in given else []
    if not all(word.isdecimal() and int(word) < BUCKETS for word in words):
        raise ValueError(f"buckets are numbers below {BUCKETS}, with commas between")
    return store, int(given["partition"]), tuple(map(int, words))
