"""Random topologies of the Processor API: sources, processors that share stores, punctuation, routed children, sinks."""

from __future__ import annotations

from tests.conformance.recorder.generator import inputs
from tests.conformance.recorder.generator.draws import Draw, Json

_TEXTS = {"key": "string", "value": "string"}


class ProcessorGraph:
    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.ops: list[Json] = []
        self.parents: list[str] = []
        self.stores: list[str] = []
        self.filled: dict[str, str] = {}
        self.sources: dict[str, Json] = {}
        self.outputs: dict[str, Json] = {}

    def add_source(self) -> None:
        draw = self.draw
        topics = [draw.fresh("in") for _ in range(draw.weighted({1: 5, 2: 1}))]
        name = draw.fresh("src")
        fields = draw.maybe(20, extractor=draw.one("fail", "log_and_skip", "use_partition_time")) | draw.maybe(
            10, reset="earliest"
        )
        fields |= draw.maybe(20, key="string") | draw.maybe(20, value="string")
        read: dict[str, Json] = {"topics": topics}
        if draw.chance(12):
            prefix = draw.fresh("logs")
            topics, read = [f"{prefix}-{end}" for end in "ab"], {"pattern": f"{prefix}-.*"}
        self.ops.append({"op": "add_source", "name": name, **read, **fields})
        self.sources |= dict.fromkeys(topics, _TEXTS)
        self.parents.append(name)

    def add_store(self) -> None:
        draw = self.draw
        spec = {"name": draw.fresh("st"), "kind": draw.one("kv", "kv", "timestamped_kv"), **_TEXTS}
        spec |= draw.maybe(40, memory=True) | draw.maybe(40, caching=True) | draw.maybe(15, logging=False)
        self.ops.append({"op": "add_state_store", "store": spec})
        self.stores.append(str(spec["name"]))

    def add_filled_store(self) -> None:
        """A store that a topic of its own fills: global, or read-only in the task."""
        draw = self.draw
        spec = {"name": draw.fresh("fs"), "kind": draw.one("kv", "timestamped_kv"), **_TEXTS, "logging": False}
        op, topic = draw.one("add_global_store", "add_read_only_state_store"), draw.fresh("f")
        self.ops.append(
            {
                "op": op,
                "store": spec,
                "name": draw.fresh("fsrc"),
                "topic": topic,
                **_TEXTS,
                "processor_name": draw.fresh("fp"),
                "processor": {"name": "put", "store": spec["name"]},
            }
        )
        self.sources[topic] = _TEXTS
        self.filled[str(spec["name"])] = op

    def add_lookup(self) -> None:
        draw = self.draw
        name, store = draw.fresh("p"), draw.of(sorted(self.filled))
        spec = {"name": "lookup", "store": store}
        self.ops.append({"op": "add_processor", "name": name, "processor": spec, "parents": draw.some(self.parents, 2)})
        if self.filled[store] == "add_read_only_state_store":
            self.ops.append({"op": "connect", "processor": name, "stores": [store]})
        self.parents.append(name)

    def add_processor(self) -> None:
        draw = self.draw
        if self.filled and draw.chance(30):
            self.add_lookup()
            return
        if draw.chance(12):
            self.add_route()
            return
        if draw.chance(10):
            self.add_count()
            return
        name = draw.fresh("p")
        stateful = bool(self.stores) and draw.chance(55)
        spec = self._stateful() if stateful else self._stateless()
        self.ops.append({"op": "add_processor", "name": name, "processor": spec, "parents": draw.some(self.parents, 2)})
        if stateful:
            self.ops.append({"op": "connect", "processor": name, "stores": [spec["store"]]})
        if spec["name"] != "put":
            self.parents.append(name)

    def add_route(self) -> None:
        """A processor that names the child it forwards to, behind one that writes such names."""
        draw = self.draw
        writer, router, *children = [draw.fresh("p") for _ in range(4)]
        places = [draw.one(*children), draw.one("*", *children)]
        fn = ["list", *(["pair", "$k", ["concat", place, ":", ["tail", "$v", 5]]] for place in places)]
        self.ops.append(_processor(writer, {"name": "apply", "fn": fn}, draw.some(self.parents, 2)))
        self.ops.append(_processor(router, {"name": "route"}, [writer]))
        self.ops.extend(_processor(child, self._stateless(), [router]) for child in children)
        self.parents.extend(children)

    def add_count(self) -> None:
        """A processor that counts, with a store that its supplier brings, and a sink for its numbers."""
        draw = self.draw
        name, topic = draw.fresh("p"), draw.fresh("out")
        spec = {
            "name": draw.fresh("cs"),
            "kind": "kv",
            "key": "string",
            "value": "long",
            **draw.maybe(40, caching=True),
        }
        processor = {"name": "count", "store": spec["name"], "provides": [spec]}
        self.ops.append(_processor(name, processor, draw.some(self.parents, 2)))
        self.ops.append(
            {"op": "add_sink", "name": draw.fresh("snk"), "parents": [name], "topic": topic, "value": "long"}
        )
        self.outputs[topic] = {"key": "string", "value": "long"}

    def _stateful(self) -> Json:
        draw = self.draw
        spec: dict[str, Json] = {"name": draw.one("dedup", "put", "lookup", "buffer"), "store": draw.of(self.stores)}
        if spec["name"] == "buffer":
            spec |= {"type": draw.one("stream_time", "wall_clock"), "interval": draw.one(5, 10, 25)}
        return spec

    def _stateless(self) -> Json:
        draw = self.draw
        name = draw.one("punctuate", "apply", "header", "with_timestamp", "commit", "fail_on")
        if name == "punctuate":
            kind = draw.one("stream_time", "wall_clock")
            spec = {"name": name, "type": kind, "interval": draw.one(3, 5, 10, 25)}
            return spec | draw.maybe(30, start=draw.one(0, 4, 50)) | draw.maybe(30, limit=draw.between(1, 3))
        return {
            "apply": {
                "name": "apply",
                "fn": ["list", ["pair", "$k", ["tail", ["concat", "$v", "/", "$stream_time", "/", "$offset"], 12]]],
            },
            "header": {"name": "header", "key": draw.one("h", "x"), "value": "1"},
            "with_timestamp": {"name": "with_timestamp", "plus": draw.one(1, 10, 1000)},
            "commit": {"name": "commit"},
            "fail_on": {"name": "fail_on", "value": draw.one("a1", "b2", "n3", "x4")},
        }[name]

    def add_sink(self) -> None:
        draw = self.draw
        fields: dict[str, Json] = {"topic": draw.fresh("out")}
        self.outputs[fields["topic"]] = _TEXTS
        if draw.chance(20):
            other = draw.fresh("out")
            self.outputs[other] = _TEXTS
            fields = {"topic_fn": ["if", ["is_null", "$v"], other, fields["topic"]]}
        self.ops.append({"op": "add_sink", "name": draw.fresh("snk"), "parents": draw.some(self.parents, 2), **fields})

    def share_stores(self) -> None:
        """More stores for processors than they use: what shares a store is one SubTopology."""
        processors = [op["name"] for op in self.ops if op["op"] == "add_processor"]
        for _ in range(self.draw.between(1, 3)):
            chosen = self.draw.some(self.stores, 3)
            self.ops.append({"op": "connect", "processor": self.draw.of(processors), "stores": chosen})


def _processor(name: str, processor: Json, parents: list[str]) -> Json:
    return {"op": "add_processor", "name": name, "processor": processor, "parents": parents}


def shared(draw: Draw) -> Json:
    """Several stores, each used by several processors."""
    return scenario(draw, stores=draw.between(2, 4), shares=True)


def scenario(draw: Draw, stores: int | None = None, *, shares: bool = False) -> Json:
    graph = ProcessorGraph(draw)
    for _ in range(draw.between(1, 2)):
        graph.add_source()
    for _ in range(draw.between(0, 2) if stores is None else stores):
        graph.add_store()
    if draw.chance(40):
        graph.add_filled_store()
    for _ in range(draw.between(1, 4)):
        graph.add_processor()
    if shares:
        graph.share_stores()
    for _ in range(draw.between(1, 2)):
        graph.add_sink()
    steps = inputs.script(draw, graph.sources, steps=draw.between(8, 22), pace=draw.one(3, 10), advance_percent=20)
    return {
        "api": "papi",
        "topics": graph.sources | graph.outputs,
        "topology": _without_loose_stores(graph.ops),
        **draw.maybe(40, wall_clock=draw.one(3, 1000, 1_700_000_000_000)),
        "steps": [step for step in steps if not _is_keyless_row(step)],
    }


def _is_keyless_row(step: Json) -> bool:
    """A record without a key for a filled store, which no store can take."""
    return "pipe" in step and step["pipe"][0].startswith("f") and step["pipe"][1] is None


def _without_loose_stores(ops: list[Json]) -> list[Json]:
    used = {store for op in ops if op["op"] == "connect" for store in op["stores"]}
    return [op for op in ops if op["op"] != "add_state_store" or op["store"]["name"] in used]
