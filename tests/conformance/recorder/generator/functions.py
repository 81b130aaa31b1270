"""Random expressions of the scenario language, by the types of what goes in and what comes out.

Types are names of serdes, or the objects of windowed serdes. Every expression takes nulls, and its texts stay short:
results that feed the next operator must not grow with the script.
"""

from __future__ import annotations

from tests.conformance.recorder.generator.draws import Draw, Json

NUMBERS = ("long", "int", "double")
VALUE_TYPES = {"string": 8, "long": 3, "int": 1, "double": 1}


def is_windowed(kind: Json) -> bool:
    return isinstance(kind, dict)


def as_text(kind: Json, variable: Json) -> Json:
    return variable if kind == "string" else ["str", variable]


def converted(kind: Json, number: Json) -> Json:
    """A long as another type of number."""
    return number if kind == "long" else [kind, number]


def value(draw: Draw, kind_in: Json, kind_out: Json, variable: str = "$v", *, key: bool = False) -> Json:
    """Some function of a value; with `key` it also looks at the key."""
    text = as_text(kind_in, variable)
    if kind_out == "string":
        return _text(draw, text, key)
    number = _number(draw, kind_in, variable, text)
    if draw.chance(50):
        number = ["sum", number, draw.between(1, 3)]
    if draw.chance(15):
        return ["if", ["lt", number, 2], None, converted(kind_out, number)]
    return converted(kind_out, number)


def _number(draw: Draw, kind_in: Json, variable: str, text: Json) -> Json:
    """Always a long: Java's serdes do not take an int for one."""
    if kind_in == "string":
        return ["parse_long", ["tail", text, 1]] if draw.chance(30) else ["len", text]
    if kind_in == "long":
        return variable
    return ["sum", variable] if kind_in == "int" else ["sum", ["int", variable]]


def _text(draw: Draw, text: Json, key: bool) -> Json:
    if key:
        return ["tail", ["concat", "$k", draw.one("-", "="), text], 9]
    return draw.of(
        [
            ["upper", text],
            ["tail", ["concat", text, draw.one("+", "~", "b")], 9],
            ["tail", ["concat", text, text], 7],
            ["before", text, draw.one("a", "1", " ")],
            ["if", ["contains", text, draw.one("a", "1", "n")], None, text],
            ["last_char", text],
        ]
    )


def key(draw: Draw, key_kind: Json, value_kind: Json, kind_out: Json) -> Json:
    """A key made of the old key and the value."""
    old = "$k"
    if is_windowed(key_kind):
        old = ["window_key", "$k"]  # type: ignore[assignment]
        key_kind = key_kind.get("time_windowed") or key_kind["session_windowed"]
    if kind_out == "string":
        text = as_text(value_kind, "$v")
        return draw.of(
            [
                ["last_char", text],
                ["first_char", text],
                ["lower", ["first_char", as_text(key_kind, old)]],
                ["if", ["contains", text, "n"], None, ["last_char", text]],
                ["concat", ["first_char", as_text(key_kind, old)], ["mod", ["len", text], 2]],
            ]
        )
    return converted(kind_out, ["mod", ["len", ["concat", old, "$v"]], 3])


def predicate(draw: Draw, value_kind: Json) -> Json:
    if value_kind == "string":
        return draw.of(
            [
                ["contains", "$v", draw.one("a", "1", "2", "b")],
                ["not", ["contains", "$v", draw.one("3", "n", "z")]],
                ["is_even", ["len", "$v"]],
                ["is_null", "$v"],
                ["not", ["is_null", "$v"]],
                ["gt", "$v", "b"],
            ]
        )
    even = ["is_even", "$v"] if value_kind != "double" else ["gt", "$v", 2]
    return draw.of(
        [even, ["gt", "$v", draw.between(1, 4)], ["lt", "$v", draw.between(2, 6)], ["not", ["is_null", "$v"]]]
    )


def joiner(draw: Draw, *, may_use_key: bool) -> Json:
    if may_use_key and draw.chance(30):
        return ["tail", ["concat", "$k", ":", "$l", "+", "$r"], 14]
    if draw.chance(15):
        return ["if", ["is_null", "$r"], None, ["tail", ["concat", "$l", "|", "$r"], 12]]
    return ["tail", ["concat", "$l", "+", "$r"], 12]


def reducer(draw: Draw, kind: Json) -> Json:
    if kind == "string":
        return draw.of([["tail", ["concat", "$agg", "$v"], 10], "$v", ["max", "$agg", "$v"]])
    return converted(kind, draw.of([["sum", "$agg", "$v"], ["max", "$agg", "$v"], ["sub", "$agg", "$v"]]))


def initial(kind: Json) -> Json:
    return "" if kind == "string" else converted(kind, 0)


def aggregator(draw: Draw, value_kind: Json, kind_out: Json, *, may_delete: bool = True) -> Json:
    text = as_text(value_kind, "$v")
    if kind_out == "string":
        grown = ["tail", ["concat", "$agg", draw.one("", ",", "$k"), text], 12]
    else:
        added = ["len", text] if value_kind == "string" else ["int", "$v"]
        grown = converted(kind_out, ["sum", "$agg", added])
    if may_delete and draw.chance(15):
        return ["if", ["contains", text, draw.one("2", "n")], None, grown]
    return grown


def merger(kind: Json) -> Json:
    if kind == "string":
        return ["tail", ["concat", "$a", "|", "$b"], 12]
    return converted(kind, ["sum", "$a", "$b"])
