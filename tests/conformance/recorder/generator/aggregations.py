"""Random groupings of streams and tables, with and without windows, and what is computed of the groups."""

from __future__ import annotations

from tests.conformance.recorder.generator import functions
from tests.conformance.recorder.generator.draws import Json
from tests.conformance.recorder.generator.graph import Graph, Node


def aggregated(graph: Graph) -> bool:
    """A stream, grouped and aggregated."""
    if graph.groups and graph.draw.chance(15):
        group, grouped = graph.draw.of(graph.groups)
        _aggregate(graph, grouped, grouped.key, on=group)
        return True
    node = graph.pick("stream")
    if node is None:
        return False
    key = _grouped(graph, node)
    if key is None:
        return False
    _aggregate(graph, node, key)
    return True


def table_aggregated(graph: Graph) -> bool:
    """A table, regrouped by its values and aggregated with adder and subtractor."""
    node = graph.pick("table")
    if node is None:
        return False
    draw = graph.draw
    fn = ["pair", functions.key(draw, node.key, node.value, "string"), "$v"]
    graph.add("group_by", on=node.id, fn=fn, **_group_options(graph, "string", node.value))
    op = draw.one("count", "reduce", "aggregate")
    if op == "count":
        graph.node("table", "string", "long", op, **graph.kept("string", "long", 50), **draw.named())
    elif op == "reduce":
        undo = ["sub", "$agg", "$v"] if node.value != "string" else ["tail", ["concat", "$agg", "-", "$v"], 12]
        if node.value in functions.NUMBERS:
            undo = functions.converted(node.value, undo)
        fields = {"adder": functions.reducer(draw, node.value), "subtractor": undo}
        graph.node("table", "string", node.value, op, **fields, **graph.kept("string", node.value, 50), **draw.named())
    else:
        text = functions.as_text(node.value, "$v")
        fields = {
            "init": "",
            "adder": functions.aggregator(draw, node.value, "string"),
            "subtractor": ["tail", ["concat", "$agg", "-", text], 12],
        }
        graph.node("table", "string", "string", op, **fields, **graph.kept("string", "string", 50), **draw.named())
    return True


def windowed(graph: Graph) -> bool:
    """A stream, grouped, windowed and aggregated."""
    node = graph.pick("stream")
    if node is None:
        return False
    if graph.groups and graph.draw.chance(15):
        group, node = graph.draw.of(graph.groups)
        key: Json = node.key
        on: dict[str, Json] = {"on": group}
    else:
        key, on = _grouped(graph, node), {}
    if key is None or functions.is_windowed(key):
        return False
    draw = graph.draw
    kind = draw.weighted({"tumbling": 4, "hopping": 3, "sliding": 3, "session": 4, "unlimited": 1})
    chosen, key_kind, span = window(graph, kind, key)
    graph.add("windowed_by", window=chosen, **on)
    emits_on_close = False
    if kind != "unlimited" and draw.chance(35):
        strategy = draw.weighted({"on_window_close": 4, "on_window_update": 1})
        graph.add("emit_strategy", strategy=strategy)
        emits_on_close = strategy == "on_window_close"
    _aggregate_windows(graph, node, key, key_kind, kind, span, emits_on_close=emits_on_close)
    return True


def closed_in_supplied_store(graph: Graph) -> bool:
    """A windowed aggregation in a store that the user brings, emitted on close."""
    node = graph.pick("stream")
    key = None if node is None else _grouped(graph, node)
    if node is None or key is None or functions.is_windowed(key):
        return False
    draw = graph.draw
    shape = draw.weighted({"tumbling": 3, "hopping": 3, "sliding": 3, "session": 3})
    chosen, key_kind, span = window(graph, shape, key)
    op = draw.one("count", "reduce", "aggregate")
    kind, fields = _aggregation(graph, op, node.value)
    if op == "aggregate" and shape == "session":
        fields["merger"] = functions.merger(kind)
    brought = supplier(graph, key_kind, 3 * span + 200)
    if shape == "session":
        brought["memory"] = True  # on disk Java cannot find the sessions that have closed
    graph.add("windowed_by", window=chosen)
    graph.add("emit_strategy", strategy="on_window_close")
    graph.node("table", key_kind, kind, op, **fields, **graph.supplied(key, kind, brought), **draw.named())
    return True


def _grouped(graph: Graph, node: Node) -> Json:
    """Groups a stream; returns the type of the new key, or None if it cannot be grouped."""
    draw = graph.draw
    group = draw.fresh("kg")
    if draw.chance(50) and (not functions.is_windowed(node.key) or draw.chance(30)):
        graph.add("group_by_key", on=node.id, id=group, **_group_options(graph, node.key, node.value))
        graph.groups.append((group, node))
        return node.key
    key = draw.weighted({"string": 9, "long": 1})
    fn = functions.key(draw, node.key, node.value, key)
    graph.add("group_by", on=node.id, id=group, fn=fn, **_group_options(graph, key, node.value))
    graph.groups.append((group, Node("stream", node.id, key, node.value)))
    return key


def _group_options(graph: Graph, key: Json, value: Json) -> dict[str, Json]:
    spec = graph.serdes(key, value) | graph.draw.maybe(30, name=graph.draw.fresh("gr"))
    return {"grouped": spec} if spec else {}


def _aggregate(graph: Graph, node: Node, key: Json, **on: Json) -> None:
    draw = graph.draw
    op = draw.one("count", "reduce", "aggregate")
    kind, fields = _aggregation(graph, op, node.value)
    graph.node("table", key, kind, op, **on, **fields, **graph.kept(key, kind, 50), **draw.named())


def _aggregation(graph: Graph, op: str, value: Json) -> tuple[Json, dict[str, Json]]:
    """The type of the result, and the functions."""
    draw = graph.draw
    if op == "count":
        return "long", {}
    if op == "reduce":
        return value, {"fn": functions.reducer(draw, value)}
    kind = draw.weighted(functions.VALUE_TYPES)
    return kind, {"init": functions.initial(kind), "fn": functions.aggregator(draw, value, kind)}


def window(graph: Graph, kind: str, key: Json) -> tuple[Json, Json, int]:
    """The window, the type of the windowed key, and how long a store has to keep a window at least."""
    draw = graph.draw
    grace = draw.maybe(70, grace=draw.one(0, 1, 5, 20, 100, 100_000))
    added = grace.get("grace", 0)
    if kind in ("tumbling", "hopping"):
        size = draw.one(1, 5, 10, 10, 20, 30_000)
        parts = (size // 4, size // 3, size // 2)
        advance = {"advance": max(1, draw.of(parts))} if kind == "hopping" else {}
        return {"kind": "time", "size": size, **advance, **grace}, {"time_windowed": key, "size": size}, size + added
    if kind == "sliding":
        diff = draw.one(3, 10, 20)
        return {"kind": "sliding", "diff": diff, **grace}, {"time_windowed": key, "size": diff}, 2 * diff + added
    if kind == "session":
        gap = draw.one(0, 1, 5, 10, 30)
        return {"kind": "session", "gap": gap, **grace}, {"session_windowed": key}, gap + added
    return {"kind": "unlimited", **draw.maybe(40, start=10)}, {"time_windowed": key, "size": 10}, 0


def _aggregate_windows(
    graph: Graph, node: Node, key: Json, key_kind: Json, window: str, span: int, *, emits_on_close: bool
) -> None:
    draw = graph.draw
    op = draw.one("count", "reduce", "aggregate")
    kind, fields = _aggregation(graph, op, node.value)
    if op == "aggregate" and window == "session":
        fields["merger"] = functions.merger(kind)
    retention = draw.maybe(35, retention=span + draw.one(0, 1, 10, 60_000, 150_000)) if span else {}
    store = graph.materialized(key, kind, 60, **retention)
    if emits_on_close:
        # In memory and with the least retention Java has forgotten a window by the time it closes.
        store = {"materialized": store.get("materialized", graph.serdes(key, kind)) | {"retention": 3 * span + 200}}
    elif draw.chance(15) and window in ("tumbling", "hopping", "session"):
        store = graph.supplied(key, kind, supplier(graph, key_kind, span))
    table = graph.node("table", key_kind, kind, op, **fields, **store, **draw.named())
    if window == "unlimited":
        # Its end does not fit into the bytes of a key, so nothing but the start may be looked at later.
        graph.nodes.remove(table)
        fn = ["window_key", "$k"]
        graph.node("stream", key, kind, "to_stream", on=table.id, fn=fn)


def supplier(graph: Graph, key_kind: Json, span: int) -> Json:
    draw = graph.draw
    common = {"name": draw.fresh("st"), "retention": span + draw.one(0, 20, 60_000), **draw.maybe(40, memory=True)}
    if "session_windowed" in key_kind:
        return {"kind": "session", **common}
    return {"kind": draw.one("window", "timestamped_window"), "size": key_kind["size"], **common}
