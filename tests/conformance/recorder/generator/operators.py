"""Random steps of a DSL topology without windows: sources, stateless operators, processors, tables and joins.

Each function takes a Graph, adds ops to it, and says whether it found something to work on. Grouping and windows are in
`aggregations`.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.conformance.recorder.generator import functions
from tests.conformance.recorder.generator.draws import Json
from tests.conformance.recorder.generator.graph import Graph, Node

Operator = Callable[[Graph], bool]


# --- sources ----------------------------------------------------------------------------------------------------------


def stream(graph: Graph, value: Json = "string") -> bool:
    draw = graph.draw
    read = [node for node in graph.ops if node["op"] == "stream" and "topics" in node]
    fitting = [op["topics"] for op in read if all(graph.sources.get(t, {}).get("value") == value for t in op["topics"])]
    if fitting and draw.chance(12):
        # What is read twice has one source.
        serdes = {"consumed": {"key": "string", "value": value}} if value != "string" or draw.chance(25) else {}
        graph.node("stream", "string", value, "stream", topics=draw.of(fitting), **serdes)
        return True
    topics = [draw.fresh("in") for _ in range(draw.weighted({1: 8, 2: 1}))]
    consumed = draw.maybe(25, key="string") | draw.maybe(15, name=draw.fresh("src"))
    consumed |= {"value": value} if value != "string" or draw.chance(25) else {}
    consumed |= draw.maybe(8, reset=draw.of(["earliest", "latest", "none", 1000]))
    graph.node("stream", "string", value, "stream", topics=topics, **({"consumed": consumed} if consumed else {}))
    graph.sources |= {topic: {"key": "string", "value": value} for topic in topics}
    return True


def table(graph: Graph) -> bool:
    topic = graph.draw.fresh("t")
    fields = graph.kept("string", "string", 40)
    if graph.draw.chance(15):
        # Java takes the serdes from here then, and forgets those of the store.
        fields["consumed"] = {"name": graph.draw.fresh("src"), "key": "string", "value": "string"}
    graph.node("table", "string", "string", "table", topic=topic, **fields)
    graph.sources[topic] = {"key": "string", "value": "string"}
    return True


def global_table(graph: Graph) -> bool:
    topic = graph.draw.fresh("g")
    store = draw_named_store(graph) if graph.draw.chance(30) else {}
    if not store:
        store = graph.draw.maybe(20, consumed={"name": graph.draw.fresh("src"), "key": "string", "value": "string"})
    graph.node("global", "string", "string", "global_table", topic=topic, **store)
    graph.sources[topic] = {"key": "string", "value": "string"}
    return True


def draw_named_store(graph: Graph) -> dict[str, Json]:
    """Options with a store name: without one Java fails to build a global table."""
    spec = {"store": graph.draw.fresh("st"), **graph.serdes("string", "string")}
    return {"materialized": spec | graph.draw.maybe(40, type=graph.draw.one("in_memory", "rocksdb"))}


def pattern_stream(graph: Graph) -> bool:
    """A source of all topics that match; the script writes to two of them."""
    prefix = graph.draw.fresh("logs")
    graph.node("stream", "string", "string", "stream", pattern=f"{prefix}-.*")
    graph.sources |= {f"{prefix}-{end}": {"key": "string", "value": "string"} for end in "ab"}
    return True


# --- stateless --------------------------------------------------------------------------------------------------------


def filtered(graph: Graph) -> bool:
    node = graph.pick("stream", "table")
    if node is None:
        return False
    op = graph.draw.one("filter", "filter_not")
    store = graph.kept(node.key, node.value, 35) if node.kind == "table" and node.value == "string" else {}
    pred = functions.predicate(graph.draw, node.value)
    graph.node(node.kind, node.key, node.value, op, on=node.id, pred=pred, **graph.draw.named(), **store)
    return True


def mapped_values(graph: Graph) -> bool:
    node = graph.pick("stream", "table")
    if node is None:
        return False
    draw = graph.draw
    kind = draw.weighted(functions.VALUE_TYPES)
    uses_key = draw.chance(25) and kind == "string"
    fn = functions.value(draw, node.value, kind, key=uses_key)
    store = graph.kept(node.key, kind, 35) if node.kind == "table" else {}
    graph.node(node.kind, node.key, kind, "map_values", on=node.id, fn=fn, **draw.named(), **store)
    return True


def mapped(graph: Graph) -> bool:
    node = graph.pick("stream")
    if node is None:
        return False
    draw = graph.draw
    key, value = draw.weighted({"string": 8, "long": 1, "int": 1}), draw.weighted(functions.VALUE_TYPES)
    new_key = functions.key(draw, node.key, node.value, key)
    if draw.chance(40):
        graph.node("stream", key, node.value, "select_key", on=node.id, fn=new_key, **draw.named())
    else:
        fn = ["pair", new_key, functions.value(draw, node.value, value)]
        graph.node("stream", key, value, "map", on=node.id, fn=fn, **draw.named())
    return True


def flat_mapped(graph: Graph) -> bool:
    node = graph.pick("stream")
    if node is None or node.value != "string" or graph.fan_outs >= 2:
        return False
    graph.fan_outs += 1
    draw = graph.draw
    if draw.chance(50):
        fn: Json = draw.of([["split_words", "$v"], ["list", "$v", ["upper", "$v"]], ["list"], ["list", None, "$v"]])
        graph.node("stream", node.key, "string", "flat_map_values", on=node.id, fn=fn, **draw.named())
    else:
        first = ["pair", functions.key(draw, node.key, "string", "string"), "$v"]
        second = ["pair", functions.key(draw, node.key, "string", "string"), functions.value(draw, "string", "string")]
        graph.node("stream", "string", "string", "flat_map", on=node.id, fn=["list", first, second], **draw.named())
    return True


def peeked(graph: Graph) -> bool:
    node = graph.pick("stream")
    if node is None:
        return False
    graph.node("stream", node.key, node.value, "peek", on=node.id, tag=graph.draw.fresh("seen"), **graph.draw.named())
    return True


def merged(graph: Graph) -> bool:
    node = graph.pick("stream")
    if node is None:
        return False
    others = [n for n in graph.nodes if n.kind == "stream" and (n.key, n.value) == (node.key, node.value) and n != node]
    if not others:
        return False
    other = graph.draw.of(others)
    graph.node("stream", node.key, node.value, "merge", on=node.id, **{"with": other.id}, **graph.draw.named())
    return True


def split(graph: Graph) -> bool:
    node = graph.pick("stream")
    if node is None:
        return False
    draw = graph.draw
    name = draw.fresh("sp")
    branches = []
    suffixes = []
    for index in range(draw.between(1, 3)):
        given = draw.maybe(50, name=draw.fresh("b"))
        branches.append({"pred": functions.predicate(draw, node.value), **given})
        suffixes.append(given.get("name", str(index + 1)))
    fields: dict[str, Json] = draw.maybe(50, named=f"{name}-")
    if draw.chance(60):
        fields["default"] = draw.maybe(50, name=draw.fresh("b"))
        suffixes.append(fields["default"].get("name", "0"))
    graph.add("split", on=node.id, id=name, branches=branches, **fields)
    graph.nodes.extend(Node("stream", f"{name}.{suffix}", node.key, node.value) for suffix in suffixes)
    return True


def repartitioned(graph: Graph) -> bool:
    node = graph.pick("stream")
    if node is None or (functions.is_windowed(node.key) and not graph.draw.chance(30)):
        return False
    draw = graph.draw
    spec = graph.serdes(node.key, node.value) | draw.maybe(40, name=draw.fresh("rp"))
    spec |= draw.maybe(15, partitions=4)
    fields = {"repartitioned": spec} if spec else {}
    graph.node("stream", node.key, node.value, "repartition", on=node.id, **fields)
    return True


def through_topic(graph: Graph) -> bool:
    """A topic of the user that the same topology reads again."""
    node = graph.pick("stream")
    if node is None or functions.is_windowed(node.key):
        return False
    topic = graph.draw.fresh("mid")
    serdes = {"key": node.key, "value": node.value}
    graph.add("to", on=node.id, topic=topic, produced=serdes)
    graph.outputs[topic] = serdes
    if graph.draw.chance(60):
        graph.node("stream", node.key, node.value, "stream", topics=[topic], consumed=serdes)
    else:
        graph.node("table", node.key, node.value, "table", topic=topic, consumed=serdes)
    return True


# --- processors -------------------------------------------------------------------------------------------------------


def processed(graph: Graph) -> bool:
    node = graph.pick("stream")
    if node is None or node.key != "string" or node.value != "string":
        return False
    draw = graph.draw
    processor: Json = draw.of(
        [
            {"name": "header", "key": "x", "value": "y"},
            {"name": "with_timestamp", "plus": draw.one(1, 7, 100)},
            {"name": "commit"},
            {"name": "apply", "fn": ["list", ["pair", "$k", ["tail", ["concat", "$v", "@", "$ts"], 9]]]},
            {"name": "apply", "fn": ["list", ["pair", "$k", ["concat", "$topic", "/", "$partition", "/", "$offset"]]]},
            {"name": "apply", "fn": ["list", ["pair", "$k", ["concat", "$stream_time", "/", "$wall_clock"]]]},
            {"name": "punctuate", "type": draw.one("stream_time", "wall_clock"), "interval": draw.one(5, 10, 30)},
            {"name": "fail_on", "value": "b7"},
        ]
    )
    if processor["name"] == "fail_on" and draw.chance(50):
        graph.node("stream", "string", "string", "process_values", on=node.id, processor=processor, **draw.named())
        return True
    if processor["name"] == "punctuate":
        processor = processor | draw.maybe(30, limit=2) | draw.maybe(20, start=draw.one(3, 20))
    graph.node("stream", "string", "string", "process", on=node.id, processor=processor, **draw.named())
    return True


def rekeyed(graph: Graph) -> bool:
    """A processor that gives new keys, or new values of the same type."""
    node = graph.pick("stream")
    if node is None or node.key != "string" or node.value != "string":
        return False
    draw = graph.draw
    value = functions.value(draw, "string", "string")
    if draw.chance(50):
        processor: Json = {
            "name": "apply",
            "fn": ["list", ["pair", functions.key(draw, "string", "string", "string"), value]],
        }
        graph.node("stream", "string", "string", "process", on=node.id, processor=processor, **draw.named())
    else:
        processor = {"name": "apply", "fn": ["list", value]}
        graph.node("stream", "string", "string", "process_values", on=node.id, processor=processor, **draw.named())
    return True


def counted_in_store(graph: Graph) -> bool:
    """A processor with a store of its own, given by name or by the supplier."""
    node = graph.pick("stream")
    if node is None or node.key != "string" or node.value != "string":
        return False
    draw = graph.draw
    name = draw.one("count", "dedup")
    spec: Json = {
        "name": draw.fresh("ps"),
        "kind": "kv",
        "key": "string",
        "value": "long" if name == "count" else "string",
    }
    if name == "dedup" and draw.chance(40):
        spec["kind"] = "timestamped_kv"
    spec |= draw.maybe(40, memory=True) | draw.maybe(40, caching=True) | draw.maybe(15, logging=False)
    processor = {"name": name, "store": spec["name"]}
    value = "long" if name == "count" else "string"
    op = "process_values" if name == "count" and draw.chance(50) else "process"
    guarded = graph.node("stream", "string", "string", "filter", on=node.id, pred=["not", ["is_null", "$k"]])
    if draw.chance(40):
        processor["provides"] = [spec]
        fields: dict[str, Json] = {}
    else:
        graph.add("add_state_store", store=spec)
        fields = {"stores": [spec["name"]]}
    graph.node("stream", "string", value, op, on=guarded.id, processor=processor, **fields, **draw.named())
    return True


def looked_up(graph: Graph) -> bool:
    """A processor that reads a store: a global one, or one that another processor has filled."""
    node = graph.pick("stream")
    if node is None or node.key != "string" or node.value != "string":
        return False
    draw = graph.draw
    texts = {"key": "string", "value": "string"}
    spec: Json = {"name": draw.fresh("ls"), "kind": draw.one("kv", "timestamped_kv"), **texts}
    processor = {"name": "lookup", "store": spec["name"]}
    if draw.chance(50):
        topic = draw.fresh("gs")
        put = {"name": "put", "store": spec["name"]}
        consumed = texts | draw.maybe(30, name=draw.fresh("src"))
        graph.add("add_global_store", store=spec | {"logging": False}, topic=topic, consumed=consumed, processor=put)
        graph.filled[topic] = texts
        graph.node("stream", "string", "string", "process", on=node.id, processor=processor, **draw.named())
        return True
    guarded = graph.node("stream", "string", "string", "filter", on=node.id, pred=["not", ["is_null", "$k"]])
    graph.add("add_state_store", store=spec | draw.maybe(40, caching=True) | draw.maybe(30, memory=True))
    filling: Json = {"name": "put", "store": spec["name"]}
    if draw.chance(40):
        filling = {"name": "buffer", "store": spec["name"], "type": draw.one("stream_time", "wall_clock")}
        filling |= {"interval": draw.one(5, 10, 25)}
    first = graph.node("stream", "string", "string", "process", on=guarded.id, processor=filling, stores=[spec["name"]])
    if filling["name"] == "put":
        graph.nodes.remove(first)
    second = graph.partner(node, "stream")
    if second is None or second.value != "string":
        second = node
    graph.node(
        "stream",
        "string",
        "string",
        "process",
        on=second.id,
        processor=processor,
        stores=[spec["name"]],
        **draw.named(),
    )
    return True


# --- tables -----------------------------------------------------------------------------------------------------------


def to_table(graph: Graph) -> bool:
    node = graph.pick("stream")
    if node is None or (functions.is_windowed(node.key) and not graph.draw.chance(30)):
        return False
    store = graph.kept(node.key, node.value, 40)
    graph.node("table", node.key, node.value, "to_table", on=node.id, **store, **graph.draw.named())
    return True


def to_stream(graph: Graph) -> bool:
    node = graph.pick("table")
    if node is None:
        return False
    graph.table_to_stream(node)
    return True


def counted_by_number(graph: Graph) -> bool:
    """A table whose keys are numbers: others may point to its rows."""
    node = graph.pick("table")
    if node is None or functions.is_windowed(node.key):
        return False
    draw = graph.draw
    kind = draw.one("long", "int")
    fn = ["pair", functions.key(draw, node.key, node.value, kind), "$v"]
    graph.add("group_by", on=node.id, fn=fn, grouped={"key": kind, "value": node.value})
    graph.node("table", kind, "long", "count", materialized={"key": kind, "value": "long"}, **draw.named())
    return True


def transformed(graph: Graph) -> bool:
    node = graph.pick("table")
    if node is None:
        return False
    draw = graph.draw
    fields: dict[str, Json] = {}
    if draw.chance(30) and node.key == "string":
        name = draw.fresh("ts")
        graph.add("add_state_store", store={"name": name, "kind": "kv", "key": "string", "value": "long"})
        transformer: Json = {"name": "count", "store": name}
        fields = {"stores": [name]}
    else:
        transformer = {"name": "apply", "fn": functions.value(draw, node.value, "string", key=draw.chance(30))}
    store = graph.kept(node.key, "string", 35)
    graph.node(
        "table",
        node.key,
        "string",
        "transform_values",
        on=node.id,
        transformer=transformer,
        **fields,
        **store,
        **draw.named(),
    )
    return True


# --- joins ------------------------------------------------------------------------------------------------------------


def table_joined(graph: Graph) -> bool:
    node = graph.pick("table")
    other = graph.partner(node, "table") if node else None
    if node is None or other is None:
        return False
    draw = graph.draw
    op = draw.one("join", "left_join", "outer_join")
    fields = {"on": node.id, "with": other.id, "joiner": functions.joiner(draw, may_use_key=False)}
    store = graph.kept(node.key, "string", 30)
    graph.node("table", node.key, "string", op, **fields, **store, **draw.named())
    return True


def stream_table_joined(graph: Graph) -> bool:
    node = graph.pick("stream")
    other = graph.partner(node, "table") if node else None
    if node is None or other is None:
        return False
    draw = graph.draw
    joined = draw.maybe(30, name=draw.fresh("j"))
    for name, kind in (("key", node.key), ("left", node.value), ("right", other.value)):
        if kind != "string":
            joined[name] = kind
    fields = {"on": node.id, "with": other.id, "joiner": functions.joiner(draw, may_use_key=True)}
    fields |= {"joined": joined} if joined else {}
    graph.node("stream", node.key, "string", draw.one("join", "left_join"), **fields)
    return True


def global_joined(graph: Graph) -> bool:
    node, other = graph.pick("stream"), graph.pick("global")
    if node is None or other is None:
        return False
    draw = graph.draw
    key_fn = functions.key(draw, node.key, node.value, "string")
    fields = {"on": node.id, "with": other.id, "key_fn": key_fn, "joiner": functions.joiner(draw, may_use_key=True)}
    graph.node("stream", node.key, "string", draw.one("join", "left_join"), **fields, **draw.named())
    return True
