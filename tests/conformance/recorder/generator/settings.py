"""Changes of a generated scenario as a whole: timestamp extractors, idling, partition counts, names that clash."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.recorder.generator.draws import Draw, Json

_EXTRACTORS = {
    "value_or_skip": 3,
    "value_or_partition_time": 3,
    "value": 2,
    "value_or_fail": 1,
    "use_partition_time": 1,
}


def with_extractors(draw: Draw, scenario: Json) -> Json:
    """Timestamps from the values, for all sources or for some, and values that hold some."""
    # Java asks the default one also for what foreign-key joins send to themselves, which no extractor of a user's can read.
    sends_to_itself = any("fk" in op for op in scenario["topology"])
    if draw.chance(50) and not sends_to_itself:
        scenario["config"]["default.timestamp.extractor"] = draw.weighted(_EXTRACTORS)
    for op in scenario["topology"]:
        if op["op"] in ("stream", "table") and draw.chance(50):
            op["consumed"] = op.get("consumed", {}) | {"extractor": draw.weighted(_EXTRACTORS)}
    for step in scenario["steps"]:
        if "pipe" in step and isinstance(step["pipe"][2], str) and draw.chance(80):
            step["pipe"][2] += f"@{max(0, step['pipe'][3] + draw.between(-10, 10))}"
    return scenario


def with_idling(draw: Draw, scenario: Json) -> Json:
    """A task that waits for its other inputs, and a clock that moves."""
    # With more than two inputs Java waits for one after the other, in the order of a hash table.
    repartitions = any(op["op"] in ("repartition", "map", "select_key", "group_by") for op in scenario["topology"])
    sources = [op for op in scenario["topology"] if op["op"] in ("stream", "table")]
    inputs = sum(len(op.get("topics", ("one",))) for op in sources)
    waits = (-1, 0) if repartitions or inputs > 2 else (-1, 0, 5, 20, 60)
    scenario["config"]["max.task.idle.ms"] = draw.of(waits)
    steps = []
    for step in scenario["steps"]:
        steps.append(step)
        if draw.chance(30):
            steps.append({"advance": draw.one(1, 5, 20, 60, 100)})
    return scenario | {"steps": steps}


def optimized(draw: Draw, scenario: Json) -> Json:
    """A topology that is rewritten, mostly."""
    parts = ("reuse.ktable.source.topics", "merge.repartition.topics", "single.store.self.join")
    chosen = draw.weighted({"none": 2, "all": 4, parts[0]: 1, parts[1]: 2, parts[2]: 1, f"{parts[0]},{parts[2]}": 1})
    scenario["config"]["topology.optimization"] = chosen
    return scenario


def with_own_processors_optimized(draw: Draw, scenario: Json) -> Json:
    """Merged repartition topics, with and without the setting that says what processors of the user's own may do."""
    scenario["config"]["topology.optimization"] = draw.one("all", "merge.repartition.topics")
    scenario["config"] |= draw.maybe(60, **{"__enable.process.processValue.fix__": draw.one("true", "false")})
    return scenario


def topology_only(draw: Draw, scenario: Json) -> Json:
    """No script; topics with different partition counts, and settings of internal topics."""
    scenario.pop("steps")
    config = scenario["config"]
    config |= draw.maybe(25, **{"topic.retention.ms": "77"}) | draw.maybe(20, **{"topic.segment.bytes": "1000"})
    config |= draw.maybe(25, **{"windowstore.changelog.additional.retention.ms": draw.one(0, 1000)})
    config |= draw.maybe(10, **{"ensure.explicit.internal.resource.naming": "true"})
    # Java leaves co-partitioning unchecked where nothing is repartitioned; that is not worth recording.
    repartitions = any(op["op"] == "repartition" for op in scenario["topology"])
    counts = draw.of([(4,), (2, 4), (1, 2, 3)]) if repartitions else (draw.between(1, 5),)
    scenario["partitions"] = {topic: draw.of(counts) for topic in scenario["topics"] if not topic.startswith("out")}
    for op in scenario["topology"]:
        if op["op"] == "repartition" and draw.chance(40):
            op["repartitioned"] = op.get("repartitioned", {}) | {"partitions": draw.one(1, 2, 4, 6)}
    return scenario


def clashing(draw: Draw, scenario: Json) -> Json:
    """One or two names of the topology given twice, or not allowed."""
    places = list(_names(scenario["topology"]))
    if not places:
        return scenario
    for _ in range(draw.between(1, 2)):
        holder, field = draw.of(places)
        other, other_field = draw.of(places)
        is_checked = field in ("named", "store")  # other names Java finds bad only when it creates a topic
        holder[field] = draw.one("a b", "x/y", "é") if is_checked and draw.chance(15) else other[other_field]
    return scenario


def _names(topology: list[Json]) -> Iterator[tuple[Json, str]]:
    """Where names stand: the object and its field."""
    for op in topology:
        if "named" in op:
            yield op, "named"
        for holder, field in (
            ("materialized", "store"),
            ("grouped", "name"),
            ("repartitioned", "name"),
            ("joined", "name"),
            ("consumed", "name"),
            ("produced", "name"),
        ):
            if field in op.get(holder, {}):
                yield op[holder], field
