"""Random joins of two streams and by foreign keys, suppression, streams aggregated together, tables with history."""

from __future__ import annotations

from tests.conformance.recorder.generator import aggregations, functions
from tests.conformance.recorder.generator.draws import Draw, Json
from tests.conformance.recorder.generator.graph import Graph, Node

MOST_FAN_OUTS = 3
"""Each join of streams squares what came before it."""


def join_window(draw: Draw) -> Json:
    # Java cannot show the windows of a join that has none.
    window: Json = {"kind": "join", "diff": draw.one(1, 3, 5, 10, 20)}
    window |= draw.maybe(25, before=draw.one(1, 2, 8)) | draw.maybe(25, after=draw.one(0, 2, 8))
    if draw.chance(10) and not {"before", "after"} & window.keys():
        window |= {draw.one("before", "after"): -1 if window["diff"] > 1 else 0}
    return window | draw.maybe(60, grace=draw.one(0, 1, 5, 20, 1000))


def streams_joined(graph: Graph) -> bool:
    node = graph.pick("stream")
    other = graph.partner(node, "stream") if node else None
    if node is None or other is None or (functions.is_windowed(node.key) and not graph.draw.chance(30)):
        return False
    if graph.fan_outs >= MOST_FAN_OUTS:
        return False
    _join_streams(graph, node, other, graph.draw.one("join", "left_join", "outer_join"))
    return True


def joined_with_itself(graph: Graph) -> bool:
    """One stream on both sides; optimized, an inner join keeps it once."""
    node = graph.pick("stream")
    if node is None or functions.is_windowed(node.key) or graph.fan_outs >= MOST_FAN_OUTS:
        return False
    _join_streams(graph, node, node, graph.draw.weighted({"join": 6, "left_join": 1, "outer_join": 1}))
    return True


def _join_streams(graph: Graph, node: Node, other: Node, op: str) -> None:
    draw = graph.draw
    joined = draw.maybe(30, name=draw.fresh("j")) | draw.maybe(30, store_name=draw.fresh("js"))
    joined |= draw.maybe(25, type=draw.one("in_memory", "rocksdb"))
    joined |= draw.maybe(15, logging=draw.of([False, {"retention.ms": "5"}, {"cleanup.policy": "compact,delete"}]))
    for name, kind in (("key", node.key), ("left", node.value), ("right", other.value)):
        if kind != "string" or draw.chance(25):
            joined[name] = kind
    window = join_window(draw)
    if draw.chance(12):
        size = window.get("before", window["diff"]) + window.get("after", window["diff"])
        for side in ("this_store", "other_store") if draw.chance(60) else ("this_store",):
            joined[side] = {
                "name": draw.fresh("jw"),
                "kind": "window",
                "retention": size + window.get("grace", 0),
                "size": size,
                "duplicates": True,
                **draw.maybe(50, memory=True),
            }
    fields = {"on": node.id, "with": other.id, "joiner": functions.joiner(draw, may_use_key=True), "window": window}
    fields |= {"stream_joined": joined} if joined else {}
    graph.node("stream", node.key, "string", op, **fields)
    graph.fan_outs += 1


def foreign_joined(graph: Graph) -> bool:
    node = graph.pick("table")
    others = [n for n in graph.nodes if n.kind == "table" and n.key in ("string", "long", "int")]
    if node is None or not others or functions.is_windowed(node.key):
        return False
    draw = graph.draw
    other = draw.of(others)
    text = functions.as_text(node.value, "$v")
    fk: Json = draw.of([text, ["first_char", text], ["if", ["is_even", ["parse_long", text]], None, "a"], "b"])
    if draw.chance(15):
        fk = functions.as_text(node.key, "$k")
    if other.key != "string":
        fk = ["if", ["contains", text, "n"], None, functions.converted(other.key, ["mod", ["len", text], 3])]
    fields = {"on": node.id, "with": other.id, "fk": fk, "joiner": functions.joiner(draw, may_use_key=False)}
    fields |= draw.maybe(40, table_joined={"name": draw.fresh("fk")})
    store = graph.kept(node.key, "string", 30)
    graph.node("table", node.key, "string", draw.one("join", "left_join"), **fields, **store)
    return True


def suppressed(graph: Graph) -> bool:
    node = graph.pick("table")
    if node is None:
        return False
    draw = graph.draw
    is_final = functions.is_windowed(node.key) and draw.chance(60)
    spec: Json = {"until": "window_closes"} if is_final else {"until": "time_limit", "ms": draw.one(0, 3, 10, 40)}
    spec |= draw.maybe(40, name=draw.fresh("sup"))
    if draw.chance(40):
        records, size = {"max_records": draw.between(0, 4)}, {"max_bytes": draw.one(60, 120, 300)}
        buffer: Json = draw.of([records, size, records | size, {}])
        if buffer and (is_final or draw.chance(15)):
            buffer |= {"when_full": "shut_down"}
        spec["buffer"] = buffer | draw.maybe(20, logging=draw.of([False, {"segment.ms": "5"}]))
    graph.node("table", node.key, node.value, "suppress", on=node.id, suppressed=spec)
    return True


def cogrouped(graph: Graph) -> bool:
    streams = [n for n in graph.nodes if n.kind == "stream" and n.key == "string"]
    if not streams:
        return False
    draw = graph.draw
    chosen = [draw.of(streams) for _ in range(draw.between(1, 3))]
    if len({node.id for node in chosen}) < len(chosen):
        return False
    groups = []
    for node in chosen:
        group = draw.fresh("g")
        # Without a name two repartitioned inputs clash in Java.
        grouped = {"name": draw.fresh("gr"), "value": node.value}
        if draw.chance(35):
            fn = functions.key(draw, node.key, node.value, "string")
            graph.add("group_by", on=node.id, id=group, fn=fn, grouped=grouped)
        else:
            graph.add("group_by_key", on=node.id, id=group, grouped=grouped)
        groups.append((group, node.value))
    result = draw.weighted(functions.VALUE_TYPES)
    for number, (group, value) in enumerate(groups):
        fn = functions.aggregator(draw, value, result)
        graph.add("cogroup", **({"on": group} if number == 0 else {"with": group}), fn=fn)
    kind = draw.weighted({"whole": 4, "tumbling": 2, "hopping": 1, "sliding": 2, "session": 3})
    key: Json = "string"
    fields: dict[str, Json] = {"init": functions.initial(result)}
    span = 0
    if kind != "whole":
        window, key, span = aggregations.window(graph, kind, "string")
        graph.add("windowed_by", window=window)
    if kind == "session":
        fields["merger"] = functions.merger(result)
    retention = draw.maybe(35, retention=span + draw.one(0, 1, 10, 60_000)) if span else {}
    store = graph.materialized("string", result, 50, **retention)
    if draw.chance(15) and kind != "sliding":
        supplier = aggregations.supplier(graph, key, span) if span else {"kind": "kv", "name": draw.fresh("st")}
        store = graph.supplied("string", result, supplier)
    table = graph.node("table", key, result, "aggregate", **fields, **store, **draw.named())
    if kind != "whole":
        # A windowed table that was made of several streams cannot be read by other operators in Java.
        graph.nodes.remove(table)
        graph.node("stream", key, result, "to_stream", on=table.id)
    return True


def versioned_table(graph: Graph) -> bool:
    draw = graph.draw
    topic = draw.fresh("t")
    value = draw.weighted({"string": 8, "long": 1})
    store = {"supplier": _versions(draw), **graph.serdes("string", value), **draw.maybe(10, logging=False)}
    graph.node("table", "string", value, "table", topic=topic, materialized=store)
    graph.sources[topic] = {"key": "string", "value": value}
    return True


def _versions(draw: Draw) -> Json:
    spec = {"name": draw.fresh("v"), "kind": "versioned", "history": draw.one(0, 5, 20, 100, 100_000)}
    return spec | draw.maybe(25, segment=draw.one(1, 3, 10, 1000))


def derived_with_versions(graph: Graph) -> bool:
    """A table made of another one, or of a stream, with a history of its own."""
    node = graph.pick("table", "stream")
    if node is None or node.key != "string":
        return False
    draw = graph.draw
    store = {"supplier": _versions(draw), "key": "string"}
    if node.kind == "stream":
        store["value"] = node.value
        graph.node("table", "string", node.value, "to_table", on=node.id, materialized=store, **draw.named())
    elif draw.chance(50):
        fields = {"pred": functions.predicate(draw, node.value), "materialized": store | {"value": node.value}}
        graph.node("table", "string", node.value, draw.one("filter", "filter_not"), on=node.id, **fields)
    else:
        fields = {"fn": functions.value(draw, node.value, "string"), "materialized": store | {"value": "string"}}
        graph.node("table", "string", "string", "map_values", on=node.id, **fields, **draw.named())
    return True


def versioned_count(graph: Graph) -> bool:
    node = graph.pick("stream")
    if node is None or node.key != "string":
        return False
    draw = graph.draw
    graph.add("group_by_key", on=node.id, grouped={"name": draw.fresh("gr"), "value": node.value})
    supplier = {"name": draw.fresh("v"), "kind": "versioned", "history": draw.one(5, 20, 100)}
    graph.node("table", "string", "long", "count", materialized={"supplier": supplier, "value": "long"})
    return True


def joined_with_grace(graph: Graph) -> bool:
    """A stream with the history of a table."""
    node = graph.pick("stream")
    histories = {
        op["id"]: op["materialized"]["supplier"]["history"]
        for op in graph.ops
        if op.get("materialized", {}).get("supplier", {}).get("kind") == "versioned"
    }
    values = {other.id: other.value for other in graph.nodes}
    if node is None or node.key != "string" or not histories:
        return False
    draw = graph.draw
    table = draw.of(sorted(histories))
    joined: Json = {"name": draw.fresh("j"), "key": "string", "left": node.value, "right": values[table]}
    joined |= {"grace": min(histories[table], draw.one(0, 3, 10, 50))}
    # A null key fails a left join with grace in Java.
    guarded = graph.node("stream", "string", node.value, "filter", on=node.id, pred=["not", ["is_null", "$k"]])
    fields = {"on": guarded.id, "with": table, "joiner": functions.joiner(draw, may_use_key=True), "joined": joined}
    graph.node("stream", "string", "string", draw.one("join", "left_join"), **fields)
    return True
