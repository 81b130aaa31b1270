"""Makes a generated scenario fail in places: functions that raise, serdes that refuse, and handlers that decide about it."""

from __future__ import annotations

from tests.conformance.recorder.generator.draws import Draw, Json

_HANDLERS = ("deserialization.exception.handler", "processing.exception.handler", "production.exception.handler")
_VARIABLES = {
    "fn": ["$v"],
    "pred": ["$v"],
    "joiner": ["$l", "$r"],
    "adder": ["$v"],
    "subtractor": ["$v"],
    "key_fn": ["$v"],
    "fk": ["$v"],
    "merger": ["$a", "$b"],
}
_OPTION_OBJECTS = ("consumed", "produced", "grouped", "repartitioned", "materialized")
_STRICT_PERCENT = 35


def sabotaged(draw: Draw, scenario: Json) -> Json:
    """The scenario with one or two functions that raise, some strict serdes, bad values in the script, random handlers."""
    scenario["config"] |= {name: "continue" for name in _HANDLERS if draw.chance(55)}
    if draw.chance(45):
        scenario["config"]["errors.dead.letter.queue.topic.name"] = "dlq"
        scenario["topics"]["dlq"] = {"key": "hex", "value": "hex"}
    for op in scenario["topology"]:
        # What waits for its grace and fails is tried again by Java with every later record; nothing behind it leaves any more.
        op.get("joined", {}).pop("grace", None)
    breakable = [op for op in scenario["topology"] if _functions(op)]
    for op in draw.some(breakable, 2) if breakable else []:
        _break(draw, op)
    for op in scenario["topology"]:
        _make_strict(draw, op)
        if "grouped" in op or "repartitioned" in op:
            # Java forgets the stream's serde as soon as such an object is given; then it has to name one.
            spec = op.get("grouped", op.get("repartitioned"))
            spec.setdefault("value", "string")
    for step in scenario["steps"]:
        if "pipe" in step and isinstance(step["pipe"][2], str) and draw.chance(45):
            step["pipe"][2] = draw.one("a7", "b7", "x?", "y!", "7", "a!", "n?")
    return scenario


def handled(draw: Draw, scenario: Json) -> Json:
    """Mostly with handlers that go on, for a scenario that may fail as it is."""
    config = {"processing.exception.handler": "continue"} if draw.chance(75) else {}
    if draw.chance(30):
        config["errors.dead.letter.queue.topic.name"] = "dlq"
        scenario["topics"]["dlq"] = {"key": "hex", "value": "hex"}
        # A store that is given no key fails in words, and with a class, of its own.
        scenario["steps"] = [step for step in scenario["steps"] if step.get("pipe", ["", ""])[1] is not None]
    return scenario | {"config": config}


def _functions(op: Json) -> list[str]:
    return [name for name in _VARIABLES if name in op and op[name] is not None]


def _break(draw: Draw, op: Json) -> None:
    name = draw.of(_functions(op))
    variables = _VARIABLES[name]
    if op["op"] == "reduce" and name == "fn":
        variables = ["$agg", "$v"]
    condition = ["contains", ["concat", *variables], draw.one("7", "7", "a")]
    op[name] = ["if", condition, ["fail", ["concat", *variables]], op[name]]


def _make_strict(draw: Draw, op: Json) -> None:
    """Serdes of text become such that refuse some of it; what Java infers stays as it is."""
    for name in _OPTION_OBJECTS:
        if name in op and op[name].get("value") == "string" and draw.chance(_STRICT_PERCENT):
            op[name] = op[name] | {"value": "string_strict"}
