"""The families of generated scenarios: which operators they mix, which configuration and which script they get."""

from __future__ import annotations

from collections.abc import Callable

from tests.conformance.recorder.generator import (
    aggregations,
    failing,
    graph_mistakes,
    inputs,
    joins,
    mistakes,
    operators,
    processor_graphs,
    settings,
    store_scripts,
)
from tests.conformance.recorder.generator.draws import Draw, Json
from tests.conformance.recorder.generator.graph import Graph
from tests.conformance.recorder.generator.operators import Operator

STATELESS: dict[Operator, int] = {
    operators.filtered: 3,
    operators.mapped_values: 4,
    operators.mapped: 3,
    operators.flat_mapped: 2,
    operators.peeked: 1,
    operators.merged: 3,
    operators.split: 2,
    operators.repartitioned: 2,
    operators.processed: 2,
    operators.looked_up: 1,
    operators.through_topic: 1,
}
TABLES: dict[Operator, int] = {
    operators.filtered: 3,
    operators.mapped_values: 4,
    operators.transformed: 2,
    operators.table_joined: 4,
    aggregations.table_aggregated: 3,
    operators.to_stream: 1,
    operators.to_table: 2,
    operators.mapped: 1,
}
JOINS: dict[Operator, int] = {
    operators.stream_table_joined: 6,
    operators.global_joined: 3,
    operators.table_joined: 2,
    operators.mapped: 3,
    operators.mapped_values: 2,
    operators.filtered: 1,
    operators.repartitioned: 1,
    operators.to_table: 1,
    operators.to_stream: 1,
    operators.merged: 1,
    aggregations.aggregated: 1,
}
AGGREGATIONS: dict[Operator, int] = {
    aggregations.aggregated: 6,
    operators.to_stream: 3,
    operators.mapped: 2,
    operators.mapped_values: 2,
    operators.filtered: 2,
    operators.flat_mapped: 1,
    aggregations.table_aggregated: 1,
    operators.counted_in_store: 1,
}
WINDOWS: dict[Operator, int] = {
    aggregations.windowed: 6,
    operators.to_stream: 2,
    operators.filtered: 1,
    operators.mapped_values: 1,
    operators.mapped: 1,
    aggregations.aggregated: 1,
    aggregations.table_aggregated: 1,
}
CLOSINGS: dict[Operator, int] = {
    aggregations.closed_in_supplied_store: 6,
    operators.to_stream: 2,
    operators.filtered: 1,
    operators.mapped_values: 1,
}
OWN_PROCESSORS: dict[Operator, int] = {
    operators.mapped: 4,
    operators.rekeyed: 5,
    operators.processed: 2,
    operators.counted_in_store: 1,
    operators.filtered: 1,
    operators.mapped_values: 1,
    operators.merged: 2,
    operators.repartitioned: 1,
    operators.to_table: 1,
    operators.stream_table_joined: 2,
    aggregations.aggregated: 5,
}
STREAM_JOINS: dict[Operator, int] = {
    joins.streams_joined: 6,
    joins.joined_with_itself: 1,
    operators.filtered: 1,
    operators.mapped: 2,
    operators.mapped_values: 1,
    operators.merged: 1,
    operators.to_table: 1,
    aggregations.aggregated: 1,
}
FOREIGN_JOINS: dict[Operator, int] = {
    joins.foreign_joined: 6,
    operators.counted_by_number: 1,
    operators.filtered: 1,
    operators.mapped_values: 2,
    operators.table_joined: 1,
    operators.to_stream: 1,
    operators.to_table: 1,
    aggregations.table_aggregated: 1,
}
SUPPRESSIONS: dict[Operator, int] = {
    joins.suppressed: 6,
    aggregations.windowed: 4,
    aggregations.aggregated: 2,
    operators.filtered: 1,
    operators.mapped_values: 1,
    operators.table_joined: 1,
    operators.stream_table_joined: 1,
    operators.to_stream: 1,
}
COGROUPS: dict[Operator, int] = {
    joins.cogrouped: 6,
    operators.mapped: 2,
    operators.mapped_values: 1,
    operators.filtered: 1,
    operators.table_joined: 1,
    operators.to_stream: 1,
    aggregations.table_aggregated: 1,
}
VERSIONS: dict[Operator, int] = {
    joins.versioned_table: 2,
    joins.versioned_count: 2,
    joins.derived_with_versions: 2,
    joins.joined_with_grace: 4,
    joins.foreign_joined: 2,
    operators.stream_table_joined: 3,
    operators.table_joined: 3,
    operators.filtered: 3,
    operators.mapped_values: 2,
    operators.transformed: 1,
    operators.to_stream: 1,
    operators.to_table: 1,
    aggregations.table_aggregated: 2,
}
SELF_JOINS: dict[Operator, int] = {
    joins.joined_with_itself: 6,
    operators.filtered: 2,
    operators.mapped: 2,
    operators.mapped_values: 2,
    operators.merged: 1,
    operators.processed: 1,
    operators.to_table: 1,
    operators.stream_table_joined: 1,
    aggregations.aggregated: 2,
}
ANYTHING: dict[Operator, int] = {}
EVERYTHING: dict[Operator, int] = {}
for _mixed, _parts in (
    (ANYTHING, (STATELESS, TABLES, JOINS, AGGREGATIONS, WINDOWS)),
    (EVERYTHING, (STATELESS, TABLES, JOINS, WINDOWS, STREAM_JOINS, FOREIGN_JOINS, SUPPRESSIONS, COGROUPS, VERSIONS)),
):
    for _weights in _parts:
        for _operator, _weight in _weights.items():
            _mixed[_operator] = _mixed.get(_operator, 0) + _weight


_EMIT_INTERVALS = (
    "__emit.interval.ms.kstreams.windowed.aggregation__",
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__",
)


def _config(draw: Draw) -> dict[str, Json]:
    config: dict[str, Json] = {"application.id": "app", "default.key.serde": "string", "default.value.serde": "string"}
    config |= draw.maybe(30, **{"statestore.cache.max.bytes": 0})
    config |= draw.maybe(12, **{"dsl.store.suppliers.class": "in_memory"})
    return config


def _finished(draw: Draw, graph: Graph, pace: int, advance_percent: int = 4) -> Json:
    """Sinks for what the last nodes yield, and a script for the sources."""
    read = {op.get("on") for op in graph.ops} | {op.get("with") for op in graph.ops}
    for node in list(graph.nodes):
        if node.id in read and not draw.chance(15):
            continue
        if node.kind == "table":
            node = graph.table_to_stream(node)
        if node.kind == "stream":
            graph.sink(node)
    written = graph.sources | graph.filled
    steps = inputs.script(
        draw, written, steps=draw.between(10, 24), pace=pace, advance_percent=advance_percent, today=_today(graph)
    )
    return {
        "topics": written | graph.outputs,
        "topology": graph.ops,
        **draw.maybe(10, wall_clock=1000),
        "steps": [
            step
            for step in steps
            if not ("pipe" in step and step["pipe"][0] in graph.filled and step["pipe"][1] is None)
        ],
    }


def _today(graph: Graph) -> int:
    """A large timestamp. With windows not too large: Java's caches walk through every segment since 0."""
    return 3_000_000 if any(op["op"] == "windowed_by" for op in graph.ops) else 1_700_000_000_000


def _chain(weights: dict[Operator, int], starts: dict[Operator, int], least: int, most: int) -> Callable[[Draw], Json]:
    """A family whose topologies begin with some sources and go on with `least` to `most` operators."""

    def family(draw: Draw) -> Json:
        graph = Graph(draw, is_explicit=weights in (SUPPRESSIONS, EVERYTHING))
        for _ in range(draw.between(1, 3)):
            draw.weighted(starts)(graph)
        wanted = draw.between(least, most)
        for _ in range(40):
            if wanted == 0:
                break
            wanted -= draw.weighted(weights)(graph)
        pace = draw.one(2, 4, 10, 10) if weights is not WINDOWS else draw.one(3, 3, 8, 8, 15_000)
        config = _config(draw)
        if weights in (AGGREGATIONS, WINDOWS) and draw.chance(10):
            # Too small for a few entries. Not where tables read themselves while they are flushed: there Java counts twice.
            config["statestore.cache.max.bytes"] = draw.one(120, 300)
        if weights in (CLOSINGS, STREAM_JOINS, EVERYTHING) and draw.chance(20):
            # What has closed is looked for every now and then only, by the wall clock.
            config |= dict.fromkeys(_EMIT_INTERVALS, draw.one(1, 10, 60))
            return {"config": config, **_finished(draw, graph, pace, advance_percent=25)}
        return {"config": config, **_finished(draw, graph, pace)}

    return family


def _stream(graph: Graph) -> bool:
    return operators.stream(graph, graph.draw.weighted({"string": 9, "long": 1, "int": 1, "double": 1}))


def _with_config(family: Callable[[Draw], Json]) -> Callable[[Draw], Json]:
    def with_config(draw: Draw) -> Json:
        config, found = _config(draw), family(draw)
        return {**found, "config": config | found.get("config", {})}

    return with_config


_ALL_SOURCES: dict[Operator, int] = {
    _stream: 8,
    operators.table: 6,
    operators.global_table: 2,
    operators.pattern_stream: 1,
}
FAMILIES: dict[str, Callable[[Draw], Json]] = {
    "stateless": _chain(STATELESS, {_stream: 5, operators.pattern_stream: 1}, 3, 9),
    "table": _chain(TABLES, {operators.table: 3, _stream: 1}, 2, 7),
    "aggregate": _chain(AGGREGATIONS, {_stream: 1}, 2, 6),
    "window": _chain(WINDOWS, {_stream: 1}, 1, 4),
    "join": _chain(JOINS, _ALL_SOURCES, 3, 7),
    "chain": _chain(ANYTHING, _ALL_SOURCES, 4, 11),
    "ssjoin": _chain(STREAM_JOINS, {_stream: 1}, 1, 4),
    "fkjoin": _chain(FOREIGN_JOINS, {operators.table: 1}, 1, 4),
    "suppress": _chain(SUPPRESSIONS, {_stream: 2, operators.table: 2}, 2, 5),
    "cogroup": _chain(COGROUPS, {_stream: 1}, 1, 4),
    "versioned": _chain(VERSIONS, {_stream: 2, joins.versioned_table: 3, operators.table: 1}, 2, 6),
    "closing": _chain(CLOSINGS, {_stream: 1}, 1, 4),
    "optimized": lambda draw: settings.with_own_processors_optimized(
        draw, _chain(OWN_PROCESSORS, {_stream: 3, operators.table: 1}, 4, 9)(draw)
    ),
    "everything": lambda draw: settings.optimized(draw, _chain(EVERYTHING, _ALL_SOURCES, 4, 10)(draw)),
    "selfjoin": lambda draw: settings.optimized(draw, _chain(SELF_JOINS, {_stream: 1}, 2, 6)(draw)),
    "store": _with_config(store_scripts.scenario),
    "history": _with_config(store_scripts.history),
    "papi": _with_config(lambda draw: failing.handled(draw, processor_graphs.scenario(draw))),
    "shared": _with_config(processor_graphs.shared),
    "errors": lambda draw: failing.sabotaged(draw, _small(draw)),
    "badinput": lambda draw: failing.sabotaged(draw, _waiting(draw)),
    "timestamps": lambda draw: settings.with_extractors(draw, _small(draw) if draw.chance(50) else _waiting(draw)),
    "idle": lambda draw: settings.with_idling(draw, FAMILIES["join"](draw)),
    "topology": lambda draw: settings.topology_only(
        draw, FAMILIES[draw.one("chain", "everything", "everything")](draw)
    ),
    "mistake": lambda draw: mistakes.mistaken(draw, FAMILIES["stateless"](draw)),
    "graphmistake": _with_config(lambda draw: graph_mistakes.mistaken(draw, processor_graphs.scenario(draw))),
    "naming": lambda draw: settings.topology_only(draw, settings.clashing(draw, FAMILIES["chain"](draw))),
}


def _small(draw: Draw) -> Json:
    return FAMILIES[draw.one("stateless", "aggregate", "table", "window", "join")](draw)


def _waiting(draw: Draw) -> Json:
    """Operators that give no result, or not yet, for the record they are called with."""
    return FAMILIES[draw.one("ssjoin", "fkjoin", "suppress", "cogroup", "versioned", "closing")](draw)
