"""Random joins of two streams and by foreign keys, suppression, streams aggregated together, tables with history."""

from __future__ import annotations

from tests.conformance.recorder.generator import aggregations, functions
from tests.conformance.recorder.generator.draws import Draw, Json
from tests.conformance.recorder.generator.graph import Graph


def join_window(draw: Draw) -> Json:
    # Java cannot show the windows of a join that has none.
    window: Json = {"kind": "join", "diff": draw.one(1, 3, 5, 10, 20)}
    window |= draw.maybe(25, before=draw.one(1, 2, 8)) | draw.maybe(25, after=draw.one(0, 2, 8))
    return window | draw.maybe(60, grace=draw.one(0, 1, 5, 20, 1000))


def streams_joined(graph: Graph) -> bool:
    node = graph.pick("stream")
    other = graph.partner(node, "stream") if node else None
    if node is None or other is None or functions.is_windowed(node.key):
        return False
    draw = graph.draw
    joined = draw.maybe(30, name=draw.fresh("j")) | draw.maybe(30, store_name=draw.fresh("js"))
    joined |= draw.maybe(25, type=draw.one("in_memory", "rocksdb")) | draw.maybe(10, logging=False)
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
    graph.node("stream", node.key, "string", draw.one("join", "left_join", "outer_join"), **fields)
    graph.fan_outs += 1
    return True


def foreign_joined(graph: Graph) -> bool:
    node = graph.pick("table")
    others = [n for n in graph.nodes if n.kind == "table" and n.key == "string"]
    if node is None or not others or functions.is_windowed(node.key):
        return False
    draw = graph.draw
    other = draw.of(others)
    text = functions.as_text(node.value, "$v")
    fk: Json = draw.of([text, ["first_char", text], ["if", ["is_even", ["parse_long", text]], None, "a"], "b"])
    if draw.chance(15):
        fk = functions.as_text(node.key, "$k")
    fields = {"on": node.id, "with": other.id, "fk": fk, "joiner": functions.joiner(draw, may_use_key=False)}
    fields |= draw.maybe(40, table_joined={"name": draw.fresh("fk")})
    store = graph.materialized(node.key, "string", 30)
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
        buffer: Json = draw.of([{"max_records": draw.between(0, 4)}, {"max_bytes": draw.one(60, 120, 300)}])
        if is_final or draw.chance(15):
            buffer |= {"when_full": "shut_down"}
        spec["buffer"] = buffer | draw.maybe(15, logging=False)
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
        graph.add("group_by_key", on=node.id, id=group, grouped={"name": draw.fresh("gr"), "value": node.value})
        groups.append((group, node.value))
    for number, (group, value) in enumerate(groups):
        fn = functions.aggregator(draw, value, "string")
        graph.add("cogroup", **({"on": group} if number == 0 else {"with": group}), fn=fn)
    kind = draw.weighted({"whole": 4, "tumbling": 2, "hopping": 1, "sliding": 2, "session": 3})
    key: Json = "string"
    fields: dict[str, Json] = {"init": ""}
    if kind != "whole":
        window, key, _ = aggregations.window(graph, kind, "string")
        graph.add("windowed_by", window=window)
    if kind == "session":
        fields["merger"] = functions.merger("string")
    store = graph.materialized("string", "string", 50)
    table = graph.node("table", key, "string", "aggregate", **fields, **store, **draw.named())
    if kind != "whole":
        # A windowed table that was made of several streams cannot be read by other operators in Java.
        graph.nodes.remove(table)
        graph.node("stream", key, "string", "to_stream", on=table.id)
    return True


def versioned_table(graph: Graph) -> bool:
    draw = graph.draw
    topic = draw.fresh("t")
    supplier = {"name": draw.fresh("v"), "kind": "versioned", "history": draw.one(0, 5, 20, 100, 100_000)}
    graph.node("table", "string", "string", "table", topic=topic, materialized={"supplier": supplier})
    graph.sources[topic] = {"key": "string", "value": "string"}
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
        if op["op"] == "table" and op.get("materialized", {}).get("supplier", {}).get("kind") == "versioned"
    }
    if node is None or node.key != "string" or not histories:
        return False
    draw = graph.draw
    table = draw.of(sorted(histories))
    joined: Json = {"name": draw.fresh("j"), "key": "string", "left": node.value, "right": "string"}
    joined |= {"grace": min(histories[table], draw.one(0, 3, 10, 50))}
    # A null key fails a left join with grace in Java.
    guarded = graph.node("stream", "string", node.value, "filter", on=node.id, pred=["not", ["is_null", "$k"]])
    fields = {"on": guarded.id, "with": table, "joiner": functions.joiner(draw, may_use_key=True), "joined": joined}
    graph.node("stream", "string", "string", draw.one("join", "left_join"), **fields)
    return True
