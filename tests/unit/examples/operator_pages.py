"""Writes docs/operators/: a page per family of operators, from the signatures and docstrings of the engine.

    .venv/bin/python -m tests.unit.examples.operator_pages

test_operator_pages.py holds the pages to the code, and the code to having a sentence for every operator.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_overloads

import streamfleet as sf
from streamfleet.dsl.cogrouped_stream import SessionWindowedCogroupedKStream, TimeWindowedCogroupedKStream

DIRECTORY = Path(__file__).resolve().parents[3] / "docs/operators"
WIDTH = 100
_WINDOWS = [sf.TimeWindows, sf.SlidingWindows, sf.SessionWindows, sf.UnlimitedWindows, sf.JoinWindows]
_MADE_BY_USERS = {sf.StreamsBuilder, sf.Topology, sf.Materialized, *_WINDOWS}
_OF_THE_ENGINE = {"set_flush_listener", "open"}


@dataclass(frozen=True)
class Family:
    """`members`: a class, and which of its methods; None: all."""

    title: str
    about: str
    members: Sequence[tuple[type, Sequence[str] | None]]


_STATELESS = [
    "filter",
    "filter_not",
    "map",
    "map_values",
    "flat_map",
    "flat_map_values",
    "select_key",
    "peek",
    "foreach",
]
_REST = ["print", "merge", "split", "repartition", "to", "to_table", "process", "process_values"]
_OF_TABLES = ["filter", "filter_not", "map_values", "transform_values", "to_stream", "suppress"]
_JOINS = ["join", "left_join", "outer_join"]
_BUILDING = ["add_source", "add_processor", "add_sink", "add_state_store", "connect_processor_and_state_stores"]
_BUILDING += ["add_global_store", "add_read_only_state_store"]
_GROUPING = ["group_by_key", "group_by"]

FAMILIES: Mapping[str, Family] = {
    "streams": Family(
        "Streams",
        "Where records come from, and what is done with them one by one.",
        [(sf.StreamsBuilder, None), (sf.KStream, [*_STATELESS, *_REST]), (sf.BranchedKStream, None)],
    ),
    "tables": Family(
        "Tables",
        "The newest value of each key, what is derived from it, and holding updates back.",
        [(sf.KTable, _OF_TABLES), (sf.GlobalKTable, []), (sf.Suppressed, None), (sf.BufferConfig, None)],
    ),
    "aggregations": Family(
        "Aggregations",
        "Many records become one row: by key, by key and window, of several streams together, of a table's rows.",
        [
            (sf.KStream, _GROUPING),
            (sf.KGroupedStream, None),
            (sf.TimeWindowedKStream, None),
            (sf.SessionWindowedKStream, None),
            (sf.CogroupedKStream, None),
            (TimeWindowedCogroupedKStream, None),
            (SessionWindowedCogroupedKStream, None),
            (sf.KTable, ["group_by"]),
            (sf.KGroupedTable, None),
            (sf.Materialized, None),
        ],
    ),
    "windows": Family(
        "Windows",
        "Which records belong together by time.",
        [
            *[(kind, []) for kind in _WINDOWS],
            (sf.EmitStrategy, []),
            (sf.Windowed, []),
        ],
    ),
    "joins": Family(
        "Joins",
        "Two streams, a stream and a table, two tables by key or by a foreign key.",
        [(sf.KStream, _JOINS), (sf.KTable, _JOINS)],
    ),
    "stores": Family(
        "Stores",
        "Where rows are kept, and how a processor of your own reads and writes them.",
        [
            (sf.Stores, None),
            (sf.KeyValueStore, None),
            (sf.WindowStore, None),
            (sf.SessionStore, None),
            (sf.VersionedKeyValueStore, None),
        ],
    ),
    "processors": Family(
        "Processors",
        "Code of your own in a topology: what it is given, what it may do.",
        [
            (sf.Topology, _BUILDING),
            (sf.Processor, None),
            (sf.ProcessorContext, None),
            (sf.FixedKeyProcessor, None),
            (sf.ValueTransformer, None),
            (sf.ProcessorWrapper, None),
        ],
    ),
}


def pages() -> dict[str, str]:
    """Text by file name."""
    return {f"{name}.md": _page(family) for name, family in FAMILIES.items()}


def _page(family: Family) -> str:
    links = [f"[{other.title}]({name}.md)" for name, other in FAMILIES.items() if other is not family]
    head = [
        f"# {family.title}",
        "",
        family.about,
        "",
        f"From the code. How they are used: [writing an app](../language.md). {', '.join(links)}.",
    ]
    text = "\n".join([*head, *(line for kind, chosen in family.members for line in _section(kind, chosen))])
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def _section(kind: type, chosen: Sequence[str] | None) -> Iterator[str]:
    yield from ("", f"## {kind.__name__}", "")
    if chosen is None or not chosen:
        if about := _told(kind):
            yield from (about, "")
        if kind in _MADE_BY_USERS:
            yield from _code(_signature(kind.__name__, kind))
        elif issubclass(kind, sf.EmitStrategy):
            yield ", ".join(f"`EmitStrategy.{each.name}`" for each in kind)
    for name in _methods(kind) if chosen is None else chosen:
        yield from _method(kind, name)


def _methods(kind: type) -> list[str]:
    found = (name for name, value in vars(kind).items() if _function(value) is not None)
    return [name for name in found if not name.startswith("_") and name not in _OF_THE_ENGINE]


def _method(kind: type, name: str) -> Iterator[str]:
    function = _function(inspect.getattr_static(kind, name))
    assert function is not None, f"{kind.__name__}.{name} is no method"
    about = inspect.getdoc(getattr(kind, name)) or ""
    if not about and kind.__module__.startswith("streamfleet.dsl."):
        raise ValueError(f"{kind.__name__}.{name} has no docstring")
    yield from ("", f"### {name}", "")
    for form in get_overloads(function) or [function]:
        yield from _code(_signature(name, form))
    if about:
        yield about


def _function(value: Any) -> Callable[..., Any] | None:
    inner = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    return inner if inspect.isfunction(inner) else None


def _told(what: Any) -> str:
    return inspect.cleandoc(what.__doc__) if what.__doc__ else ""


def _code(text: str) -> Iterator[str]:
    yield from ("```python", text, "```", "")


def _signature(name: str, function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    given = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    returned = signature.return_annotation
    end = f") -> {_plain(returned)}" if returned not in (signature.empty, "None", None) else ")"
    parts, is_named = [], False
    for parameter in given:
        if parameter.kind is parameter.KEYWORD_ONLY and not is_named:
            parts.append("*")
            is_named = True
        parts.append(_plain(str(parameter)))
    line = f"{name}({', '.join(parts)}{end}"
    return line if len(line) <= WIDTH else f"{name}(\n    " + ",\n    ".join(parts) + f",\n{end}"


def _plain(written: object) -> str:
    """Annotations as they stand in the source, without quotes; defaults that are objects only as a sign that there is one."""
    annotation, equals, default = str(written).replace(" | _Missing = (required)", "").partition(" = ")
    return annotation.replace("'", "") + equals + ("..." if default.startswith("<") else default)


def main() -> None:
    DIRECTORY.mkdir(exist_ok=True)
    for name, text in pages().items():
        (DIRECTORY / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
