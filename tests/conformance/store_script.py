"""The processor `store_script`: runs the value of a record as a command on a store and forwards the answer as text.

One function per command and kind of store; `-` in a command is null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.conformance.kit import text

import streamfleet as sf

Answer = str
Put = Callable[[str | None], Any]
"""Turns the text of a value into what the store takes: itself, or with the record's timestamp, or None."""


def run_command(kind: str, store: Any, command: str, timestamp: int) -> Answer:
    """`kind` is the store's kind in the scenario format; timestamped stores put with the record's timestamp."""
    name, *words = command.split(" ")
    arguments = [None if word == "-" else word for word in words]

    def to_put(value: str | None) -> Any:
        return sf.ValueAndTimestamp(value, timestamp) if kind.startswith("timestamped") and value is not None else value

    return _COMMANDS[kind.removeprefix("timestamped_")][name](store, arguments, to_put)


def _value(found: Any) -> Answer:
    stamped = isinstance(found, sf.ValueAndTimestamp | sf.VersionedRecord)
    return f"{text(found.value)}@{found.timestamp}" if stamped else text(found)


def _key(key: Any) -> str:
    return f"{text(key.key)}@{key.window.start}/{key.window.end}" if isinstance(key, sf.Windowed) else text(key)


def _rows(iterator: Any) -> Answer:
    with iterator as rows:
        return ",".join(f"{_key(key)}={_value(value)}" for key, value in rows)


def _ok(_: None) -> Answer:
    return "ok"


def _times(words: list[Any]) -> Iterator[int]:
    return (int(word) for word in words)


def _session(key: Any, start: str, end: str) -> sf.Windowed[Any]:
    return sf.Windowed(key, sf.SessionWindow(int(start), int(end)))


Command = Callable[[Any, list[Any], Put], Answer]

_KEY_VALUE: dict[str, Command] = {
    "put": lambda store, a, to_put: _ok(store.put(a[0], to_put(a[1]))),
    "put_if_absent": lambda store, a, to_put: _value(store.put_if_absent(a[0], to_put(a[1]))),
    "delete": lambda store, a, _: _value(store.delete(a[0])),
    "get": lambda store, a, _: _value(store.get(a[0])),
    "range": lambda store, a, _: _rows(store.range(a[0], a[1])),
    "reverse_range": lambda store, a, _: _rows(store.reverse_range(a[0], a[1])),
    "all": lambda store, a, _: _rows(store.all()),
    "reverse_all": lambda store, a, _: _rows(store.reverse_all()),
    "prefix": lambda store, a, _: _rows(store.prefix_scan(a[0], sf.serdes.string())),
    "count": lambda store, a, _: str(store.approximate_num_entries()),
}
_WINDOW: dict[str, Command] = {
    "put": lambda store, a, to_put: _ok(store.put(a[0], to_put(a[1]), int(a[2]))),
    "get": lambda store, a, _: _value(store.fetch(a[0], int(a[1]))),
    "fetch": lambda store, a, _: _rows(store.fetch_between(a[0], *_times(a[1:]))),
    "backward_fetch": lambda store, a, _: _rows(store.backward_fetch_between(a[0], *_times(a[1:]))),
    "fetch_range": lambda store, a, _: _rows(store.fetch_range(a[0], a[1], *_times(a[2:]))),
    "backward_fetch_range": lambda store, a, _: _rows(store.backward_fetch_range(a[0], a[1], *_times(a[2:]))),
    "fetch_all": lambda store, a, _: _rows(store.fetch_all(*_times(a))),
    "backward_fetch_all": lambda store, a, _: _rows(store.backward_fetch_all(*_times(a))),
    "all": lambda store, a, _: _rows(store.all()),
    "backward_all": lambda store, a, _: _rows(store.backward_all()),
}
_SESSION: dict[str, Command] = {
    "put": lambda store, a, _: _ok(store.put(_session(a[0], a[2], a[3]), a[1])),
    "remove": lambda store, a, _: _ok(store.remove(_session(*a))),
    "get": lambda store, a, _: _value(store.fetch_session(a[0], *_times(a[1:]))),
    "fetch": lambda store, a, _: _rows(store.fetch(a[0])),
    "backward_fetch": lambda store, a, _: _rows(store.backward_fetch(a[0])),
    "fetch_range": lambda store, a, _: _rows(store.fetch_range(a[0], a[1])),
    "backward_fetch_range": lambda store, a, _: _rows(store.backward_fetch_range(a[0], a[1])),
    "find": lambda store, a, _: _rows(store.find_sessions(a[0], *_times(a[1:]))),
    "backward_find": lambda store, a, _: _rows(store.backward_find_sessions(a[0], *_times(a[1:]))),
    "find_range": lambda store, a, _: _rows(store.find_sessions_range(a[0], a[1], *_times(a[2:]))),
}
_VERSIONED: dict[str, Command] = {
    "put": lambda store, a, _: str(store.put(a[0], a[1], int(a[2]))),
    "delete": lambda store, a, _: _value(store.delete(a[0], int(a[1]))),
    "get": lambda store, a, _: _value(store.get(a[0], *_times(a[1:]))),
}
_COMMANDS = {"versioned": _VERSIONED, "kv": _KEY_VALUE, "lru": _KEY_VALUE, "window": _WINDOW, "session": _SESSION}
