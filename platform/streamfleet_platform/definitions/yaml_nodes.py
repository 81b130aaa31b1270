"""A YAML file becomes a tree of nodes that know where they are written. Called by loader.py.

It takes the part of YAML that means the same to every reader, and refuses the rest: explicit tags, duplicate and merge
keys, several documents, recursion, scalars that YAML 1.1 and 1.2 read differently (scalars.py). Size, depth and the
number of nodes are bounded while events arrive, after aliases are counted at their full size, so that a small file cannot
become a large value. Aliases share their target's node; nothing is copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import yaml

from streamfleet_platform.definitions.scalars import AmbiguousScalarError, Scalar, read_plain
from streamfleet_platform.errors import InvalidDefinitionError, Place, Problem

MAX_BYTES = 256 * 1024
MAX_DEPTH = 20
MAX_NODES = 10_000
MAX_ALIASES = 16

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNSEEN = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Marks that change the order in which text is shown, not in which it is read."""


class Node(NamedTuple):
    """A value and its place. `size` counts the nodes below it, itself included."""

    value: Scalar | tuple[Node, ...] | dict[str, Entry]
    place: Place
    size: int = 1

    @property
    def entries(self) -> dict[str, Entry]:
        """Of a mapping; nothing for other values."""
        return self.value if isinstance(self.value, dict) else {}

    def get(self, *path: str) -> Node | None:
        """The node below a path of keys."""
        node: Node | None = self
        for key in path:
            entry = None if node is None else node.entries.get(key)
            node = None if entry is None else entry.node
        return node


class Entry(NamedTuple):
    """A key's place and the value under it."""

    place: Place
    node: Node


def plain(node: Node) -> Any:
    """Python's own values; sequences as tuples."""
    if isinstance(node.value, dict):
        return {key: plain(entry.node) for key, entry in node.value.items()}
    if isinstance(node.value, tuple):
        return tuple(plain(item) for item in node.value)
    return node.value


def node_of(value: Any, place: Place) -> Node:
    """Built-in values as nodes that are all at one place."""
    if isinstance(value, Mapping):
        entries = {key: Entry(place, node_of(below, place)) for key, below in value.items()}
        return Node(entries, place, 1 + sum(entry.node.size for entry in entries.values()))
    return Node(value, place)


def parse_yaml(data: bytes, file: str) -> Node:
    """The one document of a file. InvalidDefinitionError says what is wrong with it, and where."""
    text = _decoded(data, file)
    try:
        return _Composer(file).compose(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(file) if mark is None else Place(file, mark.line + 1, mark.column + 1)
        raise _refused(
            place, f"this is no YAML: {error.problem or error.context}", "check indentation and quotes"
        ) from None
    except yaml.YAMLError as error:  # what the reader refuses has no mark
        raise _refused(Place(file), f"this is no YAML: {error}", "remove control characters") from None


def _decoded(data: bytes, file: str) -> str:
    if len(data) > MAX_BYTES:
        raise _refused(Place(file), f"the file has {len(data)} bytes", f"a definition has at most {MAX_BYTES}")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _refused(Place(file, line, 1), "the file is not UTF-8 text", "save it as UTF-8") from None
    if (match := _UNSEEN.search(text)) is not None:
        line = text.count("\n", 0, match.start()) + 1
        column = match.start() - (text.rfind("\n", 0, match.start()) + 1) + 1
        raise _refused(
            Place(file, line, column),
            f"the invisible character U+{ord(match[0]):04X} changes how the text is shown",
            "remove it",
        )
    return text


class _Composer:
    """Events to nodes without recursion: depth is what the stack holds."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._stack: list[_Open] = []
        self._anchors: dict[str, Node] = {}
        self._aliases = 0
        self._nodes = 0
        self._root: Node | None = None

    def compose(self, events: Iterator[yaml.Event]) -> Node:
        for event in events:
            self._take(event)
        if self._root is None:
            raise _refused(Place(self._file), "the file is empty", "write a definition, or remove the file")
        return self._root

    def _take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._complete(Node(self._scalar(event), self._place(event)), event.anchor)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._open(event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._close()
        elif isinstance(event, yaml.AliasEvent):
            self._complete(self._target(event), None)
        elif isinstance(event, yaml.DocumentStartEvent):
            if self._root is not None:
                raise self._error(
                    event, "there is a second document", "one file is one definition: remove the --- line"
                )
            if event.tags:
                raise self._error(event, "there is a %TAG directive", "remove it: tags are not used here")

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        if len(self._stack) == MAX_DEPTH:
            raise self._error(event, f"values are nested more than {MAX_DEPTH} deep", "no definition needs that")
        if event.tag is not None:
            raise self._tag_refused(event, event.tag)
        container = _Open({} if isinstance(event, yaml.MappingStartEvent) else [], self._place(event), event.anchor)
        if isinstance(self._container(), dict) and self._stack[-1].key is None:
            raise self._error(event, "a key is not text", "keys are plain words")
        self._stack.append(container)

    def _close(self) -> None:
        done = self._stack.pop()
        nodes = done.content if isinstance(done.content, list) else [entry.node for entry in done.content.values()]
        value = tuple(done.content) if isinstance(done.content, list) else done.content
        self._complete(Node(value, done.place, 1 + sum(node.size for node in nodes)), done.anchor)

    def _complete(self, node: Node, anchor: str | None) -> None:
        """A value is whole: it goes where it belongs."""
        self._nodes += 1
        if max(self._nodes, node.size) > MAX_NODES:
            raise _refused(
                node.place,
                f"the file has more than {MAX_NODES} values once aliases are followed",
                "split or shorten it",
            )
        if anchor is not None:
            self._anchors[anchor] = node
        container = self._container()
        if container is None:
            self._root = node
        elif isinstance(container, list):
            container.append(node)
        elif self._stack[-1].key is None:
            self._stack[-1].key = (self._key(node, container), node.place)
        else:
            key, place = self._stack[-1].key
            container[key] = Entry(place, node)
            self._stack[-1].key = None

    def _key(self, node: Node, container: dict[str, Entry]) -> str:
        key = node.value
        if not isinstance(key, str):
            raise _refused(node.place, f"the key {key!r} is not text", "put it in quotes")
        if key == "<<":
            raise _refused(
                node.place, "merge keys (<<) are not used here", "write the values, or use defaults and tiers"
            )
        if key in container:
            first = container[key].place.line
            raise _refused(node.place, f"{key!r} is there twice, first in line {first}", "keep one")
        return key

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        if event.tag is not None:
            raise self._tag_refused(event, event.tag)
        if not event.implicit[0]:  # in quotes, or a block of text
            return str(event.value)
        try:
            return read_plain(event.value)
        except AmbiguousScalarError as error:
            raise self._error(event, error.fact, error.hint) from None

    def _target(self, event: yaml.AliasEvent) -> Node:
        self._aliases += 1
        if self._aliases > MAX_ALIASES:
            raise self._error(event, f"there are more than {MAX_ALIASES} aliases", "write the values out")
        if event.anchor not in self._anchors:
            raise self._error(event, f"the alias *{event.anchor} has no anchor before it", "write the value out")
        return self._anchors[event.anchor]

    def _container(self) -> dict[str, Entry] | list[Node] | None:
        return self._stack[-1].content if self._stack else None

    def _tag_refused(self, event: yaml.Event, tag: str) -> InvalidDefinitionError:
        return self._error(
            event, f"the tag {tag[:60]!r} is not allowed", "write the value plainly, in quotes if it is text"
        )

    def _place(self, event: yaml.Event) -> Place:
        mark = event.start_mark
        return Place(self._file) if mark is None else Place(self._file, mark.line + 1, mark.column + 1)

    def _error(self, event: yaml.Event, fact: str, hint: str) -> InvalidDefinitionError:
        return _refused(self._place(event), fact, hint)


@dataclass(slots=True)
class _Open:
    """A mapping or sequence whose end has not come."""

    content: dict[str, Entry] | list[Node]
    place: Place
    anchor: str | None
    key: tuple[str, Place] | None = None


def _refused(place: Place, fact: str, hint: str) -> InvalidDefinitionError:
    return InvalidDefinitionError([Problem(place, fact, hint)])
