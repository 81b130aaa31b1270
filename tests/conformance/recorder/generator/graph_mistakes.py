"""Graphs of the Processor API with one or two things wrong: names given twice, unknown parents, stores that nobody has added.

Whether Java finds it, and where, is what such a scenario is about; some of it is allowed.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.conformance.recorder.generator.draws import Draw, Json

Mistake = Callable[[Draw, list[Json]], None]
_TEXTS = {"key": "string", "value": "string"}


def mistaken(draw: Draw, scenario: Json) -> Json:
    """The script stays sometimes: a store that is not connected is missed only when the processor asks for it."""
    ops = scenario["topology"]
    for _ in range(draw.between(1, 2)):
        draw.of(_MISTAKES)(draw, ops)
    # Java hands records over twice to a child that names its parent twice.
    is_doubled = any(len(set(op["parents"])) < len(op["parents"]) for op in _with(ops, "parents"))
    if draw.chance(30) or is_doubled:
        scenario.pop("steps")
    return scenario


def _with(ops: list[Json], field: str) -> list[Json]:
    return [op for op in ops if field in op]


def _names(ops: list[Json]) -> list[str]:
    return [op["name"] for op in ops if "name" in op] + ["nope"]


def _twice_named(draw: Draw, ops: list[Json]) -> None:
    draw.of(_with(ops, "name"))["name"] = draw.one(draw.of(_names(ops)), draw.of(_names(ops)), "", "a b")


def _parents(draw: Draw, ops: list[Json]) -> None:
    children = _with(ops, "parents")
    if children:
        name = draw.of(_names(ops))
        draw.of(children)["parents"] = draw.one([], [name], [name], [name, draw.of(_names(ops))], [name, name])


def _connection(draw: Draw, ops: list[Json]) -> None:
    stores = [op["store"]["name"] for op in _with(ops, "store")] + ["nope"]
    ops.append({"op": "connect", "processor": draw.of(_names(ops)), "stores": draw.one([], [draw.of(stores)])})


def _forgotten(draw: Draw, ops: list[Json]) -> None:
    lost = [op for op in ops if op["op"] in ("connect", "add_state_store", "add_source")]
    if len(lost) > 1:
        ops.remove(draw.of(lost))


def _store(draw: Draw, ops: list[Json]) -> None:
    there = [op["store"] for op in _with(ops, "store")]
    spec = {"name": "late", "kind": draw.one("kv", "timestamped_kv"), **_TEXTS}
    if there and draw.chance(60):
        spec["name"] = draw.of(there)["name"]
    ops.append({"op": "add_state_store", "store": spec, **draw.maybe(60, processors=[draw.of(_names(ops))])})


def _source(draw: Draw, ops: list[Json]) -> None:
    topics = [topic for op in _with(ops, "topics") for topic in op["topics"]] + [
        op["topic"] for op in _with(ops, "topic")
    ]
    read = draw.one([draw.of(topics)], [draw.of(topics)], [draw.of(topics), "other"], [])
    chosen: Json = {"topics": read} if draw.chance(80) else {"pattern": draw.one("in.*", "f.*", "z.*")}
    ops.append({"op": "add_source", "name": "late-source", **chosen, **draw.maybe(20, reset="earliest")})


def _filled_store(draw: Draw, ops: list[Json]) -> None:
    topics = [topic for op in _with(ops, "topics") for topic in op["topics"]] + ["other"]
    store = {"name": draw.one("late", "st1", "fs1"), "kind": "kv", **_TEXTS, "logging": draw.chance(25)}
    fields = {"name": draw.one("late-source", draw.of(_names(ops))), "topic": draw.of(topics), **_TEXTS}
    names = {"processor_name": draw.one("late-processor", draw.of(_names(ops)), fields["name"])}
    put = {"name": "put", "store": store["name"]}
    op = draw.one("add_global_store", "add_read_only_state_store")
    ops.append({"op": op, "store": store, **fields, **names, "processor": put})


_MISTAKES: tuple[Mistake, ...] = (
    _twice_named,
    _parents,
    _parents,
    _connection,
    _forgotten,
    _store,
    _source,
    _filled_store,
)
