"""Random commands for stores of every kind, run by the processor `store_script`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.conformance.recorder.generator.draws import Draw, Json

KEYS = ("a", "b", "ab", "abc", "B", "b1", "c")


@dataclass(frozen=True)
class Limits:
    """What Java does not do well: a cached window store walks through every segment since `earliest`, and scans of all its keys
    show rows of several segments twice; a cached session store fails to search backwards while it is empty.
    """

    earliest: int
    may_be_open: bool
    finds_backwards: bool


@dataclass(frozen=True)
class Moment:
    now: int
    pace: int
    limits: Limits


def scenario(draw: Draw) -> Json:
    """One store of the newest values."""
    return _script(
        draw,
        draw.weighted({"kv": 2, "timestamped_kv": 2, "lru": 2, "window": 3, "timestamped_window": 3, "session": 4}),
    )


def history(draw: Draw) -> Json:
    """One store with versions."""
    return _script(draw, "versioned")


def _script(draw: Draw, kind: str) -> Json:
    """One store, one processor, and a script of commands with times that reach over several segments of a store."""
    pace = draw.weighted({5: 3, 9_000: 2, 25_000: 3})
    store = _store(draw, kind, pace)
    commands = _COMMANDS[kind.removeprefix("timestamped_")]
    now = draw.weighted({0: 3, 120_000: 1, 1_700_000_000_000: 1})
    is_simple = not store.get("caching") or (pace < 100 and now == 0)
    limits = Limits(max(0, now - 3 * pace), may_be_open=is_simple, finds_backwards=not store.get("caching"))
    steps = []
    for number in range(draw.between(20, 45)):
        now += draw.weighted({0: 4, draw.between(1, pace): 8, 4 * pace: 1})
        steps.append({"pipe": ["in", "k", commands(draw, number, Moment(now, pace, limits)), now]})
    return {
        "api": "papi",
        "topics": {"in": {"key": "string", "value": "string"}, "out": {"key": "string", "value": "string"}},
        "topology": [
            {"op": "add_source", "name": "src", "topics": ["in"]},
            {
                "op": "add_processor",
                "name": "p",
                "processor": {"name": "store_script", "store": "st"},
                "parents": ["src"],
            },
            {"op": "add_state_store", "store": store, "processors": ["p"]},
            {"op": "add_sink", "name": "snk", "topic": "out", "parents": ["p"]},
        ],
        "steps": steps,
    }


def _store(draw: Draw, kind: str, pace: int) -> Json:
    store: dict[str, Json] = {"name": "st", "kind": kind, "key": "string", "value": "string"}
    if kind == "versioned":
        store |= {"history": pace * draw.one(0, 1, 4, 10)} | draw.maybe(15, logging=False)
        return store | draw.maybe(30, segment=max(1, pace * draw.one(1, 3)))
    store |= draw.maybe(60, caching=draw.chance(60)) | draw.maybe(15, logging=False)
    if kind == "lru":
        return store | {"capacity": draw.between(1, 4)}
    store |= draw.maybe(60, memory=draw.chance(70))
    if kind in ("window", "timestamped_window"):
        size = draw.one(1, 10, pace)
        store |= {"size": size, "retention": max(size, pace * draw.one(1, 4, 10)), **draw.maybe(15, duplicates=True)}
    if kind == "session":
        store |= {"retention": pace * draw.one(1, 4, 10)}
    return store


def _key(draw: Draw) -> str:
    return draw.of(KEYS)


def _bound(draw: Draw, limits: Limits) -> str:
    return "-" if limits.may_be_open and draw.chance(20) else _key(draw)


def _bounds(draw: Draw, limits: Limits) -> str:
    low, high = _bound(draw, limits), _bound(draw, limits)
    if "-" not in (low, high) and low > high and draw.chance(90):
        low, high = high, low
    return f"{low} {high}"


def _time(draw: Draw, at: Moment) -> int:
    return max(0, at.now - draw.between(0, at.pace * draw.one(0, 1, 3, 12)))


def _times(draw: Draw, at: Moment) -> str:
    low, high = sorted((_time(draw, at), _time(draw, at)))
    return f"{at.limits.earliest if draw.chance(25) else low} {high + draw.one(0, 0, at.pace)}"


def _value(draw: Draw, number: int) -> str:
    return "-" if draw.chance(12) else f"v{number}"


def _key_value(draw: Draw, number: int, at: Moment) -> str:
    command = draw.weighted(
        {
            "put": 8,
            "put_if_absent": 2,
            "delete": 2,
            "get": 3,
            "range": 3,
            "reverse_range": 2,
            "all": 2,
            "reverse_all": 1,
            "prefix": 2,
            "count": 1,
        }
    )
    if command == "put_if_absent":
        return f"{command} {_key(draw)} v{number}"
    if command == "put":
        return f"{command} {_key(draw)} {_value(draw, number)}"
    if command in ("range", "reverse_range"):
        return f"{command} {_bounds(draw, at.limits)}"
    return command if command in ("all", "reverse_all", "count") else f"{command} {_key(draw)}"


def _least_recently_used(draw: Draw, number: int, at: Moment) -> str:
    """An LRU store knows no order of its keys, so there is nothing to range over."""
    command = draw.weighted({"put": 8, "put_if_absent": 2, "delete": 2, "get": 5, "count": 1})
    if command in ("put", "put_if_absent"):
        return f"{command} {_key(draw)} {_value(draw, number)}"
    return command if command == "count" else f"{command} {_key(draw)}"


def _window(draw: Draw, number: int, at: Moment) -> str:
    command = draw.weighted(
        {
            "put": 12,
            "get": 2,
            "fetch": 3,
            "backward_fetch": 2,
            "fetch_range": 3,
            "backward_fetch_range": 2,
            "fetch_all": 3,
            "backward_fetch_all": 2,
            "all": 2,
            "backward_all": 2,
        }
    )
    if command == "put":
        return f"put {_key(draw)} {_value(draw, number)} {_time(draw, at)}"
    if command == "get":
        return f"get {_key(draw)} {_time(draw, at)}"
    if command.endswith("_range"):
        return f"{command} {_bounds(draw, at.limits)} {_times(draw, at)}"
    if command.endswith("fetch_all"):
        return f"{command} {_times(draw, at)}"
    return command if command.endswith("all") else f"{command} {_key(draw)} {_times(draw, at)}"


def _session(draw: Draw, number: int, at: Moment) -> str:
    command = draw.weighted(
        {
            "put": 12,
            "remove": 2,
            "get": 2,
            "fetch": 3,
            "backward_fetch": 2,
            "fetch_range": 3,
            "backward_fetch_range": 2,
            "find": 4,
            "backward_find": 2,
            "find_range": 3,
        }
    )
    if command in ("put", "remove", "get"):
        end = _time(draw, at)
        start = max(0, end - draw.one(0, 1, at.pace))
        value = f" {_value(draw, number)}" if command == "put" else ""
        return f"{command} {_key(draw)}{value} {start} {end}"
    if command == "find_range":
        return f"{command} {_bounds(draw, at.limits)} {_times(draw, at)}"
    if command.endswith("_range"):
        return f"{command} {_bounds(draw, at.limits)}"
    if command == "backward_find" and not at.limits.finds_backwards:
        command = "find"
    return f"{command} {_key(draw)} {_times(draw, at)}" if command.endswith("find") else f"{command} {_key(draw)}"


def _versioned(draw: Draw, number: int, at: Moment) -> str:
    command = draw.weighted({"put": 10, "delete": 3, "get": 3, "as_of": 6})
    if command == "put":
        return f"put {_key(draw)} {_value(draw, number)} {_time(draw, at)}"
    if command == "delete":
        return f"delete {_key(draw)} {_time(draw, at)}"
    return (
        f"get {_key(draw)}" if command == "get" else f"get {_key(draw)} {_time(draw, at) + draw.one(0, 0, 1, at.pace)}"
    )


_COMMANDS: dict[str, Callable[[Draw, int, Moment], str]] = {
    "kv": _key_value,
    "lru": _least_recently_used,
    "window": _window,
    "session": _session,
    "versioned": _versioned,
}
