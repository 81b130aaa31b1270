"""The scenario language: what an expression means, and when two results count as equal.

`ops` and `processors` turn the expressions of a file into functions by `bind`; `checks` compares results by the second
half of this module. Nothing here knows the engine. An expression is compiled once, so that a mistake in a file is found
before any record flows: inside an operator it would look like a failure of the engine.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

Json = Any
"""What `json.load` returns."""

Environment = Mapping[str, Any]
Node = Callable[[Environment], Any]


class MalformedScenarioError(Exception):
    """The file does not say something that can be run; the message says what is wrong with it."""


class Boom(RuntimeError):
    """Raised by the function `fail`; Java raises an IllegalStateException with the same message."""


class Pair(NamedTuple):
    key: Any
    value: Any


# --- values -----------------------------------------------------------------------------------------------------------


def text(value: Any) -> str:
    """A value as the functions `concat` and `str` show it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _double_text(value)
    if is_windowed(value):
        return f"[{text(value.key)}@{value.window.start}/{value.window.end}]"
    return str(value)


def is_windowed(value: Any) -> bool:
    return hasattr(value, "window") and hasattr(value, "key")


def _double_text(value: float) -> str:
    """Java's Double.toString: scientific notation from 10^7 up and below 10^-3, with a capital E and no plus sign."""
    if not math.isfinite(value):
        return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[str(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return str(value)
    shortest = Decimal(repr(value)).normalize()
    first, *rest = shortest.as_tuple().digits
    return f"{'-' if value < 0 else ''}{first}.{''.join(map(str, rest)) or '0'}E{shortest.adjusted()}"


def _wrapped(value: Any, bits: int = 64) -> Any:
    """Integers overflow as in Java; doubles pass."""
    if not isinstance(value, int):
        return value
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def _or_zero(value: Any) -> Any:
    return 0 if value is None else value


def _unless_null(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda first, *rest: None if first is None else function(first, *rest)


def _of_both(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The other one if one is null."""
    return lambda x, y: y if x is None else x if y is None else function(x, y)


def _fail(value: Any = None) -> Any:
    raise Boom(f"boom {text(value)}")


def _equal(x: Any, y: Any) -> bool:
    return bool(x == y) and isinstance(x, bool) == isinstance(y, bool)


def _number_in(digits: str | None) -> int | None:
    return int(digits) if digits is not None and re.fullmatch("-?[0-9]{1,15}", digits) else None


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "concat": lambda *parts: "".join(map(text, parts)),
    "str": _unless_null(text),
    "upper": _unless_null(str.upper),
    "lower": _unless_null(str.lower),
    "first_char": _unless_null(lambda s: s[:1]),
    "last_char": _unless_null(lambda s: s[-1:]),
    "tail": _unless_null(lambda s, n: s[max(0, len(s) - n) :]),
    "len": lambda s: 0 if s is None else len(s),
    "before": _unless_null(lambda s, separator: s.partition(separator)[0]),
    "after": _unless_null(lambda s, separator: s.partition(separator)[2] if separator in s else None),
    "parse_long": _number_in,
    "sum": lambda *terms: _wrapped(sum(term for term in terms if term is not None)),
    "sub": lambda x, y: _wrapped(_or_zero(x) - _or_zero(y)),
    "mul": lambda x, y: _wrapped(_or_zero(x) * _or_zero(y)),
    "mod": lambda x, y: _or_zero(x) % y,
    "min": _of_both(min),
    "max": _of_both(max),
    "int": _unless_null(lambda x: _wrapped(int(x), 32)),
    "double": _unless_null(float),
    "is_null": lambda x: x is None,
    "is_even": lambda x: x is not None and x % 2 == 0,
    "not": lambda p: not p,
    "and": lambda *ps: all(ps),
    "or": lambda *ps: any(ps),
    "eq": _equal,
    "lt": lambda x, y: x is not None and y is not None and x < y,
    "gt": lambda x, y: x is not None and y is not None and x > y,
    "contains": lambda s, part: s is not None and part in s,
    "starts_with": lambda s, part: s is not None and s.startswith(part),
    "split_words": lambda s: [] if s is None else [word for word in s.split(" ") if word],
    "list": lambda *items: list(items),
    "pair": Pair,
    "window_key": _unless_null(lambda windowed: windowed.key),
    "window_start": _unless_null(lambda windowed: windowed.window.start),
    "window_end": _unless_null(lambda windowed: windowed.window.end),
    "fail": _fail,
}


# --- expressions ------------------------------------------------------------------------------------------------------


def compile_expression(expression: Json, variables: Iterable[str]) -> Node:
    """A function of an environment that holds `variables`. Arguments are evaluated first, except those of `if`."""
    known = frozenset(variables)
    if isinstance(expression, str) and expression.startswith("$"):
        name = expression[1:]
        if name not in known:
            raise MalformedScenarioError(f"unknown variable ${name}, bound here are {sorted(known)}")
        return lambda environment: environment[name]
    if isinstance(expression, list):
        return _compile_call(expression, known)
    if isinstance(expression, dict):
        raise MalformedScenarioError(f"not an expression: {expression}")
    return lambda _: expression


def _compile_call(call: list[Json], known: frozenset[str]) -> Node:
    if not call or not isinstance(call[0], str):
        raise MalformedScenarioError(f"not a call: {call}")
    name, *arguments = call
    nodes = [compile_expression(argument, known) for argument in arguments]
    if name == "if":
        if len(nodes) != 3:
            raise MalformedScenarioError(f"`if` takes three arguments: {call}")
        condition, then, otherwise = nodes
        return lambda environment: then(environment) if condition(environment) else otherwise(environment)
    if name not in FUNCTIONS:
        raise MalformedScenarioError(f"unknown function {name}")
    function = FUNCTIONS[name]
    return lambda environment: function(*[node(environment) for node in nodes])


def bind(expression: Json, *variables: str) -> Callable[..., Any]:
    """The expression as a function of positional arguments, named by `variables`; engines may look at its arity."""
    node = compile_expression(expression, variables)
    match variables:
        case ():
            return lambda: node({})
        case (a,):
            return lambda x: node({a: x})
        case (a, b):
            return lambda x, y: node({a: x, b: y})
        case (a, b, c):
            return lambda x, y, z: node({a: x, b: y, c: z})
        case _:
            raise ValueError(f"no operator takes {len(variables)} arguments")


def mentions(expression: Json, variable: str) -> bool:
    """Whether `$variable` stands anywhere in the expression."""
    return expression == f"${variable}" or (
        isinstance(expression, list) and any(mentions(e, variable) for e in expression)
    )


# --- comparison -------------------------------------------------------------------------------------------------------


def matches(expected: Json, actual: Json) -> bool:
    """Equality of JSON values, where an expected "*" stands for anything."""
    if expected == "*":
        return True
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        return len(expected) == len(actual) and all(map(matches, expected, actual))
    return _equal(expected, actual)


def by_topic(records: Iterable[Sequence[Json]]) -> dict[str, list[list[Json]]]:
    """Records per topic, in order, without the topic. The order between topics is nobody's promise."""
    topics: dict[str, list[list[Json]]] = {}
    for topic, *rest in records:
        topics.setdefault(topic, []).append(rest)
    return topics


def row_differences(expected: Iterable[Json], actual: Iterable[Json]) -> tuple[list[str], list[str]]:
    """Rows that are missing and rows that are too many; their order does not matter."""
    want, got = Counter(map(repr, expected)), Counter(map(repr, actual))
    return sorted((want - got).elements()), sorted((got - want).elements())


def normalized_description(lines: Iterable[str]) -> dict[str, list[tuple[str, ...]]]:
    """Sub-topology heading -> its nodes, with every list of names sorted: Java prints these partly in hash order."""
    groups: dict[str, list[list[str]]] = {}
    nodes: list[list[str]] = []
    for line in map(str.strip, lines):
        if line.startswith("Sub-topology"):
            nodes = groups.setdefault(line, [])
        elif line.startswith(("Source:", "Processor:", "Sink:")):
            nodes.append([re.sub(r"\[(.*?)\]", lambda found: f"[{_sorted_names(found[1])}]", line)])
        elif line.startswith(("-->", "<--")) and nodes:
            arrow, _, names = line.partition(" ")
            nodes[-1].append(f"{arrow} {_sorted_names(names)}")
    return {heading: sorted(tuple(node) for node in found) for heading, found in groups.items()}


def _sorted_names(names: str) -> str:
    return ", ".join(sorted(names.split(", ")))


def missing_and_unexpected(expected: Iterable[Any], actual: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Pairs (expected or None, got or None) of what stands on one side only."""
    want, got = Counter(expected), Counter(actual)
    yield from ((item, None) for item in (want - got).elements())
    yield from ((None, item) for item in (got - want).elements())
