"""Topologies that cannot be, or just can: a random graph with one op on top whose parameters are at the edge of what is allowed."""

from __future__ import annotations

from collections.abc import Callable

from tests.conformance.recorder.generator.draws import Draw, Json

_TEXTS = {"key": "string", "value": "string"}
_JOINER = ["concat", "$l", "+", "$r"]
Mistake = Callable[[Draw], list[Json]]


def mistaken(draw: Draw, scenario: Json) -> Json:
    """No script: whether it can be built, and where it fails, is all there is to see."""
    scenario.pop("steps")
    added = draw.of(_MISTAKES)(draw)
    topics = [op["topic"] for op in added if "topic" in op] + [topic for op in added for topic in op.get("topics", ())]
    return scenario | {
        "topics": scenario["topics"] | dict.fromkeys(topics, _TEXTS),
        "topology": [*scenario["topology"], *added],
    }


def _grouped(draw: Draw) -> list[Json]:
    return [{"op": "stream", "topics": ["m1"]}, {"op": draw.one("group_by_key", "group_by_key"), "id": "grouped"}]


def _sizes(draw: Draw) -> int:
    return draw.one(-1, 0, 1, 5, 10)


def _windows(draw: Draw) -> list[Json]:
    kind = draw.one("time", "sliding", "session", "unlimited")
    spec: dict[str, Json] = {"kind": kind}
    if kind == "time":
        spec |= {"size": _sizes(draw)} | draw.maybe(60, advance=_sizes(draw))
    elif kind == "unlimited":
        spec |= draw.maybe(60, start=draw.one(-1, 0, 7))
    else:
        spec |= {"diff" if kind == "sliding" else "gap": _sizes(draw)}
    if kind != "unlimited":
        spec |= draw.maybe(50, grace=draw.one(-5, 0, 3))
    ops = [*_grouped(draw), {"op": "windowed_by", "window": spec}]
    if draw.chance(50):
        ops.append({"op": "emit_strategy", "strategy": draw.one("on_window_close", "on_window_update")})
    store = draw.maybe(60, materialized={"store": "m", **draw.maybe(80, retention=draw.one(-1, 0, 4, 9, 12, 100))})
    return [*ops, {"op": "count", **store}]


def _join_windows(draw: Draw) -> list[Json]:
    window = {"kind": "join", "diff": _sizes(draw), **draw.maybe(50, grace=draw.one(-1, 0, 5))}
    window |= draw.maybe(50, before=draw.one(-11, -5, 0, 5)) | draw.maybe(50, after=draw.one(-11, -5, 0, 5))
    fields: dict[str, Json] = {}
    if draw.chance(50):
        store: Json = {"kind": draw.one("window", "window", "kv"), "retention": draw.one(5, 10, 15, 20), "size": 10}
        fields["stream_joined"] = {"this_store": {"name": "m1", "duplicates": draw.chance(80), **store}}
        if draw.chance(70):
            name = draw.one("m1", "m2", "m2")
            fields["stream_joined"]["other_store"] = {**store, "name": name, "kind": "window", "duplicates": True}
    return [
        {"op": "stream", "topics": ["m1"], "id": "one"},
        {"op": "stream", "topics": ["m2"], "id": "two"},
        {
            "op": draw.one("join", "left_join", "outer_join"),
            "on": "one",
            "with": "two",
            "joiner": _JOINER,
            "window": window,
        }
        | fields,
    ]


def _repartitions(draw: Draw) -> list[Json]:
    def side(topic: str) -> list[Json]:
        spec = draw.maybe(80, partitions=draw.one(1, 2, 2, 3)) | draw.maybe(30, name=draw.one("m", "n", "a b"))
        return [
            {"op": "stream", "topics": [topic]},
            {"op": "repartition", "repartitioned": spec, "id": f"{topic}-repartitioned"},
        ]

    join: Json = {"op": "join", "on": "m1-repartitioned", "with": "m2-repartitioned", "joiner": _JOINER}
    return [*side("m1"), *side("m2"), join | {"window": {"kind": "join", "diff": 10}}]


def _suppressions(draw: Draw) -> list[Json]:
    until: dict[str, Json] = {"until": "window_closes"}
    if draw.chance(50):
        until = {"until": "time_limit", "ms": draw.one(0, 0, 10)}
    elif draw.chance(30):
        until["name"] = draw.one("m", "a b")
    buffer = draw.maybe(40, buffer={draw.one("max_records", "max_bytes"): draw.one(1, 5), "when_full": "shut_down"})
    table: list[Json] = [{"op": "table", "topic": "m1"}]
    if draw.chance(60):
        table = [*_grouped(draw), {"op": "windowed_by", "window": {"kind": "time", "size": 10}}, {"op": "count"}]
    return [*table, {"op": "suppress", "suppressed": until | buffer}]


def _stores(draw: Draw) -> list[Json]:
    names = draw.one(["m"], ["m", "n"], ["nope"], ["m", "nope"])
    shared: Json = {"name": "m", "kind": "kv", "key": "string", "value": "long"}
    adds = [
        {"op": "add_state_store", "store": shared | {"name": name}} for name in draw.one(["m"], ["m", "n"], ["m", "m"])
    ]
    processor: dict[str, Json] = {"name": "count", "store": "m"} | draw.maybe(30, provides=[shared])
    process = {"op": draw.one("process", "process_values"), "processor": processor, "stores": names}
    return [*adds, {"op": "stream", "topics": ["m1"]}, process | draw.maybe(20, named=draw.one("m", "a b", ""))]


def _suppliers(draw: Draw) -> list[Json]:
    kinds: list[Json] = [
        {"kind": "kv"},
        {"kind": "lru", "capacity": draw.one(0, 2)},
        {"kind": "window", "retention": draw.one(9, 10, 50), "size": draw.one(5, 10)},
        {"kind": "session", "retention": draw.one(2, 10, 50)},
        {"kind": "versioned", "history": draw.one(0, 5, 100)},
    ]
    window: Json = draw.one(
        None, {"kind": "time", "size": 10}, {"kind": "session", "gap": 5}, {"kind": "sliding", "diff": 5}
    )
    fitting = {None: (0, 1, 4), "time": (2,), "sliding": (2,), "session": (3,)}[window and window["kind"]]
    supplier = {"name": "m", **kinds[draw.of(fitting)]}
    windowed = [] if window is None else [{"op": "windowed_by", "window": window}]
    return [*_grouped(draw), *windowed, {"op": "count", "materialized": {"supplier": supplier, "key": "string"}}]


def _sources(draw: Draw) -> list[Json]:
    choices: list[Json] = [
        {"op": "stream", "topics": ["m1"]},
        {"op": "stream", "topics": ["m1", "m2"]},
        {"op": "stream", "topics": ["m1"], "consumed": {"reset": draw.one("earliest", "latest")}},
        {"op": "stream", "pattern": draw.one("m.*", "m1|m3", "[a-l].*")},
        {"op": "table", "topic": "m1"},
        {"op": "table", "topic": "m2", "materialized": {"store": draw.one("m", "a b")}},
        {"op": "global_table", "topic": draw.one("m1", "m3")},
    ]
    return [draw.of(choices) for _ in range(draw.between(2, 3))]


def _versions(draw: Draw) -> list[Json]:
    supplier = {"name": "m", "kind": "versioned", "history": draw.one(5, 100)}
    table = {"materialized": {"supplier": supplier, **_TEXTS}} if draw.chance(70) else {}
    joined = draw.maybe(80, joined={"grace": draw.one(-1, 0, 5, 10, 200)})
    return [
        {"op": "table", "topic": "m1", "id": "table", **table},
        {"op": "stream", "topics": ["m2"]},
        {"op": draw.one("join", "left_join"), "with": "table", "joiner": _JOINER, **joined},
    ]


def _tables(draw: Draw) -> list[Json]:
    """Joins, suppression and global tables of tables with and without a history."""
    history = {"supplier": {"name": draw.one("m", "n"), "kind": "versioned", "history": draw.one(0, 5, 100)}}
    other: Json = draw.one({}, {"materialized": {"store": draw.one("m", "o")}})
    ops: list[Json] = [
        {"op": "table", "topic": "m1", "id": "one", **draw.maybe(60, materialized=history)},
        {"op": draw.one("table", "table", "global_table"), "topic": draw.one("m2", "m2", "m1"), "id": "two", **other},
    ]
    if ops[1]["op"] == "global_table":
        if draw.chance(50):
            ops[1]["materialized"] = {"supplier": history["supplier"] | {"name": "g"}}
        return ops
    joined = {"joiner": _JOINER, **draw.maybe(30, named=draw.one("m", "x", "a b"))}
    if draw.chance(50):
        # A name that no topic can have Java finds bad only when it creates one; here the operator refuses it.
        joined = {"joiner": _JOINER, "fk": "$v", **draw.maybe(50, table_joined={"name": draw.one("m", "x")})}
    joined |= draw.maybe(40, materialized=draw.one({"store": "m"}, {"store": "r"}, history))
    ops.append({"op": draw.one("join", "left_join"), "on": "one", "with": "two", **joined})
    if draw.chance(50):
        until: dict[str, Json] = draw.one({"until": "window_closes"}, {"until": "time_limit", "ms": 5})
        ops.append({"op": "suppress", "suppressed": until | draw.maybe(30, name=draw.one("m", "x", "s"))})
    return ops


def _cogroups(draw: Draw) -> list[Json]:
    fields: dict[str, Json] = {"init": ""}
    window = draw.one(
        None,
        {"kind": "time", "size": _sizes(draw)},
        {"kind": "session", "gap": _sizes(draw)},
        {"kind": "sliding", "diff": _sizes(draw)},
        {"kind": "unlimited"},
    )
    ops = [*_grouped(draw), {"op": "cogroup", "fn": ["concat", "$agg", "$v"]}]
    if window is not None:
        ops.append({"op": "windowed_by", "window": window})
    if window is not None and window["kind"] == "session":
        fields["merger"] = ["concat", "$a", "$b"]
    store = draw.one(
        {"store": draw.one("m", "a b")}, {"retention": draw.one(0, 4, 100)}, {"store": "m", "retention": 4}
    )
    fields |= draw.maybe(60, materialized=store) | draw.maybe(40, named=draw.one("m", "a b"))
    return [*ops, {"op": "aggregate", **fields}]


_MISTAKES: tuple[Mistake, ...] = (
    _windows,
    _windows,
    _join_windows,
    _join_windows,
    _repartitions,
    _suppressions,
    _stores,
    _suppliers,
    _sources,
    _versions,
    _tables,
    _tables,
    _cogroups,
)
