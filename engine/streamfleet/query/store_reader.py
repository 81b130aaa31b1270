"""One query on one open store: which kinds can answer which, and how. Pure reading; called by local_queries.py.

Java's rules: KeyQuery and RangeQuery give the bare value, also of timestamped stores; the Timestamped ones are for these
alone; a window store answers by window start, a session store by key, a versioned store by key and time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from streamfleet.durations import LONG_MAX
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
from streamfleet.state.api import KeyValueStore, SessionStore, StoreIterator, VersionedKeyValueStore, WindowStore
from streamfleet.state.task_store import QueryableStore


class Read(NamedTuple):
    value: Any
    is_complete: bool = True


class UnknownQueryError(Exception):
    """The store cannot answer this query."""


def read(store: QueryableStore, query: AnyQuery, limit: int | None) -> Read:
    """Raises UnknownQueryError, and whatever the store and its serdes raise."""
    answer = _ANSWERS.get(type(query))
    if answer is None:
        raise UnknownQueryError(f"{type(query).__name__} is no query that stores know")
    return answer(store, query, limit)


def _key(store: QueryableStore, query: KeyQuery[Any, Any], _limit: int | None) -> Read:
    value = _key_value(store, query).get(query.key)
    return Read(value.value if store.is_timestamped and value is not None else value)


def _timestamped_key(store: QueryableStore, query: TimestampedKeyQuery[Any, Any], _limit: int | None) -> Read:
    return Read(_timestamped(store, query).get(query.key))


def _range(store: QueryableStore, query: RangeQuery[Any, Any], limit: int | None) -> Read:
    rows = _scan(_key_value(store, query), query)
    if not store.is_timestamped:
        return _taken(rows, limit)
    taken = _taken(rows, limit)
    return Read([(key, value.value) for key, value in taken.value], taken.is_complete)


def _timestamped_range(store: QueryableStore, query: TimestampedRangeQuery[Any, Any], limit: int | None) -> Read:
    return _taken(_scan(_timestamped(store, query), query), limit)


def _window_key(store: QueryableStore, query: WindowKeyQuery[Any, Any], limit: int | None) -> Read:
    if not isinstance(store, WindowStore):
        raise _unknown(store, query)
    return _taken(store.fetch_between(query.key, query.time_from, query.time_to), limit)


def _window_range(store: QueryableStore, query: WindowRangeQuery[Any, Any], limit: int | None) -> Read:
    if isinstance(store, SessionStore) and query.key is not None:
        return _taken(store.fetch(query.key), limit)
    if isinstance(store, WindowStore) and query.key is None:
        time_from = 0 if query.time_from is None else query.time_from
        return _taken(store.fetch_all(time_from, LONG_MAX if query.time_to is None else query.time_to), limit)
    raise _unknown(store, query)


def _version(store: QueryableStore, query: VersionedKeyQuery[Any, Any], _limit: int | None) -> Read:
    return Read(_versioned(store, query).get(query.key, query.as_of))


def _versions(store: QueryableStore, query: MultiVersionedKeyQuery[Any, Any], limit: int | None) -> Read:
    found = (
        version
        for version in _versioned(store, query).versions(query.key, reverse=query.descending)
        if version.timestamp <= query.time_to and (version.valid_to is None or version.valid_to > query.time_from)
    )
    return Read(list(found)) if limit is None else _first(found, limit)


_ANSWERS: dict[type, Callable[[QueryableStore, Any, int | None], Read]] = {
    KeyQuery: _key,
    RangeQuery: _range,
    TimestampedKeyQuery: _timestamped_key,
    TimestampedRangeQuery: _timestamped_range,
    WindowKeyQuery: _window_key,
    WindowRangeQuery: _window_range,
    VersionedKeyQuery: _version,
    MultiVersionedKeyQuery: _versions,
}


def _key_value(store: QueryableStore, query: AnyQuery) -> KeyValueStore[Any, Any]:
    if not isinstance(store, KeyValueStore):
        raise _unknown(store, query)
    return store


def _versioned(store: QueryableStore, query: AnyQuery) -> VersionedKeyValueStore[Any, Any]:
    if not isinstance(store, VersionedKeyValueStore):
        raise _unknown(store, query)
    return store


def _timestamped(store: QueryableStore, query: AnyQuery) -> KeyValueStore[Any, Any]:
    if not store.is_timestamped:
        raise _unknown(store, query)
    return _key_value(store, query)


def _scan(store: KeyValueStore[Any, Any], query: Any) -> StoreIterator[tuple[Any, Any]]:
    if query.descending:
        return store.reverse_range(query.lower, query.upper)
    return store.range(query.lower, query.upper)


def _taken(rows: StoreIterator[Any], limit: int | None) -> Read:
    with rows:
        if limit is None:
            return Read(list(rows))
        return _first(rows, limit)


def _first(rows: Iterator[Any] | Iterable[Any], limit: int) -> Read:
    """One row more is looked at, to know whether these are all."""
    taken = list(islice(rows, limit + 1))
    return Read(taken[:limit], len(taken) <= limit)


def _unknown(store: QueryableStore, query: AnyQuery) -> UnknownQueryError:
    kinds: dict[type, str] = {KeyValueStore: "key-value", WindowStore: "window", SessionStore: "session"}
    kind = next((word for of, word in kinds.items() if isinstance(store, of)), "versioned")
    stamped = "timestamped " if store.is_timestamped else ""
    return UnknownQueryError(
        f"store {store.name} is a {stamped}{kind} store and cannot answer a {type(query).__name__}"
    )
