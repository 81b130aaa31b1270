"""The DSL ops of the scenario format as calls of the engine's DSL: one function per op, found by name in `OPS`.

`execution` runs the list in order; each function gets the op and the build under way and returns what the op yields.
The Processor API's ops are in `papi_ops`.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.conformance import processors, specs
from tests.conformance.behaviours import StoreKinds
from tests.conformance.kit import Json, MalformedScenarioError, bind, compile_expression, mentions
from tests.conformance.specs import options

import streamfleet as sf

Op = dict[str, Json]


@dataclass
class Build:
    """A topology under construction, and what the rest of the run needs to know about it."""

    builder: Any
    """A StreamsBuilder, or with the Processor API the Topology itself."""
    stores: StoreKinds
    results: dict[str, Any] = field(default_factory=dict)
    previous: Any = None
    branches: dict[str, list[str]] = field(default_factory=dict)
    seen: list[tuple[str, Any, Any]] = field(default_factory=list)
    """(tag, key, value) of everything that `peek` and `foreach` saw."""

    def receiver(self, op: Op) -> Any:
        found = self.named(op["on"]) if "on" in op else self.previous
        if found is None:
            raise MalformedScenarioError(f"op {op['op']} has nothing to work on")
        return found

    def named(self, identifier: str) -> Any:
        if identifier not in self.results:
            raise MalformedScenarioError(f"no op has the id {identifier}")
        return self.results[identifier]


OpFunction = Callable[[Op, Build], Any]


# --- sources ----------------------------------------------------------------------------------------------------------


def stream(op: Op, build: Build) -> Any:
    topics = re.compile(op["pattern"]) if "pattern" in op else op["topics"]
    return build.builder.stream(topics, **options(op, "consumed"))


def table(op: Op, build: Build) -> Any:
    return build.builder.table(op["topic"], **options(op, "consumed", "materialized"))


def global_table(op: Op, build: Build) -> Any:
    return build.builder.global_table(op["topic"], **options(op, "consumed", "materialized"))


def add_state_store(op: Op, build: Build) -> Any:
    return build.builder.add_state_store(specs.store(op["store"]))


def add_global_store(op: Op, build: Build) -> Any:
    supplier = processors.processor(op["processor"], build.stores)
    return build.builder.add_global_store(specs.store(op["store"]), op["topic"], supplier, **options(op, "consumed"))


# --- stateless --------------------------------------------------------------------------------------------------------


def _of_key_and_value(method: str, parameter: str) -> OpFunction:
    def call(op: Op, build: Build) -> Any:
        function = bind(op[parameter], "k", "v")
        return getattr(build.receiver(op), method)(function, **options(op, "named", "materialized"))

    return call


def _of_value(method: str) -> OpFunction:
    def call(op: Op, build: Build) -> Any:
        function, with_key = _value_function(op["fn"])
        return getattr(build.receiver(op), method)(function, **with_key, **options(op, "named", "materialized"))

    return call


def _value_function(expression: Json) -> tuple[Callable[..., Any], dict[str, bool]]:
    if mentions(expression, "k"):
        return bind(expression, "k", "v"), {"with_key": True}
    return bind(expression, "v"), {}


def _watching(method: str) -> OpFunction:
    def call(op: Op, build: Build) -> Any:
        tag = f"#{op['tag']}"
        return getattr(build.receiver(op), method)(
            lambda key, value: build.seen.append((tag, key, value)), **options(op, "named")
        )

    return call


def print_(op: Op, build: Build) -> Any:
    return build.receiver(op).print(file=io.StringIO(), **options(op, "named"))


def merge(op: Op, build: Build) -> Any:
    return build.receiver(op).merge(build.named(op["with"]), **options(op, "named"))


def split(op: Op, build: Build) -> None:
    """Binds each branch to `<id>.<suffix>`: its key in the returned map without the splitter's name."""
    branched = build.receiver(op).split(**options(op, "named"))
    for branch in op["branches"]:
        branched = branched.branch(bind(branch["pred"], "k", "v"), **_named(branch))
    streams = branched.default_branch(**_named(op["default"])) if "default" in op else branched.no_default_branch()
    build.branches[op["id"]] = sorted(streams)
    splitter = re.escape(op["named"]) if "named" in op else "KSTREAM-BRANCH-[0-9]{10}"
    for key, branch_stream in streams.items():
        build.results[f"{op['id']}.{re.sub(f'^{splitter}', '', key, count=1)}"] = branch_stream


def _named(branch: Json) -> dict[str, str]:
    return {"name": branch["name"]} if "name" in branch else {}


def repartition(op: Op, build: Build) -> Any:
    return build.receiver(op).repartition(**options(op, "repartitioned"))


def topic_by(expression: Json) -> Callable[[Any, Any, Any], Any]:
    """A topic chosen per record. Descriptions show the extractor's name, which in the recordings is this word."""
    node = compile_expression(expression, ("k", "v", "ts", "topic"))

    def topic_of(key: Any, value: Any, context: Any) -> str | None:
        topic = node({"k": key, "v": value, "ts": context.timestamp, "topic": context.topic})
        return topic if topic is None else str(topic)

    topic_of.__qualname__ = "BY-EXPRESSION"
    return topic_of


def to(op: Op, build: Build) -> Any:
    topic = topic_by(op["topic_fn"]) if "topic_fn" in op else op["topic"]
    return build.receiver(op).to(topic, **options(op, "produced"))


def to_table(op: Op, build: Build) -> Any:
    return build.receiver(op).to_table(**options(op, "named", "materialized"))


def to_stream(op: Op, build: Build) -> Any:
    selector = (bind(op["fn"], "k", "v"),) if "fn" in op else ()
    return build.receiver(op).to_stream(*selector, **options(op, "named"))


def suppress(op: Op, build: Build) -> Any:
    return build.receiver(op).suppress(specs.suppressed(op["suppressed"]))


# --- processors -------------------------------------------------------------------------------------------------------


def process(op: Op, build: Build) -> Any:
    supplier = processors.processor(op["processor"], build.stores)
    return build.receiver(op).process(supplier, **_stores(op), **options(op, "named"))


def process_values(op: Op, build: Build) -> Any:
    supplier = processors.fixed_key_processor(op["processor"], build.stores)
    return build.receiver(op).process_values(supplier, **_stores(op), **options(op, "named"))


def transform_values(op: Op, build: Build) -> Any:
    supplier = processors.transformer(op["transformer"], build.stores)
    return build.receiver(op).transform_values(supplier, **_stores(op), **options(op, "named", "materialized"))


def _stores(op: Op) -> dict[str, list[str]]:
    return {"stores": op["stores"]} if "stores" in op else {}


# --- grouping and aggregating -----------------------------------------------------------------------------------------


def group_by_key(op: Op, build: Build) -> Any:
    return build.receiver(op).group_by_key(**options(op, "grouped"))


def group_by(op: Op, build: Build) -> Any:
    return build.receiver(op).group_by(bind(op["fn"], "k", "v"), **options(op, "grouped"))


def windowed_by(op: Op, build: Build) -> Any:
    return build.receiver(op).windowed_by(specs.window(op["window"]))


def emit_strategy(op: Op, build: Build) -> Any:
    strategies = {
        "on_window_close": sf.EmitStrategy.ON_WINDOW_CLOSE,
        "on_window_update": sf.EmitStrategy.ON_WINDOW_UPDATE,
    }
    return build.receiver(op).emit_strategy(strategies[op["strategy"]])


def count(op: Op, build: Build) -> Any:
    return build.receiver(op).count(**options(op, "named", "materialized"))


def reduce(op: Op, build: Build) -> Any:
    functions = [bind(op[name], "agg", "v") for name in ("fn", "adder", "subtractor") if name in op]
    return build.receiver(op).reduce(*functions, **options(op, "named", "materialized"))


def aggregate(op: Op, build: Build) -> Any:
    functions = [bind(op[name], "k", "v", "agg") for name in ("fn", "adder", "subtractor") if name in op]
    merger = {"merger": bind(op["merger"], "k", "a", "b")} if "merger" in op else {}
    chosen = options(op, "named", "materialized")
    return build.receiver(op).aggregate(bind(op["init"]), *functions, **merger, **chosen)


def _foreign_key(op: Op, joiner: Callable[..., Any], **chosen: Any) -> Op:
    """Java's extractor may take the key and its joiner may not; here one word decides for both."""
    if not mentions(op["fk"], "k"):
        return {"foreign_key": bind(op["fk"], "v"), "joiner": joiner, **chosen}
    extractor = bind(op["fk"], "k", "v")
    return {
        "foreign_key": extractor,
        "joiner": lambda key, left, right: joiner(left, right),
        "with_key": True,
        **chosen,
    }


# --- joins ------------------------------------------------------------------------------------------------------------


def _join(method: str) -> OpFunction:
    """Stream-table, stream-global-table and table-table joins; the receiver knows which it is."""

    def call(op: Op, build: Build) -> Any:
        with_key = mentions(op["joiner"], "k")
        joiner = bind(op["joiner"], "k", "l", "r") if with_key else bind(op["joiner"], "l", "r")
        chosen = options(op, "named", "joined", "materialized")
        if with_key:
            chosen["with_key"] = True
        if "window" in op:
            chosen |= {"window": specs.window(op["window"]), **options(op, "stream_joined")}
        if "fk" in op:
            chosen |= _foreign_key(op, joiner, **options(op, "table_joined"))
            joiner = chosen.pop("joiner")
        if "key_fn" in op:
            chosen["key_selector"] = bind(op["key_fn"], "k", "v")
        return getattr(build.receiver(op), method)(build.named(op["with"]), joiner, **chosen)

    return call


def cogroup(op: Op, build: Build) -> Any:
    """On a grouped stream the first of several; on what that gives, with another grouped stream, the next."""
    aggregator = bind(op["fn"], "k", "v", "agg")
    other = (build.named(op["with"]),) if "with" in op else ()
    return build.receiver(op).cogroup(*other, aggregator)


OPS: dict[str, OpFunction] = {
    "stream": stream,
    "table": table,
    "global_table": global_table,
    "add_state_store": add_state_store,
    "add_global_store": add_global_store,
    "filter": _of_key_and_value("filter", "pred"),
    "filter_not": _of_key_and_value("filter_not", "pred"),
    "map": _of_key_and_value("map", "fn"),
    "flat_map": _of_key_and_value("flat_map", "fn"),
    "select_key": _of_key_and_value("select_key", "fn"),
    "map_values": _of_value("map_values"),
    "flat_map_values": _of_value("flat_map_values"),
    "peek": _watching("peek"),
    "foreach": _watching("foreach"),
    "print": print_,
    "merge": merge,
    "split": split,
    "repartition": repartition,
    "to": to,
    "to_table": to_table,
    "to_stream": to_stream,
    "process": process,
    "process_values": process_values,
    "transform_values": transform_values,
    "group_by_key": group_by_key,
    "group_by": group_by,
    "windowed_by": windowed_by,
    "emit_strategy": emit_strategy,
    "count": count,
    "reduce": reduce,
    "aggregate": aggregate,
    "join": _join("join"),
    "left_join": _join("left_join"),
    "outer_join": _join("outer_join"),
    "suppress": suppress,
    "cogroup": cogroup,
}
