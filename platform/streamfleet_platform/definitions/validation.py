"""A tree of nodes becomes a model, or a list of problems with places and hints. Called by loader.py and layers.py.

pydantic checks; here its errors are put into the words of this project, at the place in the file that caused them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from streamfleet_platform.definitions.yaml_nodes import Node, plain
from streamfleet_platform.errors import Place, Problem
from streamfleet_platform.model.section import Section, shown

S = TypeVar("S", bound=Section)

MAX_PROBLEMS = 50
"""Of one file: a hint for each of thousands would take seconds, and nobody reads them."""

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "tuple_type": "a list",
    "list_type": "a list",
}
_LIMITS = {"greater_than_equal": "ge", "greater_than": "gt", "less_than_equal": "le", "less_than": "lt"}
_LIMIT_WORDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}


def validate(model: type[S], document: Node) -> tuple[S | None, list[Problem]]:
    """The model, or what is wrong."""
    try:
        return model.model_validate(plain(document)), []
    except ValidationError as error:
        problems = [_problem(model, document, details) for details in _first(error.errors(include_url=False))]
        if error.error_count() > MAX_PROBLEMS:
            more = error.error_count() - MAX_PROBLEMS
            problems.append(
                Problem(Place(document.place.file), f"there are {more} more problems", "solve the others first")
            )
        return None, problems


def validate_part(model: type[Section], document: Node) -> list[Problem]:
    """What is wrong with a document that others will complete: what is missing, or does not fit together yet, is no problem."""
    try:
        model.model_validate(plain(document))
    except ValidationError as error:
        return [
            _problem(model, document, details)
            for details in _first(error.errors(include_url=False))
            if details["type"] != "missing" and not _is_about_a_whole(document, details)
        ]
    return []


def _first(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    return errors[:MAX_PROBLEMS]


def _is_about_a_whole(document: Node, details: ErrorDetails) -> bool:
    node, _, rest = _follow(document, details["loc"])
    return details["type"] == "refused" and not rest and isinstance(node.value, dict)


def unknown_hint(name: str, known: Iterable[str]) -> str:
    """What was probably meant, else what there is."""
    choices = sorted(known)
    near = difflib.get_close_matches(name, choices, n=1) or [
        choice for choice in choices if choice.lower() == name.lower().replace("_", "").replace("-", "")
    ]
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(choices)}" if choices else "remove it"


def _problem(model: type[Section], document: Node, details: ErrorDetails) -> Problem:
    kind, context = details["type"], details.get("ctx", {})
    node, key_place, rest = _follow(document, details["loc"])
    is_about_key = (
        kind in ("extra_forbidden", "missing") or rest[:1] == ("[key]",) or isinstance(node.value, dict | tuple)
    )
    place = key_place if is_about_key else node.place
    path = ".".join(str(part) for part in details["loc"][: len(details["loc"]) - len(rest)]) or "the definition"
    if kind == "extra_forbidden":
        *parent, name = details["loc"]
        known = _fields_at(model, parent)
        return Problem(place, f"unknown field {name!r} in {_dotted(parent)}", unknown_hint(str(name), known))
    if kind == "missing":
        return Problem(place, f"{_dotted(details['loc'])} is missing", _missing_hint(model, details["loc"]))
    if kind == "refused":
        return Problem(place, f"{path}: {context['fact']}", context["hint"])
    if rest and rest[0] in ("str", "int", "float", "bool"):
        return Problem(node.place, f"{path} is {_kind(node)}", "write one text, number, true or false")
    if kind in _EXPECTED:
        return _wrong_type(path, place, node, _EXPECTED[kind])
    if kind == "literal_error":
        return _wrong_word(path, place, node, str(context["expected"]))
    if kind in _LIMITS:
        limit = _LIMITS[kind]
        return Problem(place, f"{path} is {shown(plain(node))}", f"write {_LIMIT_WORDS[limit]} {context[limit]}")
    return Problem(place, f"{path}: {details['msg'][0].lower()}{details['msg'][1:]}", _field_hint(kind))


def _missing_hint(model: type[Section], loc: tuple[int | str, ...]) -> str:
    """What is to be written, where there is only one thing."""
    annotation: Any = model
    for part in loc:
        annotation = _step(annotation, part)
    words = get_args(annotation) if get_origin(annotation) is Literal else ()
    return f"write {loc[-1]}: {words[0]}" if len(words) == 1 else "add it"


def _wrong_type(path: str, place: Place, node: Node, expected: str) -> Problem:
    is_scalar = not isinstance(node.value, dict | tuple) and node.value is not None
    hint = "put it in quotes" if expected == "text" and is_scalar else f"write {expected}"
    return Problem(place, f"{path} should be {expected}, but is {_kind(node)}", hint)


def _wrong_word(path: str, place: Place, node: Node, expected: str) -> Problem:
    words = [word.strip("' ") for word in expected.replace(" or ", ",").split(",")]
    near = difflib.get_close_matches(str(node.value), words, n=1)
    hint = f"did you mean {near[0]}?" if near else f"write {' or '.join(words)}"
    return Problem(place, f"{path} cannot be {shown(plain(node))}", hint)


def _field_hint(kind: str) -> str:
    return {"too_short": "add at least one", "string_too_short": "write something"}.get(kind, "see the JSON Schema")


def _kind(node: Node) -> str:
    if isinstance(node.value, dict):
        return "a mapping"
    if isinstance(node.value, tuple):
        return "a list"
    if isinstance(node.value, str):
        return "text"  # it may be a secret in the wrong place
    return "empty" if node.value is None else str(plain(node)).lower()


def _dotted(path: Iterable[object]) -> str:
    return ".".join(map(str, path)) or "the definition"


def _follow(document: Node, loc: tuple[int | str, ...]) -> tuple[Node, Place, tuple[int | str, ...]]:
    """The deepest node on the way, the place of its key, and what of the way is left."""
    node, place = document, document.place
    for depth, part in enumerate(loc):
        if isinstance(node.value, dict) and part in node.value:
            place, node = node.value[str(part)].place, node.value[str(part)].node
        elif isinstance(node.value, tuple) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            place = node.place
        else:
            return node, place, loc[depth:]
    return node, place, ()


def _fields_at(model: type[Section], path: Iterable[int | str]) -> list[str]:
    """The names of the fields that a section has."""
    annotation: Any = model
    for part in path:
        annotation = _step(annotation, part)
    section = _section(annotation)
    return [] if section is None else [field.alias or name for name, field in section.model_fields.items()]


def _step(annotation: Any, part: int | str) -> Any:
    section = _section(annotation)
    if section is None:  # a mapping or list of sections
        return next((inner for inner in reversed(get_args(annotation)) if _section(inner) is not None), None)
    fields = {field.alias or name: field.annotation for name, field in section.model_fields.items()}
    return fields.get(str(part))


def _section(annotation: Any) -> type[Section] | None:
    """X of X, and of `X | None`."""
    candidates = get_args(annotation) if get_origin(annotation) is UnionType else (annotation,)
    return next((item for item in candidates if isinstance(item, type) and issubclass(item, Section)), None)
