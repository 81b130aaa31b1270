"""A random DSL topology under construction: its ops so far, and the streams, tables and topics one can go on from.

`operators` adds to it, `families` says how much of what. A node knows the types of its keys and values, so that the next
function fits; which serdes an op is given is chosen here, since leaving one out is behaviour too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.conformance.recorder.generator import functions
from tests.conformance.recorder.generator.draws import Draw, Json


@dataclass(frozen=True)
class Node:
    kind: str
    """`stream`, `table` or `global`."""
    id: str
    key: Json
    value: Json


@dataclass
class Graph:
    draw: Draw
    ops: list[Json] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    sources: dict[str, Json] = field(default_factory=dict)
    """Topic -> {key, value} of what the script can write to."""
    filled: dict[str, Json] = field(default_factory=dict)
    """The same of topics that fill global stores: no store takes a record without a key."""
    groups: list[tuple[str, Node]] = field(default_factory=list)
    """Grouped streams that can be aggregated once more: the id of the op, and what the records are."""
    outputs: dict[str, Json] = field(default_factory=dict)
    is_explicit: bool = False
    """Every option object gets serdes: where a windowed table is suppressed, Java forgets those it was not told."""
    fan_outs: int = 0
    """How often one record has become several so far; too much of it makes files that nobody can read."""

    def add(self, op: str, **fields: Json) -> None:
        self.ops.append({"op": op, **fields})

    def node(self, kind: str, key: Json, value: Json, op: str, **fields: Json) -> Node:
        """Adds an op, and its result as a node."""
        found = Node(kind, self.draw.fresh("n"), key, value)
        self.add(op, **fields, id=found.id)
        self.nodes.append(found)
        return found

    def pick(self, *kinds: str) -> Node | None:
        """A node of one of the kinds; the newest is the likeliest, so that chains get long."""
        fitting = [node for node in self.nodes if node.kind in kinds]
        if not fitting:
            return None
        return fitting[-1] if self.draw.chance(60) else self.draw.of(fitting)

    def partner(self, node: Node, kind: str) -> Node | None:
        """Another node, or the same, with the key type of `node`."""
        fitting = [other for other in self.nodes if other.kind == kind and other.key == node.key]
        return self.draw.of(fitting) if fitting else None

    def serdes(self, key: Json, value: Json) -> dict[str, Json]:
        """Serdes for an option object: text can do without, other types always get theirs."""
        kinds = {"key": key, "value": value}
        return {
            name: kind for name, kind in kinds.items() if self.is_explicit or kind != "string" or self.draw.chance(25)
        }

    def materialized(self, key: Json, value: Json, percent: int, **more: Json) -> dict[str, Json]:
        """The field `materialized`, or nothing; without it a type that is not text would have no serde."""
        if not self.draw.chance(percent) and value == "string":
            return {}
        spec: dict[str, Json] = {**self.serdes(key, value), **more}
        if self.draw.chance(60):
            spec["store"] = self.draw.fresh("st")
        if self.draw.chance(25):
            spec["caching"] = self.draw.chance(50)
        if self.draw.chance(15):
            spec["logging"] = self.draw.of([False, {"min.insync.replicas": "2"}, {"cleanup.policy": "compact"}])
        if self.draw.chance(25):
            spec["type"] = self.draw.one("in_memory", "rocksdb")
        return {"materialized": spec}

    def kept(self, key: Json, value: Json, percent: int) -> dict[str, Json]:
        """As `materialized`, for tables by key: now and then in a store that the user brings."""
        if not self.draw.chance(8):
            return self.materialized(key, value, percent)
        kinds: list[Json] = [
            {"kind": "lru", "capacity": 2},
            {"kind": "kv", "memory": True},
            {"kind": "kv"},
            {"kind": "timestamped_kv"},
        ]
        return self.supplied(key, value, {"name": self.draw.fresh("st"), **self.draw.of(kinds)})

    def supplied(self, key: Json, value: Json, supplier: Json) -> dict[str, Json]:
        """The field `materialized` with a store supplier."""
        spec: dict[str, Json] = {"supplier": supplier, **self.serdes(key, value)}
        if self.draw.chance(30):
            spec["caching"] = self.draw.chance(50)
        if self.draw.chance(15):
            spec["logging"] = False
        return {"materialized": spec}

    def sink(self, node: Node) -> None:
        """Writes a stream to a topic of its own; sometimes only watches it."""
        if self.draw.chance(8):
            self.add("foreach", on=node.id, tag=self.draw.fresh("seen"), **self.draw.named())
            return
        draw = self.draw
        topic = draw.fresh("out")
        produced = self.serdes(node.key, node.value) | draw.maybe(15, name=draw.fresh("sink"))
        if draw.chance(6):
            produced["partitions_fn"] = draw.of(
                [None, ["list", 0], ["list"], ["if", ["is_null", "$v"], ["list"], None]]
            )
        target: dict[str, Json] = {"topic": topic}
        self.outputs[topic] = {"key": node.key, "value": node.value}
        if draw.chance(8):
            other = draw.fresh("out")
            self.outputs[other] = self.outputs[topic]
            target = {"topic_fn": ["if", ["is_null", "$v"], topic, other]}
        self.add("to", on=node.id, **target, **({"produced": produced} if produced or draw.chance(10) else {}))

    def table_to_stream(self, node: Node) -> Node:
        draw = self.draw
        if draw.chance(15):
            fn = functions.key(draw, node.key, node.value, "string")
            return self.node("stream", "string", node.value, "to_stream", on=node.id, fn=fn, **draw.named())
        return self.node("stream", node.key, node.value, "to_stream", on=node.id, **draw.named())
